// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/chunk_check.h"

#include <gtest/gtest.h>

#include <string>

namespace gossamer::host {
namespace {

struct Seen {
  std::string passed;
  bool ended;
  bool refused;
};

// The text in pieces of `size` bytes.
Seen check(std::string_view text, std::size_t size) {
  ChunkCheck chunks;
  std::size_t passed = 0;
  while (passed < text.size() && !chunks.ended() && !chunks.refused()) {
    passed += chunks.pass(text.substr(passed, size));
  }
  return {std::string(text.substr(0, passed)), chunks.ended(), chunks.refused()};
}

// A body in the plain form passes up to its end, however it is cut, and what follows does not belong to it.
TEST(ChunkCheck, PlainForm) {
  for (const std::string body :
       {"0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "A\r\n0123456789\r\n00000001\r\n\n\r\n0\r\n\r\n",
        "a\r\n0\r\n\r\n0\r\n\r\n\r\n00\r\n\r\n"}) {
    for (std::size_t size = 1; size < 40; ++size) {
      const Seen seen = check(body + "GET / HTTP/1.1\r\n", size);
      EXPECT_EQ(seen.passed, body) << size;
      EXPECT_TRUE(seen.ended);
      EXPECT_FALSE(seen.refused);
    }
  }
}

// Each other form is refused: sizes that other readers read otherwise, ends that some forgive, extensions and
// trailers, which hide more requests.
TEST(ChunkCheck, OtherForms) {
  for (const char* body :
       {"\r\n", "x\r\n", "+3\r\nabc\r\n", "-3\r\n", "0x3\r\nabc\r\n", " 3\r\nabc\r\n", "3 \r\nabc\r\n",
        "3;a=b\r\nabc\r\n", "3\nabc\r\n", "3\r\nabc\n0\r\n", "3\r\nabcd\r\n", "3\rabc",
        "000000003\r\nabc\r\n", "100000000\r\n", "ffffffffffffffff\r\n", "0\r\nTrailer: x\r\n\r\n", "0\r\n\n",
        "3\r\nabc0\r\n\r\n"}) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{100}}) {
      const Seen seen = check(body, size);
      EXPECT_TRUE(seen.refused) << body;
      EXPECT_FALSE(seen.ended) << body;
    }
  }
}

// A body that is not there yet is neither ended nor refused.
TEST(ChunkCheck, Prefixes) {
  const std::string body = "3\r\nabc\r\n0\r\n\r\n";
  for (std::size_t length = 0; length < body.size(); ++length) {
    const Seen seen = check(body.substr(0, length), 100);
    EXPECT_FALSE(seen.ended || seen.refused) << length;
  }
}

}  // namespace
}  // namespace gossamer::host
