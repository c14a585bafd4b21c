// SPDX-License-Identifier: Apache-2.0
//
// A module in place of gossamer_torch.so, for torch_library_test.cc: it makes toys. With TEST_OTHER_VERSION
// it is of a version that this program does not know.
#include "engines/pipeline/stage/toy_stage.h"
#include "engines/pipeline/torch/torch_module.h"

namespace {

#if defined(TEST_OTHER_VERSION)
constexpr std::uint32_t kVersion = gossamer::pipeline::kTorchModuleVersion + 1;
#else
constexpr std::uint32_t kVersion = gossamer::pipeline::kTorchModuleVersion;
#endif

gossamer::Result<std::unique_ptr<gossamer::pipeline::StageBackend>> make_toy(
    const gossamer::pipeline::TorchStageOptions& options) {
  return gossamer::pipeline::make_toy_stage({.vocabulary = options.shape.vocabulary, .layers = 1}, {},
                                            options.seed);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern const gossamer::pipeline::TorchModule gossamer_torch_module;
const gossamer::pipeline::TorchModule gossamer_torch_module = {
    .version = kVersion, .torch_version = "9.8.7", .make_stage = make_toy};
}
