// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/chunk_check.h"

#include <algorithm>

namespace gossamer::host {
namespace {

constexpr std::size_t kMostDigits = 8;

// -1 for what is no hexadecimal digit.
int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::size_t ChunkCheck::pass(std::string_view bytes) {
  std::size_t passed = 0;
  while (passed < bytes.size() && !ended()) {
    if (place_ == Place::kData) {
      const std::size_t some =
          static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - passed));
      passed += some;
      left_ -= some;
      if (left_ == 0) place_ = Place::kDataCr;
      continue;
    }
    next(bytes[passed]);
    if (refused()) return passed;
    ++passed;
  }
  return passed;
}

void ChunkCheck::next(char c) {
  const auto expect = [this, c](char wanted, Place then) { place_ = c == wanted ? then : Place::kRefused; };
  switch (place_) {
    case Place::kSize:
      if (c == '\r' && digits_ > 0) {
        place_ = Place::kSizeEnd;
      } else {
        digit(c);
      }
      return;
    case Place::kSizeEnd: digits_ = 0; return expect('\n', left_ == 0 ? Place::kLastCr : Place::kData);
    case Place::kDataCr: return expect('\r', Place::kDataLf);
    case Place::kDataLf: return expect('\n', Place::kSize);
    case Place::kLastCr: return expect('\r', Place::kLastLf);
    case Place::kLastLf: return expect('\n', Place::kEnd);
    case Place::kData:
    case Place::kEnd:
    case Place::kRefused: return;
  }
}

void ChunkCheck::digit(char c) {
  const int value = digit_value(c);
  if (value < 0 || ++digits_ > kMostDigits) {
    place_ = Place::kRefused;
    return;
  }
  left_ = left_ * 16 + static_cast<std::uint64_t>(value);
}

}  // namespace gossamer::host
