// SPDX-License-Identifier: Apache-2.0
//
// write_model DIR: writes the small model of tests/golden/model_tensors.txt to DIR, in several shards, on the
// real disk. test_model_file.py reads it back as a Python user would.
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engines/sparse/model/model_file.h"
#include "host/posix/disk.h"

namespace {

using namespace gossamer;

constexpr std::size_t kFeatures = 3;
constexpr std::size_t kLabels = 2;
constexpr std::size_t kHidden = 16;

sparse_engine::Model small_model() {
  sparse_engine::Model model;
  model.network =
      sparse::Network({.features = kFeatures, .labels = kLabels, .hidden = kHidden}, sparse::Moments::kNone);
  // Powers of two and small integers are exact in decimal, f32 and bf16.
  const auto fill = [](sparse::RowTable& table, float base) {
    for (std::size_t r = 0; r < table.rows(); ++r) {
      for (std::size_t h = 0; h < kHidden; ++h) {
        table.weights(r)[h] = base + static_cast<float>(r) + static_cast<float>(h) / 16;
      }
    }
  };
  fill(model.network.embedding, 1);
  fill(model.network.output, -4);
  model.network.bias[0] = 0.5F;
  model.network.bias[1] = sparse::kUnseenBias;
  model.label_count = {2, 0};
  model.label_names.add("caf\xC3\xA9");
  model.label_names.add("");
  model.weighting.idf = {0, 0.25F, 1.5F};
  model.training_rows = 2;
  sparse_engine::Instances instances;
  instances.feature_begin = {0, 2, 3};
  instances.feature = {0, 2, 1};
  instances.value = {0.75F, 0.5F, 1};
  instances.label_begin = {0, 1, 2};
  instances.label = {0, 0};
  instances.hidden = AlignedArray<kernels::Bf16>(2 * kHidden);
  std::vector<float> hidden(instances.hidden.size());
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = static_cast<float>(i) / 32;
  kernels::kernels_for(kernels::Isa::kScalar).to_bf16(hidden.data(), instances.hidden.data(), hidden.size());
  model.instances = std::move(instances);
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2, argc);
  host::PosixDisk disk;
  const auto saved = sparse_engine::save_model(disk, argv[1], small_model(), {.max_shard_bytes = 256});
  CHECK(saved.ok(), saved.error().message());
  return 0;
}
