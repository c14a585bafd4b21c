// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/fleet_predictor.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/model/test_random_model.h"
#include "engines/sparse/predict/predictor.h"
#include "engines/sparse/serve/test_served_fleet.h"

namespace gossamer::sparse_engine {
namespace {

using testing::Served;
using testing::ServedFleet;

// Asks members about at most so many queries at once. It refuses more, as if they had too many labels.
struct Asker {
  ServedFleet& fleet;
  std::size_t most;
  std::vector<std::size_t> asked = {};  // the queries of each block

  Result<FleetQueries::Answer> ask(const FleetQueries::Block& block) {
    asked.push_back(block.rows.rows());
    if (block.rows.rows() > most) return Error{.kind = ErrorKind::kRefused, .what = "too many labels"};
    fleet.ask(block);
    auto answer = fleet.answer(60'000);
    if (!answer) return Error{.kind = ErrorKind::kFailed, .what = "no answer"};
    return std::move(*answer);
  }
};

// Claim: a predictor that asks members gives the labels, scores and probabilities of one process, to the bit,
// with their training rows and without. Blocks that are refused as too large are asked in halves.
TEST(FleetPredictor, AnswersAsOneProcess) {
  for (const PartInstances instances : {PartInstances::kNone, PartInstances::kShare}) {
    Served served({.features = 60, .labels = 77, .hidden = 48, .rows = 300}, instances, [](Model& model) {
      model.fusion.candidates = 20;
      model.fusion.neighbours = 15;
      model.fusion.calibration = Calibration{.log = 1, .rest = 0.5F, .offset = 0.25F};
      model.fusion.net_calibration = Calibration{.log = 0.5F, .rest = 2, .offset = -1};
    });
    const Model& model = served.model();
    Rng rng(6, Purpose::kTest);
    const testing::OwnedRows queries = testing::random_rows(rng, 60, 270);
    const PredictParts parts = instances == PartInstances::kShare ? PredictParts() : kNetAlone;
    const auto alone = Predictor::create(model, testing::best_kernels(), served.compute(),
                                         {.fusion = model.fusion, .parts = parts});
    ASSERT_TRUE(alone.ok());
    ServedFleet fleet(served, 3);
    for (const std::size_t top_k : {5U, 30U}) {
      PredictionBlock want;
      ASSERT_TRUE((*alone)->predict(queries.view(), top_k, want).ok());
      ASSERT_NE(want.probability[0], want.probability[top_k]);
      for (const std::size_t most : {256U, 100U}) {
        Asker asker{.fleet = fleet, .most = most};
        const auto predictor = fleet_predictor(
            model, instances, [&asker](const FleetQueries::Block& block) { return asker.ask(block); });
        PredictionBlock got;
        const auto done = predictor->predict(queries.view(), top_k, got);
        ASSERT_TRUE(done.ok()) << done.error().message();
        EXPECT_EQ(got.top_k, top_k);
        EXPECT_EQ(got.count, want.count) << most;
        EXPECT_EQ(got.entries, want.entries) << most;
        EXPECT_EQ(got.share, want.share) << most;
        EXPECT_EQ(got.probability, want.probability) << most;
        EXPECT_EQ(asker.asked, most == 256 ? (std::vector<std::size_t>{256, 14})
                                           : (std::vector<std::size_t>{256, 128, 64, 64, 128, 64, 64, 14}));
      }
    }
  }
}

// Claim: a query that is refused by itself, and any other error, ends the prediction. Nothing more is asked.
TEST(FleetPredictor, TellsWhyThereIsNoAnswer) {
  const Model model = testing::random_model({.features = 60, .labels = 77, .hidden = 48, .rows = 0});
  Rng rng(6, Purpose::kTest);
  const testing::OwnedRows queries = testing::random_rows(rng, 60, 5);
  for (const ErrorKind kind : {ErrorKind::kRefused, ErrorKind::kFailed}) {
    std::vector<std::size_t> asked;
    const auto predictor = fleet_predictor(
        model, PartInstances::kNone, [&](const FleetQueries::Block& block) -> Result<FleetQueries::Answer> {
          asked.push_back(block.rows.rows());
          return Error{.kind = kind, .what = "no"};
        });
    PredictionBlock out;
    const auto done = predictor->predict(queries.view(), 5, out);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, kind);
    EXPECT_EQ(asked, kind == ErrorKind::kRefused ? (std::vector<std::size_t>{5, 2, 1})
                                                 : (std::vector<std::size_t>{5}));
  }
}

// Claim: queries with more features than a message takes are asked one by one.
TEST(FleetPredictor, AsksLessThanAMessage) {
  const Model model = testing::random_model({.features = 60, .labels = 77, .hidden = 48, .rows = 0});
  const std::uint32_t many = 1U << 25;
  const testing::OwnedRows queries{.begin = {0, many, many + 1},
                                   .index = std::vector<std::uint32_t>(many + 1),
                                   .value = std::vector<float>(many + 1, 1)};
  std::vector<std::size_t> asked;
  const auto predictor = fleet_predictor(
      model, PartInstances::kNone, [&](const FleetQueries::Block& block) -> Result<FleetQueries::Answer> {
        asked.push_back(block.rows.rows());
        return Error{.kind = ErrorKind::kFailed, .what = "no"};
      });
  PredictionBlock out;
  EXPECT_FALSE(predictor->predict(queries.view(), 5, out).ok());
  EXPECT_EQ(asked, (std::vector<std::size_t>{1}));
}

}  // namespace
}  // namespace gossamer::sparse_engine
