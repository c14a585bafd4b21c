// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/frame_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace gossamer::host {
namespace {

using Frame = FrameReader::State;

// However a message is cut into two, it arrives; it is there with its last byte, and not before.
TEST(FrameReader, AnyCut) {
  for (const std::size_t size : {0U, 1U, 5U, 300U}) {
    const std::string message(size, 'm');
    const std::string frame = framed(message);
    EXPECT_EQ(frame.size(), size + 4);
    for (std::size_t cut = 0; cut < frame.size(); ++cut) {
      FrameReader reader(300);
      EXPECT_EQ(reader.take(frame.substr(0, cut)), Frame::kMore);
      EXPECT_EQ(reader.take(frame.substr(cut)), Frame::kWhole) << size << " cut at " << cut;
      EXPECT_EQ(reader.message(), message);
    }
  }
}

// The length alone refuses a message that is too long, also one of nearly 2^32 bytes.
TEST(FrameReader, TooLong) {
  for (const std::string& head : {std::string("\x05\0\0\0", 4), std::string("\xff\xff\xff\xff", 4)}) {
    FrameReader reader(4);
    EXPECT_EQ(reader.take(head.substr(0, 3)), Frame::kMore);
    EXPECT_EQ(reader.take(head.substr(3)), Frame::kBroken);
    EXPECT_EQ(reader.take("x"), Frame::kBroken);
  }
}

// What follows a message is a fault, with it or later.
TEST(FrameReader, OneMessageAlone) {
  FrameReader together(4);
  EXPECT_EQ(together.take(framed("abcd") + "e"), Frame::kBroken);
  FrameReader later(4);
  EXPECT_EQ(later.take(framed("abc")), Frame::kWhole);
  EXPECT_EQ(later.take(""), Frame::kWhole);
  EXPECT_EQ(later.take("d"), Frame::kBroken);
}

}  // namespace
}  // namespace gossamer::host
