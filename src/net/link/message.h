// SPDX-License-Identifier: Apache-2.0
//
// Message: what users of a link send and receive. Thread rule: plain value.
#pragma once

#include <cstdint>
#include <string>

#include "base/slice.h"

namespace gossamer::net {

inline constexpr std::uint64_t kMaxPayloadBytes = 1ULL << 30;

// `channel` says which user of the link the message is for, and so the type of the body. The body is a
// protobuf message of at most kMaxBodyBytes. The payload is tensors and other bulk, at most kMaxPayloadBytes,
// never copied.
struct Message {
  std::uint32_t channel = 0;
  std::string body;
  Slices payload;
};

// Bytes that each message counts beside its own, since it costs memory even where it has none.
inline constexpr std::uint64_t kMessageCost = 256;

// The bytes of a message that count against the window.
[[nodiscard]] inline std::uint64_t counted_bytes(const Message& message) {
  return kMessageCost + message.body.size() + total_bytes(message.payload);
}

}  // namespace gossamer::net
