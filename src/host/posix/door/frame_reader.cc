// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/frame_reader.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace gossamer::host {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr int kByteBits = 8;

}  // namespace

FrameReader::State FrameReader::take(std::string_view bytes) {
  if (state_ == State::kBroken) return state_;
  for (; head_ < kLengthBytes && !bytes.empty(); bytes.remove_prefix(1))
    length_ |= std::size_t{static_cast<unsigned char>(bytes.front())} << (kByteBits * head_++);
  const bool known = head_ == kLengthBytes;
  if (known && (length_ > most_ || bytes.size() > length_ - message_.size())) return state_ = State::kBroken;
  message_.append(bytes);
  if (known && message_.size() == length_) state_ = State::kWhole;
  return state_;
}

std::string framed(std::string_view message) {
  CHECK(message.size() <= std::numeric_limits<std::uint32_t>::max(), message.size());
  std::string frame;
  frame.reserve(kLengthBytes + message.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    frame.push_back(static_cast<char>(message.size() >> (kByteBits * i)));
  return frame.append(message);
}

}  // namespace gossamer::host
