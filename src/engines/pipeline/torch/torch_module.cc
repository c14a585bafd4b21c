// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/torch/torch_module.h"

#include <torch/csrc/api/include/torch/version.h>

extern "C" {
__attribute__((visibility("default"))) extern const gossamer::pipeline::TorchModule gossamer_torch_module;
const gossamer::pipeline::TorchModule gossamer_torch_module = {
    .version = gossamer::pipeline::kTorchModuleVersion,
    .torch_version = TORCH_VERSION,
    .make_stage = gossamer::pipeline::make_torch_stage,
};
}
