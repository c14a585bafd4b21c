// SPDX-License-Identifier: Apache-2.0
//
// Frames between two nodes as bytes: docs/protocols/link.md, "Frame". Encoding shares the payload's memory,
// decoding shares the frame's. A payload that is less than half of its frame is copied. Thread rule: plain
// functions.
#pragma once

#include <gossamer/link.pb.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/slice.h"

namespace gossamer::net {

inline constexpr std::uint32_t kWireMin = 1;
inline constexpr std::uint32_t kWireMax = 1;

inline constexpr std::uint64_t kMaxBodyBytes = 64ULL << 10;
inline constexpr std::uint64_t kMaxHeaderBytes = kMaxBodyBytes + 256;
inline constexpr std::uint64_t kMaxFrameBytes = 128ULL << 10;

struct Frame {
  wire::FrameHeader header;
  Slices payload;
};

// Requires a header within kMaxHeaderBytes, and a frame within kMaxFrameBytes.
[[nodiscard]] Slices encode_frame(const wire::FrameHeader& header, Slices payload = {});

// kBadData, without `where`, for a frame that is too short, too long, no protobuf or of no kind that we know.
// Also for a payload with a kind that has none.
[[nodiscard]] Result<Frame> decode_frame(Slices bytes);

// kBadData, without `where`: a frame that may not come now.
[[nodiscard]] Error unexpected_frame(const wire::FrameHeader& header, std::string expected);

}  // namespace gossamer::net
