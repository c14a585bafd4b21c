// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/network_pieces.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/isa.h"
#include "learn/sparse/network/row_table.h"

namespace gossamer::sparse {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr PieceRowCheck::Limits kLimits{.weights = 100, .moments = 1000, .steps = 9};

// A row of a piece that step 4 has updated, and its check. Row 0 has gradients of 0.5 in all columns.
struct RowCase {
  RowCase(Moments kind, std::uint32_t layer)
      : piece{.layer = layer, .range = layer == 0 ? host::Range{0, 32} : host::Range{0, 1}},
        network({.features = 1, .labels = 1, .hidden = 32, .dense = {}}, kind),
        check(network.shape, {.embedding = kind, .output = kind}, options, piece, kLimits) {
    RowOptimizer optimizer(options);
    optimizer.begin_step(StepNumber{4}, 0.01F);
    const std::vector<float> gradient(32, 0.5F);
    RowTable& table = layer == 0 ? network.embedding : network.output;
    const auto c = optimizer.update(kernels::kernels_for(kernels::best_isa()), table, 0, gradient.data());
    if (layer > 0) optimizer.update_scalar(network.bias_scalar(0), 0.5F, c);
    const PieceRows rows(network, piece);
    row.resize(rows.row_bytes());
    rows.save(0, row);
  }

  template <class T>
  [[nodiscard]] std::optional<RowFault> with(std::size_t at, T value) const {
    std::vector<std::byte> bad = row;
    std::memcpy(bad.data() + at, &value, sizeof(value));
    return check.fault(bad);
  }

  OptimizerOptions options;
  NetworkPiece piece;
  Network network;
  PieceRowCheck check;
  std::vector<std::byte> row;
};

// Claim: each number of a row, whichever of them is wrong, is told by its kind. That is so with either kind
// of moments, and with the bias of an output row.
TEST(PieceRowCheck, TellsEachFault) {
  for (const Moments kind : {Moments::kElement, Moments::kBlock}) {
    const bool block = kind == Moments::kBlock;
    for (const std::uint32_t layer : {0U, 1U}) {
      SCOPED_TRACE(::testing::Message() << "block " << block << ", layer " << layer);
      const RowCase one(kind, layer);
      EXPECT_EQ(one.check.fault(one.row), std::nullopt);
      const std::size_t first = 32 * sizeof(float);
      const std::size_t second = first + 32 * (block ? sizeof(kernels::Bf16) : sizeof(float));
      const std::size_t seconds = block ? 2 : 32;
      const std::size_t step = second + seconds * sizeof(float);
      for (std::size_t i = 0; i < 32; ++i) {
        EXPECT_EQ(one.with(4 * i, 101.0F), RowFault::kWeight);
        EXPECT_EQ(one.with(4 * i, std::nanf("")), RowFault::kWeight);
        EXPECT_EQ(one.with(4 * i, -99.0F), std::nullopt);
        if (block) {
          EXPECT_EQ(one.with(first + 2 * i, std::uint16_t{0x447b}), RowFault::kFirstMoment);  // 1004
          EXPECT_EQ(one.with(first + 2 * i, std::uint16_t{0x7fc0}), RowFault::kFirstMoment);
          EXPECT_EQ(one.with(first + 2 * i, std::uint16_t{0x4479}), RowFault::kMoments);  // 996
        } else {
          EXPECT_EQ(one.with(first + 4 * i, -1001.0F), RowFault::kFirstMoment);
          EXPECT_EQ(one.with(first + 4 * i, std::nanf("")), RowFault::kFirstMoment);
          EXPECT_EQ(one.with(first + 4 * i, 999.0F), RowFault::kMoments);
        }
      }
      for (std::size_t i = 0; i < seconds; ++i) {
        EXPECT_EQ(one.with(second + 4 * i, -1.0F), RowFault::kSecondMoment);
        EXPECT_EQ(one.with(second + 4 * i, std::nanf("")), RowFault::kSecondMoment);
        EXPECT_EQ(one.with(second + 4 * i, kInfinity), std::nullopt);
        EXPECT_EQ(one.with(second + 4 * i, 0.0F), RowFault::kMoments);
      }
      EXPECT_EQ(one.with(step, std::uint32_t{0}), RowFault::kStep);
      EXPECT_EQ(one.with(step, std::uint32_t{9}), std::nullopt);
      EXPECT_EQ(one.with(step, std::uint32_t{10}), RowFault::kStep);
      if (layer == 0) continue;
      const std::size_t bias = step + sizeof(std::uint32_t);
      EXPECT_EQ(one.with(bias, 101.0F), RowFault::kWeight);
      EXPECT_EQ(one.with(bias + 4, 1001.0F), RowFault::kFirstMoment);
      EXPECT_EQ(one.with(bias + 8, -1.0F), RowFault::kSecondMoment);
      EXPECT_EQ(one.with(bias + 8, 0.0F), RowFault::kMoments);
      // A bias has its second moment for itself, also where 16 weights share one.
      float squares = 0;
      std::memcpy(&squares, one.row.data() + bias + 8, sizeof(squares));
      EXPECT_EQ(one.with(bias + 4, 9 * std::sqrt(squares)), RowFault::kMoments);
    }
  }
}

// Claim: every fault has words of its own.
TEST(PieceRowCheck, NamesFaults) {
  EXPECT_EQ(name(RowFault::kWeight), "a weight");
  EXPECT_EQ(name(RowFault::kFirstMoment), "a first moment");
  EXPECT_EQ(name(RowFault::kSecondMoment), "a second moment");
  EXPECT_EQ(name(RowFault::kMoments), "a first moment beside a second one");
  EXPECT_EQ(name(RowFault::kStep), "the step of an update");
}

}  // namespace
}  // namespace gossamer::sparse
