// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/instance_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engines/sparse/model/instance_index.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/model/test_overflown_model.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"

namespace gossamer::sparse_engine {
namespace {

class InstancePartTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = testing::random_model({.features = 30, .labels = 77, .hidden = 48, .rows = 301});
    save();
  }
  void save() { ASSERT_TRUE(save_model(disk_, "model", model_, {.max_shard_bytes = 8000}).ok()); }
  [[nodiscard]] sparse::NetworkPart part(const std::function<bool(std::size_t shard)>& holds) const {
    sparse::NetworkPart part = sparse::whole(model_.network.shape, 3);
    for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
      if (!holds(shard)) part.rows.drop(shard);
    }
    return part;
  }
  Result<ModelPart> load(const sparse::NetworkPart& part) {
    return load_model_part(disk_, "model", part, PartInstances::kShare, compute_);
  }
  // What is saved is bad data, told with its file, its tensor and its place.
  void expect_refused(const std::string& tensor, const std::string& place) {
    const auto loaded = load(part([](std::size_t shard) { return shard == 0; }));
    ASSERT_FALSE(loaded.ok()) << tensor;
    EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData);
    EXPECT_NE(loaded.error().message().find(tensor), std::string::npos) << loaded.error().message();
    EXPECT_NE(loaded.error().where.find(".safetensors"), std::string::npos) << loaded.error().message();
    EXPECT_NE(loaded.error().got.find(place), std::string::npos) << loaded.error().message();
  }

  host::SimDisk disk_;
  host::SimCompute compute_{{.workers = 3}};
  Model model_;
};

// Claim: a share has the rows that belong to its shards, as they were saved, and no others.
TEST_F(InstancePartTest, HasItsRows) {
  const sparse::NetworkPart third = part([](std::size_t shard) { return shard % 3 == 1; });
  const auto loaded = load(third);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const InstancePart& share = loaded->instances.value();
  ASSERT_EQ(share.number.size(), instance_rows(301, third.rows));
  ASSERT_EQ(share.rows.rows(), share.number.size());
  ASSERT_TRUE(std::ranges::is_sorted(share.number));
  const std::size_t width = 48;
  for (std::uint32_t r = 0; r < 301; ++r)
    ASSERT_EQ(std::ranges::count(share.number, r) == 1, holds_instance(301, third.rows, r)) << r;
  for (std::size_t i = 0; i < share.number.size(); ++i) {
    const std::uint32_t r = share.number[i];
    const data::SparseRow own = share.rows.features().row(i);
    const data::SparseRow saved = model_.instances->features().row(r);
    ASSERT_TRUE(std::ranges::equal(own.index, saved.index) && std::ranges::equal(own.value, saved.value))
        << r;
    ASSERT_TRUE(std::ranges::equal(share.rows.labels().row(i), model_.instances->labels().row(r))) << r;
    for (std::size_t h = 0; h < width; ++h)
      ASSERT_EQ(share.rows.hidden[i * width + h].bits, model_.instances->hidden[r * width + h].bits) << r;
  }
}

// Claim: every row belongs to one shard, however many there are of both.
TEST(InstanceRuns, ShareOutAllRows) {
  for (const std::size_t rows : {1U, 2U, 7U, 64U, 1000U}) {
    for (const std::size_t shards : {1U, 2U, 3U, 5U, 100U}) {
      std::vector<int> holders(rows, 0);
      for (std::size_t shard = 0; shard < shards; ++shard) {
        sparse::HeldRows held(shards, 0);
        for (std::size_t other = 0; other < shards; ++other) {
          if (other != shard) held.drop(other);
        }
        std::size_t count = 0;
        for (std::uint32_t row = 0; row < rows; ++row) {
          if (!holds_instance(rows, held, row)) continue;
          ++holders[row];
          ++count;
          const host::Range run = instance_run(rows, shards, shard);
          EXPECT_TRUE(row >= run.begin && row < run.end);
        }
        EXPECT_EQ(count, instance_rows(rows, held));
      }
      EXPECT_EQ(std::ranges::count(holders, 1), static_cast<std::ptrdiff_t>(rows)) << rows << " " << shards;
    }
  }
}

// Claim: the lengths of centroids follow from all rows, to the bit, on a machine with any number of workers.
TEST_F(InstancePartTest, KnowsTheLengthsOfCentroids) {
  const InstanceIndex whole(*model_.instances, {.features = 30, .labels = 77},
                            kernels::kernels_for(kernels::best_isa()), compute_);
  const sparse::NetworkPart half = part([](std::size_t shard) { return shard % 2 == 0; });
  std::vector<float> cosines(whole.padded_rows());
  for (std::size_t r = 0; r < 301; ++r) cosines[r] = 0.001F * static_cast<float>(r);
  for (const int workers : {1, 3, 4, 5, 16}) {
    host::SimCompute compute({.workers = workers});
    const auto loaded = load_model_part(disk_, "model", half, PartInstances::kShare, compute);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    std::size_t held = 0;
    for (std::uint32_t label = 0; label < 77; ++label) {
      if (!half.rows.contains(label)) continue;
      ++held;
      const float inverse = loaded->instances->inverse_lengths.of(label);
      EXPECT_EQ(centroid_cosine(whole.centroid_sum(label, cosines), inverse),
                whole.centroid_cosine(label, cosines))
          << "label " << label << ", " << workers << " workers";
    }
    EXPECT_EQ(loaded->instances->inverse_lengths.size(), held);
  }
}

// Claim: the choice of dense columns follows from all rows.
TEST_F(InstancePartTest, KnowsTheDenseColumns) {
  const auto loaded = load(part([](std::size_t shard) { return shard % 2 == 0; }));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  std::vector<std::uint32_t> size(30, 0);
  for (const std::uint32_t feature : model_.instances->feature) ++size[feature];
  std::size_t dense = 0;
  for (std::size_t f = 0; f < 30; ++f) {
    EXPECT_EQ(loaded->instances->dense[f] != 0, is_dense(size[f], 301)) << f;
    dense += loaded->instances->dense[f];
  }
  EXPECT_TRUE(dense > 0 && dense < 30) << dense;
}

// Claim: a damaged tensor is refused with its file, its name and the place in it, whichever node holds the
// row.
TEST_F(InstancePartTest, RefusesWhatIsDamaged) {
  struct Damage {
    std::string name;
    std::string place;
    std::function<void(Instances&)> damage;
  };
  const std::vector<Damage> damages{
      {"instances.feature_begin", "1000000 at 1", [](Instances& rows) { rows.feature_begin[1] = 1'000'000; }},
      {"instances.feature_begin", "1 at 0", [](Instances& rows) { rows.feature_begin[0] = 1; }},
      {"instances.label_begin", "1000000 at 300", [](Instances& rows) { rows.label_begin[300] = 1'000'000; }},
      {"instances.feature", "30 at 0, in record 0", [](Instances& rows) { rows.feature[0] = 30; }},
      {"instances.label", "77 at ", [](Instances& rows) { rows.label.back() = 77; }},
  };
  for (const auto& [name, place, damage] : damages) {
    model_ = testing::random_model({.features = 30, .labels = 77, .hidden = 48, .rows = 301});
    damage(*model_.instances);
    save();
    expect_refused(name, place);
  }
}

// Claim: so is a number that is not finite.
TEST_F(InstancePartTest, RefusesWhatIsNotFinite) {
  for (const auto& [name, place] :
       {std::pair("instances.value", "the one at 3"), {"instances.hidden", "row 0, column 3"}}) {
    save();
    testing::overflow(disk_, "model", name, 3);
    expect_refused(name, place);
  }
}

// Claim: a tensor of another shape, a second one of a name, and a missing one are refused.
TEST_F(InstancePartTest, RefusesOtherTensors) {
  const auto opened = open_model_header(disk_, "model");
  ASSERT_TRUE(opened.ok());
  InstancePartReader reader(opened->header, sparse::HeldRows(77, 3));
  const std::vector<std::byte> bytes(std::size_t{302} * 4);
  const tensors::TensorView begin{.dtype = tensors::DType::kU32, .shape = {302}, .bytes = bytes};
  EXPECT_TRUE(reader.add("f", "another", begin).ok());
  EXPECT_TRUE(reader.add("f", "instances.feature_begin", begin).ok());
  EXPECT_FALSE(reader.add("f", "instances.feature_begin", begin).ok());
  EXPECT_FALSE(reader.add("f", "instances.feature", begin).ok());
  EXPECT_FALSE(reader.add("f", "instances.label_begin", {tensors::DType::kF32, {302}, bytes}).ok());
  const auto finished = reader.finish("model", compute_);
  ASSERT_FALSE(finished.ok());
  EXPECT_NE(finished.error().message().find("instances."), std::string::npos);
}

}  // namespace
}  // namespace gossamer::sparse_engine
