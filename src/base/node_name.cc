// SPDX-License-Identifier: Apache-2.0
#include "base/node_name.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <system_error>

namespace gossamer {

std::string certificate_name(NodeId node) { return fmt::format("node-{}", node.value); }

std::optional<NodeId> certified_node(std::string_view name) {
  constexpr std::string_view kPrefix = "node-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  // "node-07" names no node: a number has one way of being written.
  if (!whole || number == 0 || name.front() == '0') return std::nullopt;
  return NodeId(number);
}

}  // namespace gossamer
