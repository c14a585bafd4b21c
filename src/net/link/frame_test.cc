// SPDX-License-Identifier: Apache-2.0
#include "net/link/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>

#include "base/rng.h"

namespace gossamer::net {
namespace {

using ::testing::HasSubstr;

wire::FrameHeader data_header(std::uint64_t number, const std::string& body) {
  wire::FrameHeader header;
  header.mutable_data()->set_number(number);
  header.mutable_data()->mutable_start()->set_channel(3);
  header.mutable_data()->mutable_start()->set_body(body);
  return header;
}

// However the network cuts a frame, header and payload come back.
TEST(Frame, ComesBack) {
  Rng rng(1, Purpose::kTest);
  for (const std::size_t size : {0U, 1U, 3U, 1000U, 65536U}) {
    const std::string body(size, 'b');
    const std::string payload(std::min<std::size_t>(size * 2, 30'000), 'p');
    const std::string bytes =
        joined(encode_frame(data_header(7, body), {Slice::of(payload), Slice::of(payload)}));
    for (int round = 0; round < 20; ++round) {
      SliceReader reader({Slice::of(bytes)});
      Slices cut;
      while (reader.left() > 0) {
        const std::uint64_t part =
            1 + rng.below(round % 2 == 0 ? std::min<std::uint64_t>(reader.left(), 5000) : reader.left());
        for (Slice& slice : reader.take(std::min(part, reader.left()))) cut.push_back(std::move(slice));
      }
      const auto frame = decode_frame(std::move(cut));
      ASSERT_TRUE(frame.ok()) << frame.error().message();
      EXPECT_EQ(frame->header.data().number(), 7U);
      EXPECT_EQ(frame->header.data().start().body(), body);
      EXPECT_EQ(joined(frame->payload), payload + payload);
    }
  }
}

// Every truncation and every changed byte of a small frame gives a frame or an error, never a crash. A
// truncated header is always an error.
TEST(Frame, TruncatedAndChanged) {
  const std::string good =
      joined(encode_frame(data_header(300, "body"), {Slice::of(std::string("payload"))}));
  const std::size_t header_end = good.size() - 7;
  for (std::size_t length = 0; length < good.size(); ++length) {
    const auto frame = decode_frame({Slice::of(good.substr(0, length))});
    EXPECT_EQ(frame.ok(), length >= header_end) << length;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bad = good;
      bad[at] = static_cast<char>(value);
      const auto frame = decode_frame({Slice::of(std::move(bad))});
      EXPECT_TRUE(frame.ok() || frame.error().kind == ErrorKind::kBadData);
    }
  }
}

// A payload that is less than half of its frame keeps none of the frame's memory: its peer could write into
// headers what no reader counts. A larger one is shared.
TEST(Frame, SmallPayloadsKeepNoFrames) {
  const std::string known = data_header(1, "").SerializeAsString();
  for (const bool large : {false, true}) {
    std::string header = known;
    if (large) header += "\xa2\x06\xe0\xd4\x03" + std::string(60'000, 'u');  // field 100, unknown
    std::string bytes;
    for (const int shift : {0, 8, 16, 24})
      bytes.push_back(static_cast<char>((header.size() >> shift) & 0xff));
    const auto owner = std::make_shared<const std::string>(bytes + header + std::string(1000, 'p'));
    const auto frame = decode_frame({Slice(owner, std::as_bytes(std::span(*owner)))});
    ASSERT_TRUE(frame.ok()) << frame.error().message();
    EXPECT_EQ(joined(frame->payload), std::string(1000, 'p'));
    EXPECT_EQ(owner.use_count(), large ? 1 : 2);
  }
}

// The errors say what was wrong.
TEST(Frame, SaysWhatIsWrong) {
  const auto message = [](std::string bytes) {
    const auto frame = decode_frame({Slice::of(std::move(bytes))});
    return frame.ok() ? std::string("fine") : frame.error().message();
  };
  EXPECT_THAT(message("ab"), HasSubstr("2 bytes"));
  EXPECT_THAT(message(std::string("\xff\xff\xff\xff", 4)), HasSubstr("4294967295"));
  EXPECT_THAT(message(std::string("\0\0\0\0", 4)), HasSubstr("unknown kind"));
  EXPECT_THAT(message(std::string("\2\0\0\0\xff\xff", 6)), HasSubstr("no protobuf"));
  wire::FrameHeader ping;
  ping.mutable_ping()->set_token(1);
  EXPECT_EQ(message(joined(encode_frame(ping))), "fine");
  EXPECT_THAT(message(joined(encode_frame(ping)) + "x"), HasSubstr("1 bytes behind"));
  EXPECT_THAT(message(std::string(kMaxFrameBytes + 1, 'x')), HasSubstr("at most 131072"));
}

}  // namespace
}  // namespace gossamer::net
