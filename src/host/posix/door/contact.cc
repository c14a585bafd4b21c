// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/contact.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gossamer::host {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

Error cannot_connect(const Endpoint& to, int error) {
  return {.where = to_string(to),
          .what = "cannot connect",
          .got = error == ETIMEDOUT ? "no answer in time" : std::strerror(error),
          .fix = "look whether the coordinator runs, and whether a firewall is in between"};
}

// A socket that is connected, or why it is not.
Result<Descriptor> connect_one(const Endpoint& to, const addrinfo& address, const Deadline& deadline) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return cannot_connect(to, errno);
  const int on = 1;
  static_cast<void>(setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return cannot_connect(to, errno);
  if (!deadline.wait(socket.get(), POLLOUT)) return cannot_connect(to, ETIMEDOUT);
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return cannot_connect(to, error);
  return socket;
}

}  // namespace

Deadline Deadline::share(int n) const { return Deadline({(end_ - clock_.now()).ns / n}, sign_); }

bool Deadline::wait(int fd, short events) const {
  for (;;) {
    const std::int64_t left = (end_ - clock_.now()).ns / kMillisecond;
    std::array<pollfd, 2> entries{pollfd{.fd = fd, .events = events, .revents = 0},
                                  pollfd{.fd = sign_, .events = POLLIN, .revents = 0}};
    const int ready = left <= 0 ? 0
                                : poll(entries.data(), sign_ < 0 ? 1 : 2,
                                       static_cast<int>(std::min<std::int64_t>(left, 1 << 30)));
    if (ready >= 0) return ready > 0 && entries[1].revents == 0;
    if (errno != EINTR) return true;  // whatever is wrong, the next call on the socket says it
  }
}

Result<Descriptor> connect_to(const Endpoint& to, const Addresses& addresses, const Deadline& deadline) {
  Error last = cannot_connect(to, EADDRNOTAVAIL);
  int untried = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) ++untried;
  // An address that swallows what is sent to it must not cost the others their time.
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Result<Descriptor> socket = connect_one(to, *address, deadline.share(untried--));
    if (socket.ok()) return socket;
    last = socket.error();
  }
  return last;
}

}  // namespace gossamer::host
