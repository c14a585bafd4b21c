// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/request_head.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using State = HeadReader::State;

// Takes the text in pieces of `size` bytes; `used` counts what belongs to the head.
State read(HeadReader& reader, std::string_view text, std::size_t size, std::size_t& used) {
  State state = State::kMore;
  used = 0;
  while (state == State::kMore && used < text.size()) {
    std::size_t some = 0;
    state = reader.take(text.substr(used, size), some);
    used += some;
  }
  return state;
}

// The status of the refusal; 0 for a whole head, -1 for one that needs more.
int status_of(std::string_view text) {
  HeadReader reader;
  std::size_t used = 0;
  const State state = read(reader, text, text.size(), used);
  if (state == State::kRefused) return reader.refusal().status;
  return state == State::kWhole ? 0 : -1;
}

std::string post(std::string_view fields) {
  return fmt::format("POST /predict HTTP/1.1\r\nHost: x\r\n{}\r\n", fields);
}

// A head is read to its end, however it is cut. The library gets what somebody uses and nothing else.
TEST(HeadReader, Whole) {
  const std::string text = post(
      "CONTENT-TYPE:\t text/plain; charset=utf-8 \r\nContent-Length: 12\r\nRange: bytes=0-1\r\n"
      "X-Forwarded-For: \xC3\xA9\r\nExpect: 100-Continue\r\n");
  for (std::size_t size = 1; size < 200; ++size) {
    HeadReader reader;
    std::size_t used = 0;
    ASSERT_EQ(read(reader, text + "the body", size, used), State::kWhole);
    EXPECT_EQ(used, text.size());
    const RequestHead& head = reader.head();
    EXPECT_EQ(head.text,
              "POST /predict HTTP/1.1\r\nConnection: Keep-Alive\r\ncontent-length: 12\r\n"
              "content-type: text/plain; charset=utf-8\r\nexpect: 100-continue\r\n\r\n");
    EXPECT_EQ(head.body_bytes, 12U);
    EXPECT_FALSE(head.chunked || head.is_page || head.is_last);
  }
}

// What a client wants of the connection, in the words of both versions.
TEST(HeadReader, Last) {
  const auto is_last = [](const std::string& text) {
    HeadReader reader;
    std::size_t used = 0;
    EXPECT_EQ(read(reader, text, 1000, used), State::kWhole) << text;
    EXPECT_TRUE(reader.head().is_page);
    return reader.head().is_last;
  };
  EXPECT_FALSE(is_last("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_TRUE(is_last("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: TE , Close\r\n\r\n"));
  EXPECT_TRUE(is_last("GET / HTTP/1.1\r\nHost: x\r\nConnection: TE\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(is_last("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_FALSE(is_last("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

// Whatever one reader could take for another request than the next one is refused, in either order.
TEST(HeadReader, TwoReaders) {
  const std::vector<std::string> fields = {
      "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
      "Content-Length: 3\r\nContent-Length: 3\r\n",
      "Content-Length: 3\r\ncontent-length: 4\r\n",
      "Content-Length: 3, 3\r\n",
      "Content-Length: +3\r\n",
      "Content-Length: -3\r\n",
      "Content-Length: 03\r\n",
      "Content-Length: 0x3\r\n",
      "Content-Length: 3 3\r\n",
      "Content-Length:\r\n",
      "Content-Length: 18446744073709551619\r\n",
      "Content-Length : 3\r\n",
      " Content-Length: 3\r\n",
      "X: y\r\n Content-Length: 3\r\n",
      "X: y\r\n\tz\r\n",
      "Transfer-Encoding: chunked, chunked\r\n",
      "Transfer-Encoding: gzip, chunked\r\n",
      "Transfer-Encoding: xchunked\r\n",
      "Transfer-Encoding: identity\r\n",
      "Transfer-Encoding:\r\n",
      "Transfer-Encoding: \vchunked\r\n",
      "Transfer-Encoding: \"chunked\"\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
      "X: y\nContent-Length: 3\r\n",
      "X: y\rContent-Length: 3\r\n",
      "X: y\r\r\n",
      std::string("X: a\0b\r\n", 8),
      "X: \x7F\r\n",
      "Host: y\r\n",
      "Content-Type: text/plain\r\nContent-Type: application/json\r\n",
      "no colon\r\n",
      ": no name\r\n",
      "X\xC3\xA9: y\r\n",
      "X(1): y\r\n",
  };
  for (const std::string& each : fields) EXPECT_EQ(status_of(post(each)), 400) << each;
  EXPECT_EQ(status_of(post("X: a\tb \xFF\r\n")), 0);
  EXPECT_EQ(status_of(post("Transfer-Encoding: Chunked\r\n")), 0);
  EXPECT_EQ(status_of(post("Content-Length: 0\r\n")), 0);
  EXPECT_EQ(status_of(post("Expect: a-miracle\r\n")), 417);
}

// The request line has one form.
TEST(HeadReader, RequestLine) {
  for (const char* line : {"",
                           "GET",
                           "GET /",
                           "GET  / HTTP/1.1",
                           "GET / HTTP/1.1 ",
                           " GET / HTTP/1.1",
                           "GET\t/\tHTTP/1.1",
                           "get / HTTP/1.1",
                           "GET / HTTP/1.2",
                           "GET / HTTP/2.0",
                           "GET / HTTP/0.9",
                           "GET / http/1.1",
                           "GET / HTTP/01.1",
                           "GET x HTTP/1.1",
                           "GET http://x/ HTTP/1.1",
                           "GET * HTTP/1.1",
                           "GET /a b HTTP/1.1",
                           "GET /#a HTTP/1.1",
                           "GET /\xC3\xA9 HTTP/1.1",
                           "GET /\x01 HTTP/1.1",
                           "PRI * HTTP/2.0",
                           "GE:T / HTTP/1.1",
                           " / HTTP/1.1"}) {
    EXPECT_EQ(status_of(fmt::format("{}\r\nHost: x\r\n\r\n", line)), 400) << line;
  }
  EXPECT_EQ(status_of("GET /a?b=%20&c HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);  // no Host
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(status_of("GET / HTTP/1.1\n"), 400);  // at once, not when the time is over
}

// A body of parts is nobody's here, however its type is written. Other types go on.
TEST(HeadReader, BodiesOfParts) {
  for (const char* type : {"multipart/form-data; boundary=x", "Multipart/Form-Data", "multipart/mixed"})
    EXPECT_EQ(status_of(post(fmt::format("Content-Type: {}\r\n", type))), 415) << type;
  for (const char* type : {"application/json", "text/plain; x=multipart/form-data", "multipart"})
    EXPECT_EQ(status_of(post(fmt::format("Content-Type: {}\r\n", type))), 0) << type;
}

// A packed body is nobody's here, whatever packs it, and the library never hears of it.
TEST(HeadReader, PackedBodies) {
  for (const char* coding : {"br", "gzip", "deflate", "identity", ""}) {
    for (const char* name : {"Content-Encoding", "CONTENT-encoding"})
      EXPECT_EQ(status_of(post(fmt::format("{}: {}\r\n", name, coding))), 415) << name << coding;
  }
}

// Nobody says "go on" to a client that has no body to send.
TEST(HeadReader, ExpectWithoutBody) {
  HeadReader reader;
  std::size_t used = 0;
  ASSERT_EQ(read(reader, post("Expect: 100-continue\r\nContent-Length: 0\r\n"), 1000, used), State::kWhole);
  EXPECT_THAT(reader.head().text, Not(HasSubstr("expect")));
}

// A body comes where everybody looks for one.
TEST(HeadReader, BodyOfMethods) {
  for (const char* method : {"GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "WHAT"}) {
    const std::string begin = fmt::format("{} / HTTP/1.1\r\nHost: x\r\n", method);
    EXPECT_EQ(status_of(begin + "Content-Length: 5\r\n\r\n"), 400) << method;
    EXPECT_EQ(status_of(begin + "Transfer-Encoding: chunked\r\n\r\n"), 400) << method;
    EXPECT_EQ(status_of(begin + "Content-Length: 0\r\n\r\n"), 0) << method;
  }
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

// As many bytes and lines as are allowed pass, and one more does not, whether or not the head ever ends.
TEST(HeadReader, Limits) {
  std::string lines;
  for (std::size_t i = 0; i < kMostHeadLines - 2; ++i) lines += fmt::format("x{}: y\r\n", i);
  EXPECT_EQ(status_of(post(lines)), 0);
  EXPECT_EQ(status_of(post(lines + "x: y\r\n")), 431);
  const std::size_t others = post("X: \r\n").size();
  EXPECT_EQ(status_of(post(fmt::format("X: {}\r\n", std::string(kMostHeadBytes - others, 'y')))), 0);
  EXPECT_EQ(status_of(post(fmt::format("X: {}\r\n", std::string(kMostHeadBytes - others + 1, 'y')))), 431);
  EXPECT_EQ(status_of(std::string(kMostHeadBytes, 'G')), -1);
  EXPECT_EQ(status_of(std::string(kMostHeadBytes + 1, 'G')), 431);
}

// A refusal says what it saw, without a byte that could move a cursor.
TEST(HeadReader, Refusal) {
  HeadReader reader;
  std::size_t used = 0;
  ASSERT_EQ(read(reader, post("A\x1B[2J: x\r\n"), 7, used), State::kRefused);
  EXPECT_EQ(reader.refusal().error.where, "line 3 of the request's head");
  EXPECT_THAT(reader.refusal().error.got, HasSubstr("[2J"));
  EXPECT_THAT(reader.refusal().error.got, Not(HasSubstr("\x1B")));
}

}  // namespace
}  // namespace gossamer::host
