// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/utf8_names.h"

#include <utf8proc.h>

#include <string>
#include <utility>

namespace gossamer::data {

std::optional<BadLine> find_bad_byte(std::string_view line) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(line.data());
  for (std::size_t at = 0; at < line.size();) {
    const auto byte = static_cast<unsigned char>(line[at]);
    if (byte > 0x20 && byte < 0x7F) {
      ++at;
      continue;
    }
    utf8proc_int32_t code = 0;
    const auto left = static_cast<utf8proc_ssize_t>(line.size() - at);
    const utf8proc_ssize_t length = utf8proc_iterate(bytes + at, left, &code);
    if (length <= 0) return bad_at(at, "the line is not UTF-8", quote(line.substr(at, 1)), "UTF-8");
    if ((code < 0x20 && code != '\t') || code == 0x7F) {
      return bad_at(at, "the line holds a control character", quote(line.substr(at, 1)),
                    "names of printable characters");
    }
    at += static_cast<std::size_t>(length);
  }
  return std::nullopt;
}

}  // namespace gossamer::data
