// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::sparse_engine {
namespace {

using testing::random_model;

// Claim: a model that could not be read is not saved. The earlier one stays, and the message names the
// training record or the tensor.
TEST(ModelFile, SavesNothingThatCannotBeRead) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const testing::RandomModelShape shape{.features = 9, .labels = 7, .hidden = 16, .rows = 6, .text = true};
  using Harm = std::function<void(Model&)>;
  const std::vector<std::pair<Harm, std::string>> harms = {
      {[](Model& m) { m.instances->value[m.instances->feature_begin[2]] = kNaN; }, "training record 3"},
      {[](Model& m) { m.instances->hidden.data()[std::size_t{5} * 16].bits = 0xFF80; }, "training record 6"},
      {[](Model& m) { m.network.embedding.weights(1)[2] = kNaN; }, "tensor embedding.weight"},
      {[](Model& m) { m.network.bias[0] = -std::numeric_limits<float>::infinity(); }, "tensor output.bias"},
      {[](Model& m) { m.weighting.idf[0] = kNaN; }, "tensor weighting.idf"},
      {[](Model& m) { m.fusion.weights[FusionTerm::kHidden] = kNaN; }, "fusion.weights.hidden"}};
  for (const auto& [harm, where] : harms) {
    host::SimDisk disk;
    ASSERT_TRUE(save_model(disk, "m", random_model(shape)).ok());
    const auto before = host::read_text(disk, "m/model.json");
    Model model = random_model(shape);
    harm(model);
    const auto saved = save_model(disk, "m", model);
    ASSERT_FALSE(saved.ok()) << where;
    EXPECT_EQ(saved.error().where, where);
    EXPECT_NE(saved.error().kind, ErrorKind::kFailed) << "that would be tried again";
    const auto loaded = load_model(disk, "m");
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    EXPECT_EQ(*host::read_text(disk, "m/model.json"), *before) << where;
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
