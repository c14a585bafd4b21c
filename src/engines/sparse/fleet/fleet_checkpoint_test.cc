// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/sparse/network/network_pieces.h"
#include "learn/sparse/test_random_problem.h"
#include "tensors/fleet_files.h"

namespace gossamer::sparse_engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kDirectory = "/checkpoints";

// Widths that are not multiples of their blocks: 36 of 48 columns, 48 of 64 units.
const sparse::NetworkShape kNetwork{.features = 30, .labels = 19, .hidden = 36, .dense = {48}};
const sparse::TableMoments kMoments{.embedding = sparse::Moments::kBlock,
                                    .output = sparse::Moments::kElement};

class FleetCheckpointTest : public ::testing::Test {
 protected:
  // A network whose values follow from the seed, whatever its part and the order of its rows. So do moments
  // and last steps.
  sparse::Network network(const sparse::NetworkPart& part, unsigned shift, std::uint64_t seed) {
    sparse::Network one(kNetwork, part, kMoments);
    one.order = sparse::RowOrder(counts_.count, shift);
    sparse::initialize(one, {.embedding_stddev = 0.5F, .output_stddev = 0.5F, .seed = seed},
                       sparse::by_row(counts_, one.order).count, compute_);
    for (std::uint32_t row = 0; row < one.output.rows(); ++row) {
      if (!one.part.rows.contains(row)) continue;
      one.output.last_step(row) = 1 + one.order.label_of(row);
      std::fill_n(one.output.moment1(row), one.output.width(), 0.5F + one.output.weights(row)[0]);
      one.bias_moment2[row] = 2.0F + one.output.weights(row)[0];
    }
    return one;
  }
  sparse::NetworkPart part(host::Range columns, host::Range units, const std::set<std::size_t>& shards,
                           unsigned shift = 2) {
    const FleetShape shape{.network = kNetwork, .shard_shift = shift};
    sparse::NetworkPart one = with_shards(no_part(shape), shape, shards);
    one.columns = columns;
    one.units[0] = units;
    return one;
  }
  Result<void> save(std::uint64_t node, std::uint64_t step, const sparse::NetworkPart& held) {
    sparse::Network one = network(held, 2, step);
    return PartCopy({.network = kNetwork, .shard_shift = 2}, kMoments, one)
        .write(disk(), kDirectory, NodeId(node),
               {.next_step = StepNumber(step), .run_id = "a", .config_fingerprint = run_.fingerprint});
  }
  // Saves a whole checkpoint from two nodes. Each has pieces that the other lacks, and both have some pieces.
  void save_whole(std::uint64_t step) {
    ASSERT_TRUE(save(1, step, part({0, 32}, {0, 32}, {0, 2, 4})).ok());
    ASSERT_TRUE(save(2, step, part({16, 48}, {32, 64}, {1, 2, 3})).ok());
  }
  std::string file(std::uint64_t node, std::uint64_t step) {
    return kDirectory + "/step-" + std::string(10, '0') + std::to_string(step) + "." + std::to_string(node) +
           ".part";
  }
  void damage(const std::string& path, std::size_t at) {
    auto text = host::read_text(disk(), path);
    ASSERT_TRUE(text.ok());
    (*text)[at] ^= 1;
    ASSERT_TRUE(host::replace_file(disk(), path, *text).ok());
  }
  std::uint64_t newest() {
    const auto found =
        FleetCheckpoint::open_newest(disk(), kDirectory, run_, FleetCheckpoint::Verify::kAll, told());
    EXPECT_TRUE(found.ok()) << found.error().message();
    return found.ok() && found->has_value() ? (*found)->step().value : 0;
  }
  EventSink told() { return tell_; }
  void expect_restored(std::uint64_t step, const sparse::NetworkPart& held, unsigned shift) {
    const auto from = FleetCheckpoint::open(disk(), kDirectory, run_, StepNumber(step), told());
    ASSERT_TRUE(from.ok()) << from.error().message();
    sparse::Network got(kNetwork, held, kMoments);
    got.order = sparse::RowOrder(counts_.count, shift);
    const auto restored = from->restore(got, counts_.count, told());
    ASSERT_TRUE(restored.ok()) << restored.error().message();
    sparse::Network want = network(held, shift, step);
    const FleetShape shape{.network = kNetwork, .shard_shift = shift};
    for (const PieceId& id : pieces_of(shape, held)) {
      const sparse::NetworkPiece piece = piece_of(shape, id);
      std::vector<std::byte> got_bytes(sparse::piece_bytes(kNetwork, kMoments, piece));
      std::vector<std::byte> want_bytes(got_bytes.size());
      sparse::save_piece(got, piece, got_bytes);
      sparse::save_piece(want, piece, want_bytes);
      EXPECT_TRUE(got_bytes == want_bytes) << "piece " << id.index << " of layer " << id.layer;
    }
  }

  const CheckpointedRun run_{.network = kNetwork, .moments = kMoments, .fingerprint = "f"};
  const sparse::LabelCounts counts_ = sparse::random_counts(19, 4);
  host::SimCompute compute_{host::SimComputeOptions{.workers = 2}};
  [[nodiscard]] host::SimDisk& disk() { return use_ != nullptr ? *use_ : *disk_; }
  std::optional<host::SimDisk> disk_{std::in_place};
  host::SimDisk* use_ = nullptr;
  std::vector<std::string> events_;
  std::function<void(std::string_view, EventFields)> tell_ = [this](std::string_view name, EventFields) {
    events_.emplace_back(name);
  };
};

// The state that two nodes had is restored bit by bit, in any part and with shards of any size. A member that
// holds everything gets it, too.
TEST_F(FleetCheckpointTest, GoesToAnyParts) {
  ASSERT_TRUE(disk().make_directories(kDirectory).ok());
  save_whole(12);
  EXPECT_EQ(newest(), 12u);
  expect_restored(12, sparse::whole(kNetwork), sparse::kOneShardShift);
  for (const unsigned shift : {1U, 2U, 3U}) {
    expect_restored(12, sparse::whole(kNetwork, shift), shift);
    expect_restored(12, part({16, 48}, {32, 64}, {1}, shift), shift);
    expect_restored(12, part({}, {}, {0, 2}, shift), shift);
  }
  EXPECT_TRUE(events_.empty());
}

// Files that lack a piece are no checkpoint. The checkpoint before them counts.
TEST_F(FleetCheckpointTest, CountsOnlyWhatIsWhole) {
  EXPECT_EQ(newest(), 0u);
  ASSERT_TRUE(disk().make_directories(kDirectory).ok());
  EXPECT_EQ(newest(), 0u);
  save_whole(12);
  ASSERT_TRUE(save(1, 24, part({0, 32}, {0, 32}, {0, 2, 4})).ok());
  EXPECT_EQ(newest(), 12u);
  EXPECT_EQ(FleetCheckpoint::open(disk(), kDirectory, run_, StepNumber(24), told()).error().kind,
            ErrorKind::kBadData);
  ASSERT_TRUE(save(2, 24, part({32, 48}, {32, 64}, {1})).ok());
  EXPECT_EQ(newest(), 12u);
  ASSERT_TRUE(save(3, 24, part({}, {}, {3})).ok());
  EXPECT_EQ(newest(), 24u);
  const auto files = tensors::list_fleet_files(disk(), kDirectory);
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->at(StepNumber(24)).size(), 3u);
}

// Claim: a damaged file is reported, and the checkpoint before is taken unless other files have the damaged
// piece. Either is restored whole. Any byte of a file may be wrong, and its end may be missing.
TEST_F(FleetCheckpointTest, DamagedFiles) {
  ASSERT_TRUE(disk().make_directories(kDirectory).ok());
  save_whole(12);
  save_whole(24);
  const auto good = host::read_text(disk(), file(1, 24));
  ASSERT_TRUE(good.ok());
  std::set<std::uint64_t> taken;
  for (std::size_t at = 0; at < good->size(); at += 97) {
    damage(file(1, 24), at);
    const std::uint64_t step = newest();
    // The byte may be padding between sections, the magic word at the beginning, or in a piece that the other
    // file has too.
    EXPECT_TRUE(step == 12 || step == 24) << at;
    EXPECT_TRUE(step == 24 || !events_.empty()) << at;
    expect_restored(step, sparse::whole(kNetwork, 2), 2);
    taken.insert(step);
    events_.clear();
    damage(file(1, 24), at);
  }
  EXPECT_EQ(taken, (std::set<std::uint64_t>{12, 24}));
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, good->size() / 2, good->size() - 1}) {
    ASSERT_TRUE(host::replace_file(disk(), file(1, 24), good->substr(0, size)).ok());
    EXPECT_EQ(newest(), 12u);
    EXPECT_THAT(std::exchange(events_, {}), ElementsAre("checkpoint_damaged"));
  }
  ASSERT_TRUE(host::replace_file(disk(), file(1, 24), *good).ok());
  EXPECT_EQ(newest(), 24u);
}

// A read of a damaged piece names the file.
TEST_F(FleetCheckpointTest, NamesTheDamagedFile) {
  ASSERT_TRUE(disk().make_directories(kDirectory).ok());
  save_whole(12);
  damage(file(1, 12), 64);
  const auto from = FleetCheckpoint::open(disk(), kDirectory, run_, StepNumber(12), told());
  ASSERT_TRUE(from.ok()) << from.error().message();
  sparse::Network got(kNetwork, sparse::whole(kNetwork), kMoments);
  const auto restored = from->restore(got, counts_.count, told());
  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(restored.error().where, file(1, 12));
}

// A piece that is damaged in one file is read from another that has it, and the damaged file is named. The
// order of the files does not matter.
TEST_F(FleetCheckpointTest, ReadsTheUndamagedCopy) {
  ASSERT_TRUE(disk().make_directories(kDirectory).ok());
  for (const std::uint64_t bad : {1U, 2U}) {
    for (const std::uint64_t node : {1U, 2U}) ASSERT_TRUE(save(node, 12, sparse::whole(kNetwork, 2)).ok());
    damage(file(bad, 12), 64);
    expect_restored(12, sparse::whole(kNetwork), sparse::kOneShardShift);
    const auto named = std::exchange(events_, {});
    EXPECT_EQ(named.size(), bad == 1 ? 1U : 0U);
  }
}

// A file with all pieces is within the bound of what is taken from a member, also where most of a row is
// padding.
TEST_F(FleetCheckpointTest, AFileIsWithinItsBound) {
  ASSERT_TRUE(disk().make_directories(kDirectory).ok());
  for (const std::uint32_t hidden : {1U, 15U, 16U, 17U, 36U}) {
    for (const sparse::TableMoments& moments :
         {kMoments, {.embedding = sparse::Moments::kElement, .output = sparse::Moments::kElement}}) {
      const sparse::NetworkShape narrow{.features = 3000, .labels = 2000, .hidden = hidden};
      const FleetShape shape{.network = narrow, .shard_shift = 2};
      sparse::Network network(narrow, sparse::whole(narrow, 2), moments);
      const tensors::CheckpointInfo info{.next_step = StepNumber(12),
                                         .run_id = std::string(10, 'a'),
                                         .config_fingerprint = std::string(100, 'f'),
                                         .losses = std::vector<double>(100, 1.0 / 3)};
      ASSERT_TRUE(PartCopy(shape, moments, network).write(disk(), kDirectory, NodeId(1), info).ok());
      const auto size = disk().file_size(file(1, 12));
      ASSERT_TRUE(size.ok());
      EXPECT_LE(*size, most_part_bytes(shape, moments)) << hidden;
      EXPECT_GT(*size, most_part_bytes(shape, moments) * 3 / 4) << hidden;
    }
  }
}

// A checkpoint of another configuration or other data is refused.
TEST_F(FleetCheckpointTest, RefusesAnotherRun) {
  ASSERT_TRUE(disk().make_directories(kDirectory).ok());
  save_whole(12);
  CheckpointedRun other = run_;
  other.fingerprint = "g";
  const auto found =
      FleetCheckpoint::open_newest(disk(), kDirectory, other, FleetCheckpoint::Verify::kAll, told());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(found.error().message(), HasSubstr("another configuration"));
}

// A disk that fails at any operation while a newer checkpoint is written loses nothing. Either the operation
// fails alone or the power fails after it. The older checkpoint stays, or the newer one is whole.
TEST_F(FleetCheckpointTest, FailuresLoseNothing) {
  const auto begin = [this](const host::SimDiskOptions& options) {
    disk_.emplace();
    ASSERT_TRUE(disk().make_directories(kDirectory).ok());
    ASSERT_TRUE(disk().sync_directory("/").ok());
    save_whole(12);
    disk().restart_count(options);
    static_cast<void>(save(1, 24, part({0, 32}, {0, 32}, {0, 2, 4})));
    static_cast<void>(save(2, 24, part({16, 48}, {32, 64}, {1, 2, 3})));
  };
  begin({});
  ASSERT_EQ(newest(), 24U);
  const std::uint64_t operations = disk().operations();
  for (std::uint64_t at = 0; at <= operations; ++at) {
    begin({.fail_at_operation = at});
    disk().restart_count({});
    expect_restored(newest(), sparse::whole(kNetwork), sparse::kOneShardShift);
    begin({.seed = at, .crash_at_operation = at});
    const auto later = disk().after_crash();
    use_ = later.get();
    const std::uint64_t step = newest();
    EXPECT_TRUE(step == 12 || step == 24) << step;
    expect_restored(step, sparse::whole(kNetwork), sparse::kOneShardShift);
    use_ = nullptr;
  }
  EXPECT_TRUE(events_.empty());
}

}  // namespace
}  // namespace gossamer::sparse_engine
