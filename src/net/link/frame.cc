// SPDX-License-Identifier: Apache-2.0
#include "net/link/frame.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace gossamer::net {
namespace {

constexpr std::size_t kPrefix = 4;

Error malformed(std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .what = "malformed frame",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether both nodes run the same version"};
}

bool may_have_payload(const wire::FrameHeader& header) {
  return header.kind_case() == wire::FrameHeader::kData || header.kind_case() == wire::FrameHeader::kRelayed;
}

}  // namespace

Slices encode_frame(const wire::FrameHeader& header, Slices payload) {
  const std::size_t length = header.ByteSizeLong();
  CHECK(length <= kMaxHeaderBytes, length);
  std::vector<std::byte> front(kPrefix + length);
  for (std::size_t i = 0; i < kPrefix; ++i) front[i] = static_cast<std::byte>((length >> (8 * i)) & 0xff);
  CHECK(header.SerializeToArray(front.data() + kPrefix, static_cast<int>(length)));
  Slices frame;
  frame.reserve(1 + payload.size());
  frame.push_back(Slice::of(std::move(front)));
  for (Slice& slice : payload) frame.push_back(std::move(slice));
  const std::uint64_t total = total_bytes(frame);
  CHECK(total <= kMaxFrameBytes, total);
  return frame;
}

Result<Frame> decode_frame(Slices bytes) {
  const std::uint64_t total = total_bytes(bytes);
  if (total < kPrefix) return malformed(fmt::format("{} bytes", total), "at least 4");
  if (total > kMaxFrameBytes)
    return malformed(fmt::format("{} bytes", total), fmt::format("at most {}", kMaxFrameBytes));
  SliceReader reader(std::move(bytes));
  std::array<std::byte, kPrefix> prefix{};
  copy_front(reader.take(kPrefix), prefix);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kPrefix; ++i) length |= std::to_integer<std::uint64_t>(prefix[i]) << (8 * i);
  if (length > kMaxHeaderBytes || length > reader.left()) {
    return malformed(fmt::format("a header of {} bytes in a frame of {}", length, total),
                     fmt::format("at most {}, within the frame", kMaxHeaderBytes));
  }
  const Slices front = reader.take(length);
  Frame frame;
  // Nearly always one slice.
  const bool parsed = front.size() == 1
                          ? frame.header.ParseFromArray(front[0].bytes().data(), static_cast<int>(length))
                          : frame.header.ParseFromString(joined(front));
  if (!parsed) return malformed("a header that is no protobuf message", "a FrameHeader");
  if (frame.header.kind_case() == wire::FrameHeader::KIND_NOT_SET) {
    return malformed("a frame of an unknown kind", fmt::format("a kind of wire version {}", kWireMax));
  }
  frame.payload = reader.take(reader.left());
  if (!frame.payload.empty() && !may_have_payload(frame.header)) {
    return malformed(fmt::format("{} bytes behind a header of kind {}", total_bytes(frame.payload),
                                 static_cast<int>(frame.header.kind_case())),
                     "none");
  }
  // A peer may write what it likes into a header, and the payload would keep the memory of both.
  if (const std::uint64_t payload = total_bytes(frame.payload); payload > 0 && payload < total / 2) {
    std::vector<std::byte> copy(payload);
    copy_front(frame.payload, copy);
    frame.payload = {Slice::of(std::move(copy))};
  }
  return frame;
}

Error unexpected_frame(const wire::FrameHeader& header, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .what = "the peer broke the rules of the link",
          .got = fmt::format("a frame of kind {}", static_cast<int>(header.kind_case())),
          .expected = std::move(expected)};
}

}  // namespace gossamer::net
