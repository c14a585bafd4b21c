// SPDX-License-Identifier: Apache-2.0
//
// FrameReader takes the bytes of one message, however they are cut: four bytes of length, little-endian, and
// the message. A connection at the door carries one message each way (docs/protocols/admission.md). A message
// that is too long is refused by its length, so that no memory is taken for it. Bytes behind the message are
// a fault.
//
// Thread rule: a plain object of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gossamer::host {

class FrameReader {
 public:
  enum class State : std::uint8_t { kMore, kWhole, kBroken };

  // `most`: bytes of the longest message that is taken.
  explicit FrameReader(std::size_t most) : most_(most) {}

  // Nothing is taken once the state is kBroken.
  State take(std::string_view bytes);
  [[nodiscard]] State state() const { return state_; }
  // The message. Requires kWhole.
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  const std::size_t most_;
  State state_ = State::kMore;
  std::size_t head_ = 0;  // bytes of the length that have come
  std::size_t length_ = 0;
  std::string message_;
};

// The length, then the message. Requires fewer than 2^32 bytes.
[[nodiscard]] std::string framed(std::string_view message);

}  // namespace gossamer::host
