// SPDX-License-Identifier: Apache-2.0
#include "learn/data/utf8.h"

#include <utf8proc.h>

namespace gossamer::data {

std::size_t utf8_prefix(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t code = 0;
    const auto left = static_cast<utf8proc_ssize_t>(text.size() - at);
    const utf8proc_ssize_t length = utf8proc_iterate(bytes + at, left, &code);
    if (length <= 0) return at;
    at += static_cast<std::size_t>(length);
  }
  return text.size();
}

}  // namespace gossamer::data
