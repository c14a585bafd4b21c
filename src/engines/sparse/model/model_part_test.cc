// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/test_overflown_model.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {
namespace {

std::span<const float> row(const sparse::RowTable& table, std::size_t r) {
  return {table.weights(r), table.width()};
}
bool same_numbers(std::span<const float> a, std::span<const float> b) { return std::ranges::equal(a, b); }

class ModelPart : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = testing::random_model({.features = 30, .labels = 77, .hidden = 48, .dense = {64, 32}});
    for (float& bias : model_.network.bias.span())
      bias = static_cast<float>(&bias - model_.network.bias.data());
    save();
  }
  void save() { ASSERT_TRUE(save_model(disk_, "model", model_, {.max_shard_bytes = 8000}).ok()); }
  Result<sparse::Network> load(const sparse::NetworkPart& part) {
    auto loaded = load_model_part(disk_, "model", part, PartInstances::kNone, compute_);
    if (!loaded.ok()) return loaded.error();
    EXPECT_FALSE(loaded->instances);
    return std::move(loaded->network);
  }
  [[nodiscard]] sparse::NetworkPart part() const {
    sparse::NetworkPart part = sparse::whole(model_.network.shape, 3);
    part.columns = {32, 64};  // with padding
    part.units = {{32, 64}, {0, 32}};
    for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
      if (shard % 3 != 0) part.rows.drop(shard);
    }
    return part;
  }

  host::SimDisk disk_;
  host::SimCompute compute_{{}};
  Model model_;
};

// Claim: the part that was asked for is loaded, and nothing else.
TEST_F(ModelPart, HasWhatWasSaved) {
  const auto loaded = load(part());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const sparse::Network& all = model_.network;
  ASSERT_EQ(loaded->embedding.width(), 16U);
  for (std::size_t f = 0; f < 30; ++f)
    EXPECT_TRUE(same_numbers(row(loaded->embedding, f), row(all.embedding, f).subspan(32, 16)));
  ASSERT_EQ(loaded->dense[0].weights.rows(), 32U);
  for (std::size_t u = 0; u < 32; ++u) {
    EXPECT_TRUE(same_numbers(row(loaded->dense[0].weights, u), row(all.dense[0].weights, 32 + u)));
    EXPECT_EQ(loaded->dense[0].bias[u], all.dense[0].bias[32 + u]);
    EXPECT_TRUE(same_numbers(row(loaded->dense[1].weights, u), row(all.dense[1].weights, u)));
  }
  for (std::uint32_t l = 0; l < 77; ++l) {
    const bool held = l / 8 % 3 == 0;
    EXPECT_EQ(same_numbers(row(loaded->output, l), row(all.output, l)), held) << l;
    EXPECT_EQ(loaded->bias[l], held ? all.bias[l] : 0) << l;
  }
}

// Claim: a part may be all of the network, or nothing of it.
TEST_F(ModelPart, AllAndNothing) {
  const auto all = load(sparse::whole(model_.network.shape));
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(same_numbers(all->output.all_weights(), model_.network.output.all_weights()));
  EXPECT_TRUE(same_numbers(all->embedding.all_weights(), model_.network.embedding.all_weights()));
  sparse::NetworkPart none = part();
  none.columns = {0, 0};
  none.units = {{0, 0}, {0, 0}};
  for (std::size_t shard = 0; shard < none.rows.shards(); ++shard) none.rows.drop(shard);
  EXPECT_TRUE(load(none).ok());
}

// Claim: a damaged file is named, whether its part is asked for or not.
TEST_F(ModelPart, NamesWhatIsDamaged) {
  const auto files = disk_.list("model");
  ASSERT_TRUE(files.ok());
  for (const std::string& name : *files) {
    auto text = host::read_text(disk_, "model/" + name, 1 << 20);
    ASSERT_TRUE(text.ok());
    std::string damaged = *text;
    damaged[damaged.size() - 3] = static_cast<char>(damaged[damaged.size() - 3] ^ 0x40);
    ASSERT_TRUE(host::replace_file(disk_, "model/" + name, damaged).ok());
    const auto loaded = load(part());
    ASSERT_FALSE(loaded.ok()) << name;
    EXPECT_NE(loaded.error().message().find(name), std::string::npos) << loaded.error().message();
    ASSERT_TRUE(host::replace_file(disk_, "model/" + name, *text).ok());
  }
  EXPECT_TRUE(load(part()).ok());
}

// Claim: a number that is not finite is bad data in a part that is asked for.
TEST_F(ModelPart, RefusesWhatIsNotFinite) {
  testing::overflow(disk_, "model", "output.weight", std::size_t{3} * 32);
  const auto loaded = load(part());
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData);
  EXPECT_NE(loaded.error().message().find("output.weight"), std::string::npos);
  EXPECT_NE(loaded.error().where.find(".safetensors"), std::string::npos) << loaded.error().message();
  EXPECT_NE(loaded.error().got.find("row 3, column 0"), std::string::npos) << loaded.error().message();
}

// Claim: without its network a model has its shape, names and weighting, and no training rows.
TEST_F(ModelPart, ModelWithoutNetwork) {
  const auto model = load_model(disk_, "model", Reading::kWithoutNetwork);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->network.shape.labels, 77U);
  EXPECT_EQ(model->network.shape.dense, (std::vector<std::size_t>{64, 32}));
  EXPECT_EQ(model->network.embedding.rows(), 0U);
  EXPECT_FALSE(model->instances);
  EXPECT_EQ(model->label_count, model_.label_count);
  EXPECT_EQ(model->label_names.bytes, model_.label_names.bytes);
}

}  // namespace
}  // namespace gossamer::sparse_engine
