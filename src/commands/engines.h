// SPDX-License-Identifier: Apache-2.0
//
// The engines of the product, in the order of help texts. To add one, write its entry in a file of its own
// and list it here (CONTRIBUTING.md has the recipe).
//
// Thread rule: pure function.
#pragma once

#include "commands/engine/engine_list.h"

namespace gossamer::commands {

[[nodiscard]] EngineList product_engines();

// Trains and serves wide classifiers and embeddings.
[[nodiscard]] EngineEntry sparse_entry();
// Trains and asks language models, by libtorch.
[[nodiscard]] EngineEntry lm_entry();
// Shows that a fleet works.
[[nodiscard]] EngineEntry check_entry();

}  // namespace gossamer::commands
