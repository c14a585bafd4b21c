// SPDX-License-Identifier: Apache-2.0
//
// The options of a benchmark or a simulation, written "key=value". A table of names, ranges and places is
// enough for parsing, messages, help and JSON.
//
//   struct BenchThing { std::uint64_t rows = 10; };
//   BenchOptions table(BenchThing& o) { return {"bench thing", {{"rows", "of the thing", &o.rows, 1, 100}}};
//   }
//
// Thread rule: pure functions on plain values; a table borrows the options that it points into.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "run/node_host.h"

namespace gossamer::node {

struct BenchOption {
  std::string_view name;
  std::string_view help;
  std::variant<std::uint64_t*, double*> value;
  double min = 0;
  double max = 0;
  std::uint64_t multiple_of = 1;  // whole numbers only
};

struct BenchOptions {
  std::string_view command;  // for messages
  std::vector<BenchOption> options;
  // Options of other kinds, which the benchmark reads itself. Messages about unknown names can suggest them.
  std::vector<std::string_view> others = {};
};

struct BenchSetting {
  std::string_view name;
  std::string_view value;  // empty without '='
};
[[nodiscard]] BenchSetting split_bench_setting(std::string_view text);

// Sets one option from "rows=50". On kUsage nothing has changed; it names the nearest option or the range.
[[nodiscard]] Result<void> set_bench_option(const BenchOptions& table, std::string_view text);
// The kUsage error of an option that cannot have the value of `setting`.
[[nodiscard]] Error bad_bench_setting(std::string_view command, BenchSetting setting, std::string expected);

// A line for each option of the table with its present value, help and range.
[[nodiscard]] std::string bench_options_help(const BenchOptions& table);
// kFailed when a benchmark needs more bytes than this process may use; `fix` says what to lower.
[[nodiscard]] Result<void> check_bench_memory(const NodeHost& host, std::uint64_t needed, std::string fix);
// An object {name: present value}, in the table's order.
[[nodiscard]] nlohmann::ordered_json bench_options_json(const BenchOptions& table);

}  // namespace gossamer::node
