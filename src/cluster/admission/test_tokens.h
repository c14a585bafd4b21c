// SPDX-License-Identifier: Apache-2.0
//
// Tokens made of one digit, and the time at which tests hand them out. Only tests include it. Thread rule:
// plain values.
#pragma once

#include <cstdint>
#include <string>

#include "cluster/admission/token.h"

namespace gossamer::cluster {

inline constexpr std::int64_t kNow = 1'800'000'000;

inline Token token_of(char digit) {
  return {.at = {"host", 1},
          .id = std::string(16, digit),
          .secret = std::string(32, digit),
          .authority = std::string(64, digit)};
}

}  // namespace gossamer::cluster
