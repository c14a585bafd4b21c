// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/request_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "base/check.h"

namespace gossamer::host {
namespace {

using Got = TimedSocket::Got;

// Two ends of a connection; the test has the far one.
struct Pair {
  Pair() { CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  void write(std::string_view text) const {
    CHECK(::send(ends[1], text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
  void end() {
    ::close(ends[1]);
    ends[1] = -1;
  }

  std::array<int, 2> ends{};
};

SocketClock::time_point later() { return SocketClock::now() + std::chrono::hours(1); }

// Once the time is over nothing more is read or written, also where it would not have to wait.
TEST(TimedSocket, TimeIsOver) {
  const Pair pair;
  TimedSocket socket(pair.ends[0]);
  pair.write("ab");
  EXPECT_EQ(socket.wait_for_more(SocketClock::now()), Got::kLate);
  EXPECT_EQ(socket.ahead(), "");
  EXPECT_FALSE(socket.send(std::string(100'000'000, 'x'), SocketClock::now()));
  EXPECT_EQ(socket.wait_for_more(later()), Got::kBytes);
  EXPECT_EQ(socket.ahead(), "ab");
}

// Claim: what is larger than the socket holds is sent whole, as fast as the other end reads.
TEST(TimedSocket, WaitsForTheReader) {
  const Pair pair;
  std::string text;
  while (text.size() < 4'000'000) text += std::to_string(text.size()) + ' ';
  std::string read(text.size(), '?');
  std::thread reader([&] {
    CHECK(::recv(pair.ends[1], read.data(), read.size(), MSG_WAITALL) == static_cast<ssize_t>(read.size()));
  });
  const bool sent = TimedSocket(pair.ends[0]).send(text, later());
  if (!sent) static_cast<void>(::shutdown(pair.ends[0], SHUT_WR));
  reader.join();
  EXPECT_TRUE(sent);
  EXPECT_TRUE(read == text);
}

// Bytes that have come are kept until they are used, and the end is told once they are.
TEST(TimedSocket, Ahead) {
  Pair pair;
  TimedSocket socket(pair.ends[0]);
  pair.write("abc");
  ASSERT_EQ(socket.wait_for_more(later()), Got::kBytes);
  socket.use(1);
  EXPECT_EQ(socket.ahead(), "bc");
  pair.write("d");
  ASSERT_EQ(socket.wait_for_more(later()), Got::kBytes);
  EXPECT_EQ(socket.ahead(), "bcd");
  pair.end();
  EXPECT_EQ(socket.wait_for_more(later()), Got::kEnd);
  EXPECT_EQ(socket.ahead(), "bcd");
}

std::string all(RequestStream& stream, std::size_t size) {
  std::string text;
  std::string some(size, '?');
  for (ssize_t got = 0; (got = stream.read(some.data(), size)) > 0;)
    text += some.substr(0, static_cast<std::size_t>(got));
  return text;
}

// The library gets the head and the body, and not a byte more, however it reads.
TEST(RequestStream, EndsWithTheBody) {
  const RequestHead of_known = {.text = "head", .body_bytes = 5};
  const RequestHead of_chunks = {.text = "head", .chunked = true};
  for (std::size_t size = 1; size < 20; ++size) {
    const Pair pair;
    TimedSocket socket(pair.ends[0]);
    pair.write("12345NEXT");
    RequestStream known(socket, of_known, from_seconds(3600));
    EXPECT_FALSE(known.in_step());
    EXPECT_EQ(all(known, size), "head12345");
    EXPECT_TRUE(known.in_step());
    EXPECT_EQ(socket.ahead(), "NEXT");
    socket.use(4);
    pair.write("1\r\nx\r\n0\r\n\r\nNEXT");
    RequestStream chunks(socket, of_chunks, from_seconds(3600));
    EXPECT_EQ(all(chunks, size), "head1\r\nx\r\n0\r\n\r\n");
    EXPECT_TRUE(chunks.in_step());
    EXPECT_EQ(socket.ahead(), "NEXT");
  }
}

// A body that stops early, or whose chunks are in another form, is never in step. The reply to the latter is
// kept back.
TEST(RequestStream, OutOfStep) {
  const RequestHead of_three = {.body_bytes = 3};
  const RequestHead of_chunks = {.chunked = true};
  Pair pair;
  TimedSocket socket(pair.ends[0]);
  pair.write("1;x\r\n");
  RequestStream odd(socket, of_chunks, from_seconds(3600));
  EXPECT_EQ(all(odd, 10), "");
  EXPECT_TRUE(odd.broken());
  EXPECT_FALSE(odd.in_step());
  EXPECT_EQ(odd.write("reply", 5), 5);
  char c = 0;
  EXPECT_EQ(::recv(pair.ends[1], &c, 1, MSG_DONTWAIT), -1);

  socket.use(socket.ahead().size());
  RequestStream late(socket, of_three, from_seconds(0));
  EXPECT_EQ(all(late, 10), "");
  EXPECT_FALSE(late.in_step() || late.broken());
  pair.end();
  RequestStream cut(socket, of_three, from_seconds(3600));
  EXPECT_EQ(all(cut, 10), "");
  EXPECT_FALSE(cut.in_step() || cut.broken());
}

// Claim: the time of a reply begins with its own first byte. The 100 before the body, and the wait for the
// body, take nothing of it.
TEST(RequestStream, ReplyHasItsOwnTime) {
  constexpr auto kPatience = std::chrono::milliseconds(200);
  const RequestHead of_three = {.body_bytes = 3};
  const Pair pair;
  TimedSocket socket(pair.ends[0]);
  RequestStream request(socket, of_three, from_milliseconds(kPatience.count()));
  EXPECT_EQ(request.write("100", 3), 3);
  EXPECT_EQ(all(request, 10), "") << "it never comes";
  const auto begun = SocketClock::now();
  const std::string more_than_fits(4'000'000, 'x');
  EXPECT_EQ(request.write(more_than_fits.data(), more_than_fits.size()), -1);
  EXPECT_GE(SocketClock::now() - begun, kPatience);
}

}  // namespace
}  // namespace gossamer::host
