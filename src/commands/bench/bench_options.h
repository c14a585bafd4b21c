// SPDX-License-Identifier: Apache-2.0
//
// What benchmarks share beside the tables of their options. Thread rule: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "run/node_host.h"
#include "settings/key_table.h"

namespace gossamer::commands {

// name: present value, in the table's order. Texts are left out: they name places on a machine.
[[nodiscard]] nlohmann::ordered_json bench_options_json(const settings::Values& options);
// kFailed when a benchmark needs more bytes than this process may use; `fix` says what to lower.
[[nodiscard]] Result<void> check_bench_memory(const run::NodeHost& host, std::uint64_t needed,
                                              std::string fix);

}  // namespace gossamer::commands
