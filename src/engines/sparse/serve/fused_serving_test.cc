// SPDX-License-Identifier: Apache-2.0
//
// Members hold parts of a model and shares of its training rows, and the lead asks them, in virtual time.
#include <gossamer/sparse_serving.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/fleet/step/layout_message.h"
#include "engines/sparse/predict/fusion.h"
#include "engines/sparse/predict/predictor.h"
#include "engines/sparse/serve/fleet_queries.h"
#include "engines/sparse/serve/serving_engine.h"
#include "engines/sparse/serve/test_payload_words.h"
#include "engines/sparse/serve/test_served_fleet.h"
#include "learn/text/weighting.h"

namespace gossamer::sparse_engine {
namespace {

using testing::Served;
using testing::ServedFleet;
using testing::words;

constexpr std::size_t kTop = 30;

// Queries as they came, as weighted for the network, and as weighted for comparison.
struct Queries {
  testing::OwnedRows raw;
  std::vector<float> weighted;
  std::vector<float> compared;

  Queries(const Model& model, testing::OwnedRows rows)
      : raw(std::move(rows)), weighted(raw.value.size()), compared(raw.value.size()) {
    const auto comparison = text::comparison_weighting(model.weighting, model.neighbours);
    for (std::size_t q = 0; q < raw.view().rows(); ++q) {
      const std::size_t at = raw.begin[q];
      model.weighting.apply(raw.view().row(q), std::span(weighted).subspan(at, raw.begin[q + 1] - at));
      comparison.apply(raw.view().row(q), std::span(compared).subspan(at, raw.begin[q + 1] - at));
    }
  }
  [[nodiscard]] FleetQueries::Block block(const Model& model) const {
    return {.rows = {raw.begin, raw.index, weighted},
            .labels = std::min<std::size_t>(model.fusion.candidates, model.network.shape.labels),
            .compared = compared,
            .neighbours = model.fusion.neighbours};
  }
};

std::vector<std::vector<Scored>> one_process(Served& served, const data::SparseRows& queries) {
  auto predictor = Predictor::create(served.model(), testing::best_kernels(), served.compute(),
                                     default_options(served.model()));
  EXPECT_TRUE(predictor.ok());
  PredictionBlock out;
  EXPECT_TRUE((*predictor)->predict(queries, kTop, out).ok());
  std::vector<std::vector<Scored>> ranked;
  for (std::size_t q = 0; q < queries.rows(); ++q) ranked.emplace_back(out.row(q).begin(), out.row(q).end());
  return ranked;
}

std::vector<std::vector<Scored>> ranked(const Model& model, const FleetQueries::Answer& answer) {
  Fusion fusion(model.fusion, PredictParts(), Fusion::Sources());
  std::vector<std::vector<Scored>> all;
  for (std::size_t q = 0; q < answer.net.size(); ++q) {
    std::vector<Scored> out(kTop);
    out.resize(answer.fused->rank(fusion, model.fusion, q, answer.net[q], out));
    all.push_back(std::move(out));
  }
  return all;
}

// Claim: any number of nodes ranks as one process does, to the bit, with dense layers and without. Fewer
// neighbours and a fusion without the mixed vote change nothing in that.
TEST(FusedServing, AnswersAsOneProcess) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {64, 32}}) {
    for (const std::uint32_t neighbours : {100U, 3U}) {
      Served served({.features = 60, .labels = 77, .hidden = 48, .dense = dense, .rows = 500},
                    PartInstances::kShare, [neighbours](Model& model) {
                      model.fusion.neighbours = neighbours;
                      model.fusion.candidates = 20;
                      if (neighbours == 3) model.fusion.weights[FusionTerm::kMixed] = 0;
                    });
      Rng rng(4, Purpose::kTest);
      const Queries queries(served.model(), testing::random_rows(rng, 60, 50));
      const auto want = one_process(served, queries.raw.view());
      for (const std::size_t members : {1U, 2U, 3U, 5U, 12U}) {
        ServedFleet fleet(served, members);
        fleet.ask(queries.block(served.model()));
        const auto answer = fleet.answer(60'000);
        ASSERT_TRUE(answer) << members << " members\n" << fleet->log();
        ASSERT_TRUE(answer->ok()) << answer->error().message();
        ASSERT_EQ(ranked(served.model(), **answer), want) << members << " members";
      }
    }
  }
}

// Claim: labels of records that do not fit into one answer come in several. The result stays the same,
// whatever members come and go in between.
TEST(FusedServing, LabelsInSeveralAnswers) {
  Served served({.features = 60, .labels = 200, .hidden = 96, .rows = 300}, PartInstances::kShare);
  served.limit_label_bytes(100);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Rng rng(seed, Purpose::kTest);
    ServedFleet fleet(served, 3, seed);
    for (int round = 0; round < 4; ++round) {
      const Queries queries(served.model(), testing::random_rows(rng, 60, 20));
      fleet.ask(queries.block(served.model()));
      auto answer = fleet.answer(static_cast<int>(rng.below(400)));
      if (round % 2 == 0) fleet->kill(fleet->members().begin()->first);
      fleet.join();
      if (!answer) answer = fleet.answer(60'000);
      ASSERT_TRUE(answer) << "seed " << seed << ", round " << round << "\n" << fleet->log();
      ASSERT_TRUE(answer->ok()) << answer->error().message();
      ASSERT_EQ(ranked(served.model(), **answer), one_process(served, queries.raw.view()))
          << "seed " << seed << ", round " << round;
    }
  }
}

// Claim: members that are killed, leave or join, in any round, change no answer.
TEST(FusedServing, MembersComeAndGo) {
  Served served({.features = 60, .labels = 200, .hidden = 96, .rows = 300}, PartInstances::kShare);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Rng rng(seed, Purpose::kTest);
    ServedFleet fleet(served, 4, seed);
    for (int round = 0; round < 12; ++round) {
      const Queries queries(served.model(),
                            testing::random_rows(rng, 60, 1 + static_cast<std::uint32_t>(rng.below(30))));
      fleet.ask(queries.block(served.model()));
      auto answer = fleet.answer(static_cast<int>(rng.below(80)));
      auto victim = fleet->members().begin();
      std::advance(victim, rng.below(fleet->members().size()));
      if (round % 3 == 0) fleet->kill(victim->first);
      if (round % 3 == 1) victim->second->drain("it was told to");
      fleet.join();
      if (!answer) answer = fleet.answer(60'000);
      ASSERT_TRUE(answer) << "seed " << seed << ", round " << round << "\n" << fleet->log();
      ASSERT_TRUE(answer->ok()) << answer->error().message();
      ASSERT_EQ(ranked(served.model(), **answer), one_process(served, queries.raw.view()))
          << "seed " << seed << ", round " << round;
    }
    EXPECT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
  }
}

// Claim: a hidden vector that overflows has no net and no hidden neighbours, as in one process. It harms no
// query beside it.
TEST(FusedServing, OverflowsAlone) {
  Served served({.features = 60, .labels = 77, .hidden = 48, .rows = 200}, PartInstances::kShare,
                [](Model& model) {
                  for (float& weight : std::span(model.network.embedding.weights(3), 48)) weight = 3e38F;
                });
  testing::OwnedRows rows;
  rows.begin = {0, 2, 3};
  rows.index = {3, 4, 5};
  rows.value = {9, 1, 0.5F};
  const Queries queries(served.model(), std::move(rows));
  ServedFleet fleet(served, 3);
  fleet.ask(queries.block(served.model()));
  const auto answer = fleet.answer(60'000);
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ(ranked(served.model(), **answer), one_process(served, queries.raw.view()));
}

net::Message fused_question(Epoch epoch, std::uint32_t layer, std::uint32_t neighbours, std::string payload) {
  sparse_serving::Body body;
  body.mutable_question()->set_number(1);
  body.mutable_question()->set_epoch(epoch.value);
  body.mutable_question()->set_layer(layer);
  body.mutable_question()->set_queries(1);
  body.mutable_question()->set_labels(5);
  body.mutable_question()->set_neighbours(neighbours);
  return {
      .channel = kQueryChannel, .body = body.SerializeAsString(), .payload = {Slice::of(std::move(payload))}};
}

// Claim: a question that no lead asks makes the member leave, with an error that says what was wrong.
TEST(FusedServing, RefusesQuestionsThatNobodyAsks) {
  Served served({.features = 60, .labels = 77, .hidden = 48, .rows = 50}, PartInstances::kShare);
  const std::string hidden(std::size_t{64} * 4, '\0');
  const std::string query = words({0, 1, 3, 0});
  const auto make = [&](Epoch epoch) {
    return std::vector<net::Message>{
        fused_question(epoch, 1, 10'001, hidden + query),             // more neighbours than a model may have
        fused_question(epoch, 1, 10, hidden),                         // no queries
        fused_question(epoch, 1, 10, hidden + query.substr(4)),       // cut off
        fused_question(epoch, 1, 10, hidden + words({0, 1, 60, 0})),  // a feature that there is not
        fused_question(epoch, 1, 10, hidden + query + query),         // bytes after the query
        fused_question(epoch, 1, 0, hidden + query),
        fused_question(epoch, 2, 0, words({50})),    // labels of a record that there is not
        fused_question(epoch, 2, 0, words({3, 3})),  // one record twice
        fused_question(epoch, 2, 0, "abc"),
        fused_question(epoch, 3, 0, hidden + query),                         // terms of no labels
        fused_question(epoch, 3, 0, hidden + query + words({0, 2, 5})),      // cut off
        fused_question(epoch, 3, 0, hidden + query + words({0, 1, 77})),     // a label that there is not
        fused_question(epoch, 3, 0, hidden + query + words({0, 2, 5, 5})),   // one label twice
        fused_question(epoch, 3, 0, hidden.substr(4) + query + words({0})),  // a shorter hidden layer
        fused_question(epoch, 4, 0, hidden),
    };
  };
  for (std::size_t i = 0; i < make(Epoch()).size(); ++i) {
    ServedFleet fleet(served, 1);
    fleet.ask(testing::OwnedRows{.begin = {0, 1}, .index = {1}, .value = {1}}.view(), 5);
    ASSERT_TRUE(fleet.answer(60'000));
    auto& [machine, process] = *fleet->members().begin();
    net::Message bad = make(Epoch(process->member()->installed().epoch()))[i];
    fleet->send(process->member()->self(), host::Lane::kControl, std::move(bad));
    for (int k = 0; k < 2000 && !process->done(); ++k) fleet->run_for(0.001);
    ASSERT_TRUE(process->engine().failure()) << i;
    EXPECT_EQ(process->engine().failure()->what, "the lead asked what cannot be answered") << i;
  }
}

// Claim: a member without training rows leaves with an error if it is asked for neighbours.
TEST(FusedServing, NoNeighboursWithoutRows) {
  Served served({.features = 60, .labels = 77, .hidden = 48, .rows = 50});
  for (const std::uint32_t layer : {1U, 2U, 3U}) {
    ServedFleet fleet(served, 1);
    fleet.ask(testing::OwnedRows{.begin = {0, 1}, .index = {1}, .value = {1}}.view(), 5);
    ASSERT_TRUE(fleet.answer(60'000));
    auto& [machine, process] = *fleet->members().begin();
    const Epoch epoch(process->member()->installed().epoch());
    fleet->send(
        process->member()->self(), host::Lane::kControl,
        fused_question(epoch, layer, 10, std::string(std::size_t{64} * 4, '\0') + words({0, 1, 3, 0})));
    for (int k = 0; k < 2000 && !process->done(); ++k) fleet->run_for(0.001);
    ASSERT_TRUE(process->engine().failure()) << layer;
  }
}

// One member that has all of a model with 10 labels and 5 training rows. It answers what the test wants.
class OneLiar : public ::testing::Test {
 protected:
  OneLiar() {
    sparse::NetworkPart part = with_shards(no_part(shape_), shape_, {0, 1});
    columns_of(part, 0) = {0, 16};
    sparse_serving::Body body;
    body.mutable_ready()->set_epoch(4);
    write_part(part, *body.mutable_ready()->mutable_part());
    Layout layout;
    LayoutMember& member = layout.members.emplace_back();
    member.node = peer_.node;
    member.after = part;
    queries_.placed(Epoch(4), write_layout(layout));
    EXPECT_TRUE(
        queries_.on(peer_, {.channel = kQueryChannel, .body = body.SerializeAsString(), .payload = {}}).ok());
    rows_ = {.begin = {0, 1}, .index = {2}, .value = {1}};
    queries_.ask({.rows = rows_.view(), .labels = 1, .compared = rows_.value, .neighbours = 2});
  }
  void answer(std::string payload) {
    testing::do_work(queries_);
    const auto out = queries_.take_out();
    ASSERT_EQ(out.size(), 1U);
    sparse_serving::Body asked;
    ASSERT_TRUE(asked.ParseFromString(out.front().message.body));
    sparse_serving::Body body;
    body.mutable_answer()->set_number(asked.question().number());
    (void)queries_.on(peer_, {.channel = kQueryChannel,
                              .body = body.SerializeAsString(),
                              .payload = {Slice::of(std::move(payload))}});
    testing::do_work(queries_);
    asked_ = joined(out.front().message.payload);
  }
  template <class T>
  static std::string bytes(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }
  [[nodiscard]] static std::string lists(std::uint32_t row) {
    return bytes<Scored>({{.id = 7, .score = 2}}) + bytes<FoundRow>({{row, 0.5F, 0.25F}, {1, 0.25F, 0.5F}}) +
           bytes<FoundRow>({{1, 0.25F, 0.5F}, {4, 0.0F, 0.25F}});
  }
  // Other processes are not to be told that their questions were wrong.
  void expect_refused() {
    const auto answer = queries_.take_answer();
    ASSERT_TRUE(answer && !answer->ok());
    EXPECT_EQ(answer->error().kind, ErrorKind::kFailed);
    EXPECT_EQ(answer->error().where, "node 5");
  }

  FleetShape shape_{.network = {.features = 4, .labels = 10, .hidden = 16}, .shard_shift = 3};
  FleetQueries queries_{{.shape = shape_, .instances = 5}};
  const net::PeerId peer_{NodeId(5), Incarnation(9)};
  testing::OwnedRows rows_;
  std::string asked_;
};

// Claim: an honest member's answers lead to the terms of the labels that it has named.
TEST_F(OneLiar, TellsTheTruth) {
  answer(std::string(64, '\0'));
  answer(lists(3));
  answer(bytes<std::uint32_t>({3, 0, 1, 3, 3, 2, 0, 9}));  // labels of rows 1, 3 and 4
  EXPECT_EQ(asked_, bytes<std::uint32_t>({1, 3, 4}));
  // Terms of the labels 0, 2, 7 and 9.
  answer(bytes<std::int64_t>({1LL << 33, 0, -(1LL << 32), 0}) + bytes<float>({1, 2, 1, 1, 5, 3, 6, 4}));
  EXPECT_TRUE(asked_.ends_with(bytes<std::uint32_t>({0, 4, 0, 2, 7, 9})));
  const auto found = queries_.take_answer();
  ASSERT_TRUE(found && found->ok());
  FusionOptions options;
  options.weights = {};
  options.weights[FusionTerm::kNet] = 1;
  options.weights[FusionTerm::kCentroid] = 1;
  Fusion fusion(options, PredictParts(), Fusion::Sources());
  std::vector<Scored> out(4);
  ASSERT_EQ((*found)->fused->rank(fusion, options, 0, (*found)->net[0], out), 4U);
  // Net: the listed score for 7 and the told scores for the others, less the best. Centroids: 2, 0, -1.5, 0.
  EXPECT_EQ(out, (std::vector<Scored>{{9, 4}, {0, 1}, {2, -1}, {7, -1.5F}}));
}

// Claim: labels missing in one answer are asked for again, and no others.
TEST_F(OneLiar, TellsTheTruthInParts) {
  answer(std::string(64, '\0'));
  answer(lists(3));
  answer(bytes<std::uint32_t>({1, 0, 1, 2}));  // labels of row 1
  answer(bytes<std::uint32_t>({2, 0, 2, 2, 0, 9}));
  EXPECT_EQ(asked_, bytes<std::uint32_t>({3, 4}));
  answer(bytes<std::int64_t>({1LL << 33, 0, -(1LL << 32), 0}) + bytes<float>({1, 2, 1, 1, 5, 3, 6, 4}));
  EXPECT_TRUE(asked_.ends_with(bytes<std::uint32_t>({0, 4, 0, 2, 7, 9})));
  const auto found = queries_.take_answer();
  EXPECT_TRUE(found && found->ok());
}

// Claim: a record number that there is not ends the block, with an error that names the member.
TEST_F(OneLiar, ListsThatCannotBe) {
  answer(std::string(64, '\0'));
  answer(lists(5));  // there are 5 rows
  expect_refused();
}

// Claim: lists that are cut off end the block in the same way.
TEST_F(OneLiar, ListsOfAnotherSize) {
  answer(std::string(64, '\0'));
  answer(lists(3).substr(12));
  expect_refused();
}

// Claim: labels of records that are cut off, too many, out of order or no labels of the network do so, too.
TEST_F(OneLiar, LabelsThatCannotBe) {
  for (const std::string& wrong :
       {std::string(), bytes<std::uint32_t>({3, 0, 1, 3, 3, 2, 0}),
        bytes<std::uint32_t>({3, 0, 1, 3, 3, 2, 0, 10}), bytes<std::uint32_t>({3, 0, 1, 3, 3, 2, 9, 0}),
        bytes<std::uint32_t>({3, 0, 1, 3, 2, 0, 9}), bytes<std::uint32_t>({3, 0, 0, 0, 0}) + "x",
        bytes<std::uint32_t>({4, 0, 0, 0, 0, 0}), bytes<std::uint32_t>({0, 0}),
        bytes<std::uint32_t>({4'000'000'000, 0})}) {
    static_cast<void>(queries_.take_out());
    queries_.ask({.rows = rows_.view(), .labels = 1, .compared = rows_.value, .neighbours = 2});
    answer(std::string(64, '\0'));
    answer(lists(3));
    answer(wrong);
    expect_refused();
  }
}

// Claim: terms of which a byte is missing do so, too.
TEST_F(OneLiar, TermsOfAnotherSize) {
  answer(std::string(64, '\0'));
  answer(lists(3));
  answer(bytes<std::uint32_t>({3, 0, 1, 3, 3, 2, 0, 9}));
  answer(std::string(4 * 8 + 8 * 4 - 1, '\0'));
  expect_refused();
}

}  // namespace
}  // namespace gossamer::sparse_engine
