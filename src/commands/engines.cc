// SPDX-License-Identifier: Apache-2.0
#include "commands/engines.h"

#include <utility>
#include <vector>

namespace gossamer::commands {

EngineList product_engines() { return EngineList({sparse_entry(), check_entry(), lm_entry()}); }

}  // namespace gossamer::commands
