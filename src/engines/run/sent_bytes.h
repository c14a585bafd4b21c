// SPDX-License-Identifier: Apache-2.0
//
// SentBytes: what a member has handed to connections. Thread rule: plain values.
#pragma once

#include <cstdint>

namespace gossamer::engine {

// Bytes handed to connections by this life of the member, with all headers (net::Links::sent_bytes).
struct SentBytes {
  std::uint64_t steps = 0;
  std::uint64_t background = 0;  // snapshots, recoveries, control
};

}  // namespace gossamer::engine
