// SPDX-License-Identifier: Apache-2.0
#include "net/link/names.h"

namespace gossamer::net {

std::string printable(const std::string& text) {
  constexpr std::size_t kMost = 300;
  std::string shown = text.substr(0, kMost);
  for (char& one : shown) {
    if (one < ' ' || one > '~') one = '?';
  }
  return shown;
}

}  // namespace gossamer::net
