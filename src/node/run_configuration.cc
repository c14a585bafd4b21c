// SPDX-License-Identifier: Apache-2.0
#include "node/run_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace gossamer::node {
namespace {

constexpr std::string_view kSupply = "supply-2 ";

// Takes the first line, without its end, off `bytes`.
std::string_view take_line(std::string_view& bytes) {
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(std::min(end + 1, bytes.size()));
  return line;
}

Result<Supply> take_supply(std::string_view& bytes) {
  const std::string_view line = take_line(bytes);
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size);
  if (error != std::errc() || end != line.data() + line.size() || size > bytes.size()) {
    return Error{.kind = ErrorKind::kBadData,
                 .what = "the configuration of the run is cut off",
                 .got = fmt::format("{} bytes behind its first lines", bytes.size()),
                 .expected = "the size of a supply, and as many bytes",
                 .fix = "look whether coordinator and node run the same version"};
  }
  auto supply = read_supply(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return supply;
}

}  // namespace

std::string run_words(std::string_view engine, Needs needs) {
  return fmt::format("{}{}", needs == Needs::kSupply ? kSupply : "", engine);
}

std::string run_configuration_bytes(const RunConfiguration& configuration) {
  const std::string line =
      fmt::format("{} {}\n", run_words(configuration.engine, configuration.needs()), configuration.program);
  if (!configuration.supply) return line + configuration.own;
  const std::string supply = supply_bytes(*configuration.supply);
  return fmt::format("{}{}\n{}{}", line, supply.size(), supply, configuration.own);
}

Result<RunConfiguration> read_run_configuration(std::string_view bytes) {
  std::string_view line = take_line(bytes);
  const bool with_supply = line.starts_with(kSupply);
  if (with_supply) line.remove_prefix(kSupply.size());
  const std::size_t end = std::min(line.find(' '), line.size());
  RunConfiguration configuration{.engine = std::string(line.substr(0, end)),
                                 .program = std::string(line.substr(std::min(end + 1, line.size()))),
                                 .own = {}};
  if (with_supply) {
    auto supply = take_supply(bytes);
    if (!supply.ok()) return supply.error();
    configuration.supply = *std::move(supply);
  }
  configuration.own = bytes;
  return configuration;
}

}  // namespace gossamer::node
