// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/recovery/vault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/fleet/step/value_bounds.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

sparse::NetworkPart everything(const FleetShape& shape) {
  sparse::NetworkPart part = sparse::whole(shape.network);
  part.rows = {shape.network.labels, shape.shard_shift};
  return part;
}

// The first row that a step has changed. Requires one.
std::size_t first_changed(const sparse::PieceRows& rows) {
  std::size_t row = 0;
  while (rows.last_step(row) == 0) ++row;
  return row;
}

// A member that holds everything and learns, and one that keeps copies of some pieces.
class VaultTest : public ::testing::Test {
 protected:
  VaultTest() {
    for (const PieceId& piece : pieces_of(problem_.shape(), network_->part)) sources_[piece] = network_.get();
  }

  void train(std::uint64_t from, std::uint64_t to) {
    for (StepNumber step(from); step.value < to; ++step)
      learner_.step(job_->steps.read(step), step, {.learning_rate = job_->schedule.learning_rate(step)});
  }
  [[nodiscard]] Slices delta(const Pieces& has, std::uint64_t since) {
    return *make_delta(
        *job_, sources_,
        {.keeps = keeps_, .has = has, .since = StepNumber(since), .step = StepNumber(40), .memory = memory_});
  }
  [[nodiscard]] Result<void> apply(std::uint64_t step, const Slices& delta) {
    return vault_.apply(StepNumber(step), std::vector<Slices>{{}, delta});
  }
  [[nodiscard]] std::vector<std::byte> saved(sparse::Network& network, const sparse::NetworkPiece& piece) {
    std::vector<std::byte> bytes(sparse::piece_bytes(problem_.shape().network, job_->moments, piece));
    sparse::save_piece(network, piece, bytes);
    return bytes;
  }
  // Compares the holder with a network of initial values and the copies.
  void expect_equal() {
    const auto restored = initial_network(*job_, everything(problem_.shape()));
    for (const PieceId& id : keeps_) {
      const sparse::NetworkPiece piece = piece_of(problem_.shape(), id);
      ASSERT_TRUE(vault_.has(id));
      sparse::load_updated_rows(*restored, piece, vault_.bytes(id));
      EXPECT_EQ(saved(*restored, piece), saved(*network_, piece)) << id.layer << "," << id.index;
    }
  }

  const simulation::TinyProblem problem_{{.dense = {96, 64}, .steps = 40}};
  std::shared_ptr<const FleetJob> job_ = problem_.make_job();
  std::unique_ptr<sparse::Network> network_ = initial_network(*job_, everything(problem_.shape()));
  sparse::Learner learner_{
      {.network = *network_, .labels = job_->labels, .kernels = job_->kernels, .compute = job_->compute},
      job_->learner};
  PieceSources sources_;
  BlockPool memory_;
  // The last columns are mostly padding.
  const Pieces keeps_{{0, 0}, {0, 7}, {1, 2}, {2, 0}, {3, 0}, {3, 17}, {3, 37}};
  Vault vault_{*job_};
};

// Claim: copies are what their holder had at each snapshot, bit for bit. The first snapshot has all that is
// not initial, later ones have what has changed.
TEST_F(VaultTest, FollowsItsHolder) {
  train(0, 1);
  const Slices first = delta({}, 0);
  ASSERT_TRUE(apply(1, first).ok());
  expect_equal();
  train(1, 2);
  const Slices second = delta(keeps_, 1);
  EXPECT_LT(total_bytes(second), total_bytes(delta({}, 0)));
  ASSERT_TRUE(apply(2, second).ok());
  expect_equal();
  ASSERT_TRUE(apply(2, delta(keeps_, 2)).ok());  // nothing has changed
  expect_equal();
}

// Claim: the vault keeps nothing for rows that no step has changed.
TEST_F(VaultTest, KeepsNoInitialValues) {
  train(0, 1);
  ASSERT_TRUE(apply(1, delta({}, 0)).ok());
  std::size_t untouched = 0;
  for (const PieceId& id : keeps_) {
    const sparse::NetworkPiece piece = piece_of(problem_.shape(), id);
    const sparse::PieceRows rows(*network_, piece);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (rows.last_step(row) != 0) continue;
      const std::size_t bytes = vault_.bytes(id).size() / rows.size();
      for (const std::byte byte : vault_.bytes(id).subspan(row * bytes, bytes)) EXPECT_EQ(byte, std::byte{});
      ++untouched;
    }
  }
  EXPECT_GT(untouched, 0U);
}

// Claim: a later snapshot drops pieces that it does not have. Another snapshot of the same step does not.
TEST_F(VaultTest, DropsWhatIsNotSent) {
  train(0, 3);
  ASSERT_TRUE(apply(3, delta({}, 0)).ok());
  ASSERT_TRUE(vault_.apply(StepNumber(3), {}).ok());
  EXPECT_TRUE(vault_.has({3, 17}));
  ASSERT_TRUE(vault_.apply(StepNumber(4), {}).ok());
  EXPECT_FALSE(vault_.has({3, 17}));
}

// Claim: bytes that are no delta to the copies here are refused, and nothing changes. They may be cut
// anywhere, name pieces that do not exist or are not here, or name a piece twice.
TEST_F(VaultTest, RefusesWhatIsNone) {
  train(0, 2);
  ASSERT_TRUE(apply(2, delta({}, 0)).ok());
  expect_equal();
  train(2, 3);
  const std::string good = joined(delta(keeps_, 2));
  Rng rng(1, Purpose::kTest);
  for (int i = 0; i < 200; ++i) {
    const std::size_t end = 1 + rng.below(good.size() - 1);
    const auto cut = apply(3, {Slice::of(good.substr(0, end))});
    if (cut.ok()) break;  // between two pieces: the others would be dropped
    EXPECT_FALSE(cut.error().got.empty());
    EXPECT_TRUE(vault_.has({3, 37}));
  }
  EXPECT_FALSE(Vault(*job_).apply(StepNumber(3), std::vector<Slices>{{Slice::of(good)}}).ok());
  EXPECT_FALSE(apply(3, {Slice::of(good + good)}).ok());
  std::string wrong = good;
  wrong[0] = 9;
  EXPECT_FALSE(apply(3, {Slice::of(wrong)}).ok());
  ASSERT_TRUE(apply(3, {Slice::of(good)}).ok());
  expect_equal();
}

// Claim: what a holder has sent is good, and within a bound near the bytes of its pieces. A delta is refused
// that lacks a piece, has one too many, has rows twice, or has a row with a number that cannot be: no number,
// a huge one, a negative square, a step to come.
TEST_F(VaultTest, RefusesWhatNoHolderHas) {
  train(0, 2);
  const std::string good = joined(delta({}, 0));
  const auto check = [&](const std::string& bytes, const Pieces& pieces, std::uint64_t step) {
    return vault_.check({Slice::of(bytes)}, {.pieces = pieces, .step = StepNumber(step)}).ok();
  };
  EXPECT_TRUE(check(good, keeps_, 2));
  EXPECT_FALSE(check(good, keeps_, 1));
  EXPECT_LE(good.size(), Vault::most_bytes(*job_, keeps_));
  std::uint64_t held = 0;
  for (const PieceId& id : keeps_)
    held += sparse::piece_bytes(problem_.shape().network, job_->moments, piece_of(problem_.shape(), id));
  EXPECT_LT(Vault::most_bytes(*job_, keeps_), held + held / 4);
  Pieces fewer = keeps_;
  fewer.erase({1, 2});
  EXPECT_FALSE(check(good, fewer, 2));
  Pieces more = keeps_;
  more.insert({3, 4});
  EXPECT_FALSE(check(good, more, 2));
  std::uint32_t rows = 0;
  std::memcpy(&rows, good.data() + 12, sizeof(rows));
  ASSERT_GT(rows, 1U);
  const std::size_t first = 16 + 4 * std::size_t{rows};
  const std::size_t columns = 16;
  const auto with = [&](std::size_t at, const auto& value) {
    std::string bad = good;
    std::memcpy(bad.data() + at, &value, sizeof(value));
    return bad;
  };
  for (const float number : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(),
                             4 * taken(kMostMoment)})
    EXPECT_FALSE(check(with(first, number), keeps_, 2)) << number;
  EXPECT_TRUE(check(with(first, -kMostWeight), keeps_, 2));
  EXPECT_TRUE(check(with(first, 1.5F * kMostWeight), keeps_, 2));
  EXPECT_FALSE(check(with(first, -4 * kMostWeight), keeps_, 2));
  const auto refused =
      vault_.check({Slice::of(with(first, 4 * kMostWeight))}, {.pieces = keeps_, .step = StepNumber(2)});
  EXPECT_THAT(refused.error().got, ::testing::HasSubstr("with a weight that cannot be"));
  // The second moments of a block of columns are one number, behind first moments of two bytes each.
  const std::size_t squares = first + columns * (sizeof(float) + 2);
  EXPECT_FALSE(check(with(squares, -1.0F), keeps_, 2));
  EXPECT_TRUE(check(with(squares, 1.0F), keeps_, 2));
  // No gradients give a first moment of 2^60 beside a second moment that is small: its weight would move by
  // 2^60 steps.
  const std::size_t halves = first + columns * sizeof(float);
  constexpr std::uint16_t kLarge = 0x5d80;
  EXPECT_FALSE(check(with(halves, kLarge), keeps_, 2));
  std::uint32_t row = 0;
  std::memcpy(&row, good.data() + 20, sizeof(row));
  EXPECT_FALSE(check(with(16, row), keeps_, 2));  // the first number is the second
}

// Claim: a holder whose weights are beyond the bound says so, and sends nothing.
TEST_F(VaultTest, ADivergedHolderSaysSo) {
  train(0, 2);
  sparse::PieceRows rows(*network_, piece_of(problem_.shape(), {0, 0}));
  std::vector<std::byte> row(rows.row_bytes());
  const std::size_t changed = first_changed(rows);
  rows.save(changed, row);
  const float huge = 2 * kMostWeight;
  std::memcpy(row.data(), &huge, sizeof(huge));
  rows.load(changed, row);
  const auto delta = make_delta(
      *job_, sources_,
      {.keeps = keeps_, .has = {}, .since = StepNumber(0), .step = StepNumber(2), .memory = memory_});
  ASSERT_FALSE(delta.ok());
  EXPECT_EQ(delta.error().what, "the network has diverged");
  EXPECT_EQ(delta.error().got, "a weight that cannot be");
  EXPECT_EQ(delta.error().expected, "numbers up to 1.05e+06");
}

// Claim: a first moment beyond the bound is given by nobody, and taken up to twice the bound.
TEST_F(VaultTest, FirstMomentsHaveABound) {
  train(0, 2);
  sparse::PieceRows rows(*network_, piece_of(problem_.shape(), {0, 0}));
  std::vector<std::byte> row(rows.row_bytes());
  const std::size_t changed = first_changed(rows);
  rows.save(changed, row);
  constexpr std::size_t kColumns = 16;
  constexpr std::uint16_t kBeyond = 0x7bc0;  // 1.5 * kMostMoment
  constexpr std::uint16_t kFar = 0x7cc0;     // 6 * kMostMoment
  const float endless = std::numeric_limits<float>::infinity();
  std::memcpy(row.data() + kColumns * (sizeof(float) + sizeof(kBeyond)), &endless, sizeof(endless));
  const auto with = [&row](std::uint16_t moment) {
    std::memcpy(row.data() + kColumns * sizeof(float), &moment, sizeof(moment));
    return std::span<const std::byte>(row);
  };
  const sparse::NetworkPiece piece = piece_of(problem_.shape(), {0, 0});
  const auto given = row_check(*job_, piece, RowsAre::kGiven, StepNumber(2));
  const auto taken = row_check(*job_, piece, RowsAre::kTaken, StepNumber(2));
  EXPECT_EQ(given.fault(with(kBeyond)), sparse::RowFault::kFirstMoment);
  EXPECT_EQ(taken.fault(with(kBeyond)), std::nullopt);
  EXPECT_EQ(taken.fault(with(kFar)), sparse::RowFault::kFirstMoment);
}

// Claim: a copy of a member is looked at row by row. Rows that no step has changed are not judged. The
// moments are judged by the decays of the run.
TEST_F(VaultTest, LooksAtCopies) {
  train(0, 2);
  ASSERT_TRUE(apply(2, delta({}, 0)).ok());
  const auto fault = [this](const PieceId& id, const FleetJob& job, float weight) {
    const auto kept = vault_.bytes(id);
    std::vector<std::byte> bytes(kept.begin(), kept.end());
    const sparse::NetworkPiece piece = piece_of(problem_.shape(), id);
    const sparse::PieceRows rows(*network_, piece);
    const std::size_t changed = first_changed(rows);
    if (weight != 0) std::memcpy(bytes.data() + changed * rows.row_bytes(), &weight, sizeof(weight));
    return fault_of(job, {Slice::copy_of(bytes)}, piece, StepNumber(2));
  };
  for (const PieceId& id : keeps_)
    EXPECT_EQ(fault(id, *job_, 0), std::nullopt) << id.layer << "," << id.index;
  EXPECT_EQ(fault({0, 0}, *job_, 1.5F * kMostWeight), std::nullopt);
  EXPECT_EQ(fault({0, 0}, *job_, 3 * kMostWeight), sparse::RowFault::kWeight);
  FleetJob other = *job_;
  other.learner.optimizer.beta1 = 0;
  other.learner.optimizer.beta2 = 0.01;
  EXPECT_EQ(fault({3, 0}, other, 0), sparse::RowFault::kMoments);
}

}  // namespace
}  // namespace gossamer::sparse_engine
