// SPDX-License-Identifier: Apache-2.0
//
// The server of a process that has no descriptor left for a while, and nobody who could make room.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "host/posix/http/http_server.h"

namespace gossamer::host {
namespace {

constexpr std::string_view kLastRequest = "GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

// A client's socket that is there before it connects, so that it needs no descriptor then.
class EarlySocket {
 public:
  EarlySocket() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    CHECK(socket_ >= 0, errno);
    const timeval most{.tv_sec = 10, .tv_usec = 0};
    CHECK(::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0, errno);
  }
  EarlySocket(const EarlySocket&) = delete;
  EarlySocket& operator=(const EarlySocket&) = delete;
  ~EarlySocket() { ::close(socket_); }
  // Connects and asks for the page.
  void ask(int port) const {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(::connect(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0, errno);
    const ssize_t sent = ::send(socket_, kLastRequest.data(), kLastRequest.size(), MSG_NOSIGNAL);
    CHECK(sent == static_cast<ssize_t>(kLastRequest.size()), errno);
  }
  // Whether anything comes in so many milliseconds, be it the end.
  [[nodiscard]] bool hears_within(int milliseconds) const {
    pollfd entry{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, milliseconds) != 0;
  }
  // All that comes until the server ends the connection, or says nothing for ten seconds.
  [[nodiscard]] std::string answer() const {
    std::string text;
    char some[1000];
    for (ssize_t got = 0; (got = ::recv(socket_, some, sizeof(some), 0)) > 0;)
      text.append(some, static_cast<std::size_t>(got));
    return text;
  }

 private:
  int socket_;
};

// While it lives, this process gets no descriptor, whatever is closed.
class NoFurtherDescriptor {
 public:
  NoFurtherDescriptor() {
    CHECK(::getrlimit(RLIMIT_NOFILE, &before_) == 0, errno);
    const rlimit least{.rlim_cur = 1, .rlim_max = before_.rlim_max};  // poll() wants one
    CHECK(::setrlimit(RLIMIT_NOFILE, &least) == 0, errno);
    CHECK(::dup(STDERR_FILENO) < 0 && errno == EMFILE, errno);
  }
  NoFurtherDescriptor(const NoFurtherDescriptor&) = delete;
  NoFurtherDescriptor& operator=(const NoFurtherDescriptor&) = delete;
  ~NoFurtherDescriptor() { CHECK(::setrlimit(RLIMIT_NOFILE, &before_) == 0, errno); }

 private:
  rlimit before_{};
};

// Claim: a client that connects while the process gets no descriptor, and nobody can make room, is answered
// as soon as there are descriptors again.
TEST(HttpDescriptors, ComeBack) {
  const auto server = HttpServer::start({.endpoint = "", .pages = {{"/page", {.body = "fixed"}}}});
  ASSERT_TRUE(server.ok());
  const int port = (*server)->port();
  // The sanitizer of undefined behaviour opens a pipe where it meets a type for the first time.
  const EarlySocket before;
  before.ask(port);
  EXPECT_TRUE(before.answer().ends_with("fixed"));
  const EarlySocket first;
  const EarlySocket late;
  {
    const NoFurtherDescriptor none;
    // A thread that waits in accept() holds a descriptor already, for the first one that comes.
    first.ask(port);
    static_cast<void>(first.hears_within(500));
    late.ask(port);
    EXPECT_FALSE(late.hears_within(500));
  }
  EXPECT_TRUE(late.answer().ends_with("fixed"));
}

}  // namespace
}  // namespace gossamer::host
