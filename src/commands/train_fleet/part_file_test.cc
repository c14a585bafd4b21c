// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/part_file.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <map>

#include "commands/train_fleet/part_tensors.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/model/model_file.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/sparse/test_random_problem.h"

namespace gossamer::commands {
namespace {

constexpr const char* kPartDirectory = "/parts";

// A network in two parts. They have the weights of the whole one: initial ones.
class PartFileTest : public ::testing::Test {
 protected:
  sparse::Network network(const sparse::NetworkPart& part, sparse::Moments moments) {
    sparse::Network one(shape_.network, part, {.embedding = moments, .output = moments});
    one.order = order_;
    sparse::initialize(one, {.embedding_stddev = 0.5F, .output_stddev = 0.5F, .seed = 3},
                       sparse::by_row(counts_, order_).count, compute_);
    return one;
  }
  sparse::NetworkPart part(host::Range columns, host::Range units, const std::set<std::size_t>& shards) {
    sparse::NetworkPart one = sparse_engine::with_shards(sparse_engine::no_part(shape_), shape_, shards);
    one.columns = columns;
    one.units[0] = units;
    return one;
  }
  void save(std::uint64_t node, std::uint64_t step, const sparse::NetworkPart& held,
            const std::string& run = "a") {
    sparse::Network one = network(held, sparse::Moments::kElement);
    const auto saved =
        save_part(disk_, kPartDirectory,
                  {.node = NodeId(node), .step = StepNumber(step), .part = held, .run = run}, one);
    ASSERT_TRUE(saved.ok()) << saved.error().message();
  }
  std::vector<PartFile> listed(std::uint64_t step) {
    auto parts = list_parts(disk_, kPartDirectory, shape_, StepNumber(step));
    EXPECT_TRUE(parts.ok());
    return parts.ok() ? *std::move(parts) : std::vector<PartFile>();
  }

  // Widths are no multiples of their blocks: 52 of 64 columns, 48 of 64 units. There
  // are 5 shards, the last one short.
  const sparse_engine::FleetShape shape_{
      .network = {.features = 30, .labels = 19, .hidden = 52, .dense = {48}}, .shard_shift = 2};
  const sparse::LabelCounts counts_ = sparse::random_counts(19, 4);
  const sparse::RowOrder order_{counts_.count, shape_.shard_shift};
  host::SimCompute compute_{host::SimComputeOptions{.workers = 2}};
  host::SimDisk disk_;
};

bool equal(std::span<const float> a, std::span<const float> b) { return std::ranges::equal(a, b); }

// Parts that cover the network are the network, bit by bit, also where two overlap.
TEST_F(PartFileTest, PartsAreTheWhole) {
  save(2, 9, part({0, 32}, {32, 64}, {0, 3}));
  save(5, 9, part({16, 64}, {0, 32}, {1, 2, 4, 3}));
  save(6, 9, sparse_engine::no_part(shape_));
  const auto parts = listed(9);
  ASSERT_EQ(parts.size(), 3U);
  ASSERT_TRUE(cover(parts, shape_));
  auto got = put_together(disk_, parts, shape_, order_);
  ASSERT_TRUE(got.ok()) << got.error().message();
  sparse::Network want = network(sparse::whole(shape_.network, shape_.shard_shift), sparse::Moments::kNone);
  EXPECT_FALSE(std::ranges::is_sorted(order_.labels()));
  sparse::order_by_label(want);
  EXPECT_TRUE(equal(got->embedding.all_weights(), want.embedding.all_weights()));
  EXPECT_TRUE(equal(got->dense[0].weights.all_weights(), want.dense[0].weights.all_weights()));
  EXPECT_TRUE(equal(got->dense[0].bias.span(), want.dense[0].bias.span()));
  EXPECT_TRUE(equal(got->output.all_weights(), want.output.all_weights()));
  EXPECT_TRUE(equal(got->bias.span(), want.bias.span()));
}

// Parts that are read row by row are the tensors of a model, with output rows in the order of labels. The
// network is in no memory. Damage is noticed before that.
TEST_F(PartFileTest, PartsAreTensors) {
  save(2, 9, part({0, 32}, {32, 64}, {0, 3}));
  save(5, 9, part({16, 64}, {0, 32}, {1, 2, 4, 3}));
  save(6, 9, sparse_engine::no_part(shape_));
  const auto parts = listed(9);
  auto whole = put_together(disk_, parts, shape_, order_);
  ASSERT_TRUE(whole.ok());
  const auto from_files = PartTensors::open(disk_, parts, shape_, order_);
  ASSERT_TRUE(from_files.ok()) << from_files.error().message();
  sparse_engine::Model model;
  model.network = *std::move(whole);
  model.label_count = counts_.count;
  sparse_engine::Model shape;
  shape.network = sparse::Network(shape_.network, sparse::Moments::kNone);
  shape.label_count = counts_.count;
  ASSERT_TRUE(sparse_engine::save_model(disk_, "/memory", model).ok());
  ASSERT_TRUE(sparse_engine::save_model(disk_, "/files", shape, {.network = (*from_files)->tensors()}).ok());
  const auto files = disk_.list("/memory");
  ASSERT_TRUE(files.ok());
  EXPECT_GE(files->size(), 2U);
  for (const std::string& file : *files)
    EXPECT_EQ(*host::read_text(disk_, "/files/" + file), *host::read_text(disk_, "/memory/" + file)) << file;

  std::string bad = *host::read_text(disk_, parts[1].path);
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
  ASSERT_TRUE(host::replace_file(disk_, parts[1].path, bad).ok());
  const auto refused = PartTensors::open(disk_, parts, shape_, order_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
}

// Parts without a block of columns, a block of units or a shard do not cover the network.
// Parts of another step do not count.
TEST_F(PartFileTest, KnowsWhatIsMissing) {
  EXPECT_TRUE(listed(9).empty());
  save(2, 9, part({0, 64}, {0, 64}, {0, 1, 2, 3}));
  EXPECT_FALSE(cover(listed(9), shape_));
  save(3, 8, part({0, 64}, {0, 64}, {4}));
  EXPECT_FALSE(cover(listed(9), shape_));
  save(3, 9, part({}, {}, {4}));
  EXPECT_TRUE(cover(listed(9), shape_));
  save(2, 9, part({16, 64}, {0, 64}, {0, 1, 2, 3}));  // what it holds now replaces what it held
  EXPECT_FALSE(cover(listed(9), shape_));
  save(3, 9, part({0, 16}, {}, {4}));
  EXPECT_TRUE(cover(listed(9), shape_));
  save(2, 9, part({16, 64}, {32, 64}, {0, 1, 2, 3}));
  EXPECT_FALSE(cover(listed(9), shape_));
}

// Any byte that changes, and any end that is cut off, is noticed before the network is used.
TEST_F(PartFileTest, NoticesDamage) {
  save(2, 9, part({0, 64}, {0, 64}, {0, 1, 2, 3, 4}));
  const std::string path = listed(9).at(0).path;
  const std::string good = *host::read_text(disk_, path);
  const auto parts = listed(9);
  for (std::size_t at = 0; at < good.size(); at += 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    ASSERT_TRUE(host::replace_file(disk_, path, bad).ok());
    const auto got = put_together(disk_, parts, shape_, order_);
    ASSERT_FALSE(got.ok()) << at;
    EXPECT_EQ(got.error().kind, ErrorKind::kBadData);
    ASSERT_TRUE(host::replace_file(disk_, path, good.substr(0, at)).ok());
    EXPECT_FALSE(put_together(disk_, parts, shape_, order_).ok()) << at;
  }
}

// A disk that runs full leaves no file under the name, and none beside it.
TEST_F(PartFileTest, AppearsWholeOrNotAtAll) {
  host::SimDisk small({.capacity_bytes = 3000});
  const sparse::NetworkPart all = part({0, 64}, {0, 64}, {0, 1, 2, 3, 4});
  sparse::Network one = network(all, sparse::Moments::kElement);
  EXPECT_FALSE(
      save_part(small, kPartDirectory, {.node = NodeId(3), .step = StepNumber(9), .part = all}, one).ok());
  EXPECT_TRUE(small.list(kPartDirectory)->empty());
}

// A part that is delivered has nothing but what its member owned, of that run and step, undamaged. Its name
// says the same for every way of writing it.
TEST_F(PartFileTest, IsCheckedWhenItIsDelivered) {
  const auto held = part({0, 32}, {32, 64}, {0, 3});
  save(2, 9, held);
  const std::string path = std::string(kPartDirectory) + "/part-2-9";
  const auto check = [&](std::uint64_t node, std::uint64_t step, const sparse::NetworkPart& owned) {
    const auto done = check_part(disk_, path,
                                 {.shape = shape_,
                                  .name = {.node = NodeId(node), .step = StepNumber(step)},
                                  .owned = sparse_engine::pieces_of(shape_, owned),
                                  .run = "a"});
    EXPECT_TRUE(done.ok() || done.error().kind == ErrorKind::kBadData);
    return done.ok() ? "" : done.error().got;
  };
  EXPECT_EQ(check(2, 9, held), "");
  EXPECT_EQ(check(2, 9, part({0, 64}, {0, 64}, {0, 1, 3})), "");
  EXPECT_EQ(check(2, 9, part({0, 32}, {32, 64}, {0})), "more of the network than the node owned");
  EXPECT_EQ(check(2, 9, part({0, 16}, {32, 64}, {0, 3})), "more of the network than the node owned");
  EXPECT_EQ(check(3, 9, held), "node 2's of step 9");
  EXPECT_EQ(check(2, 8, held), "node 2's of step 9");
  const std::string good = *host::read_text(disk_, path);
  for (const std::size_t at : {std::size_t{40}, good.size() / 2, good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    ASSERT_TRUE(host::replace_file(disk_, path, bad).ok());
    EXPECT_NE(check(2, 9, held), "") << at;
  }
  save(2, 9, held, "b");
  EXPECT_EQ(check(2, 9, held), "a part of another run");
  save(2, 9, held, "");
  EXPECT_EQ(check(2, 9, held), "") << "an earlier version named no run";
  EXPECT_EQ(part_name({.node = NodeId(2), .step = StepNumber(9)}), "part-2-9");
  EXPECT_EQ(part_name(*read_part_name("part-002-09")), "part-2-9");
  for (const char* const other :
       {"", "part-", "part-2", "part-2-", "part-2-9x", "part--2-9", "part-2-9-9", "x"})
    EXPECT_FALSE(read_part_name(other)) << other;
}

// Claim: a header larger than any part needs is none. Its length might pass that of an int.
TEST_F(PartFileTest, RefusesLongHeaders) {
  const auto held = part({0, 32}, {32, 64}, {0, 3});
  save(2, 9, held);
  const std::string path = std::string(kPartDirectory) + "/part-2-9";
  const std::string good = *host::read_text(disk_, path);
  std::uint64_t size = 0;
  std::memcpy(&size, good.data(), sizeof(size));
  for (const std::size_t more : {std::size_t{1} << 20, std::size_t{17} << 20}) {
    // A field that no reader knows: number 15, bytes. Its length has four bytes of seven bits.
    std::string field = "\x7a";
    for (int i = 0; i < 4; ++i) field += static_cast<char>((more >> (7 * i) & 0x7F) | (i < 3 ? 0x80 : 0));
    field.append(more, 'x');
    std::string file = good;
    file.insert(sizeof(size) + size, field);
    const std::uint64_t longer = size + field.size();
    std::memcpy(file.data(), &longer, sizeof(longer));
    const std::uint64_t sum = XXH3_64bits(file.data(), file.size() - sizeof(sum));
    std::memcpy(file.data() + file.size() - sizeof(sum), &sum, sizeof(sum));
    ASSERT_TRUE(host::replace_file(disk_, path, file).ok());
    const auto done = check_part(disk_, path,
                                 {.shape = shape_,
                                  .name = {.node = NodeId(2), .step = StepNumber(9)},
                                  .owned = sparse_engine::pieces_of(shape_, held),
                                  .run = "a"});
    EXPECT_EQ(done.ok(), more == std::size_t{1} << 20) << more;
  }
}

}  // namespace
}  // namespace gossamer::commands
