// SPDX-License-Identifier: Apache-2.0
#include "net/link/names.h"

#include <fmt/format.h>

namespace gossamer::net {

std::string certificate_name(NodeId node) { return fmt::format("node-{}", node.value); }

std::string printable(const std::string& text) {
  constexpr std::size_t kMost = 300;
  std::string shown = text.substr(0, kMost);
  for (char& one : shown) {
    if (one < ' ' || one > '~') one = '?';
  }
  return shown;
}

}  // namespace gossamer::net
