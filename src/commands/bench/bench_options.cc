// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>
#include <vector>

#include "base/human_bytes.h"
#include "settings/key_value.h"

namespace gossamer::commands {
namespace {

using settings::KeyType;

template <class T>
T value_of(const std::string& text) {
  T value{};
  CHECK(settings::parse_number(text, value), text);
  return value;
}

}  // namespace

nlohmann::ordered_json bench_options_json(const settings::Values& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const settings::Key& key : options.keys().all()) {
    const std::string& text = options.text(key);
    if (key.type == KeyType::kText) continue;
    nlohmann::ordered_json& value = json[std::string(key.name)];
    if (key.type == KeyType::kInteger) value = value_of<std::uint64_t>(text);
    if (key.type == KeyType::kNumber) value = value_of<double>(text);
    if (key.type == KeyType::kSwitch) value = text == "true";
    if (key.type == KeyType::kChoice) value = text;
    if (key.type != KeyType::kList) continue;
    std::vector<std::uint32_t> list;
    CHECK(settings::read(text, key.rules, list), text);
    value = list;
  }
  return json;
}

Result<void> check_bench_memory(const run::NodeHost& host, std::uint64_t needed, std::string fix) {
  const std::uint64_t limit = host.compute.memory_limit_bytes();
  if (needed <= limit) return {};
  return Error{.kind = ErrorKind::kFailed,
               .where = {},
               .what = "the benchmark does not fit into memory",
               .got = fmt::format("{} needed", human_bytes(needed)),
               .expected = fmt::format("at most {}", human_bytes(limit)),
               .fix = std::move(fix)};
}

}  // namespace gossamer::commands
