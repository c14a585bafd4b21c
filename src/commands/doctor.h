// SPDX-License-Identifier: Apache-2.0
//
// The doctor looks at this machine the way the engines will use it, and says what to change.
//
// Thread rule: one thread. The doctor reads /proc and /sys through the Disk and writes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "commands/engine/engine_list.h"
#include "host/api/disk.h"
#include "kernels/isa.h"
#include "run/node_host.h"

namespace gossamer::commands {

enum class Health {
  kGood,
  kAdvice,  // works, but something could be better
  kBad,     // will not work
};

struct Finding {
  std::string_view name;  // "memory"
  Health health = Health::kGood;
  std::string found;
  std::string advice;  // empty when kGood
};

// Looks at the working directory and the machine of `host`. Cores and threads are those of its Compute.
[[nodiscard]] std::vector<Finding> examine(const run::NodeHost& host);

// Looks at what engines need beside the program. What is missing is no fault: other engines do without it.
[[nodiscard]] std::vector<Finding> examine_parts(host::Disk& disk, const EngineList& engines);

[[nodiscard]] std::string to_text(const std::vector<Finding>& findings);
// {"ok":true,"checks":[{"name","health","found","advice"}]}
[[nodiscard]] std::string to_json(const std::vector<Finding>& findings);
[[nodiscard]] bool healthy(const std::vector<Finding>& findings);

}  // namespace gossamer::commands
