// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/listen_probe.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace gossamer::host {
namespace {

Error refuse(const Endpoint& at, const char* why, const char* fix) {
  return {.where = to_string(at), .what = fmt::format("cannot listen: {}", why), .fix = fix};
}

const char* fix_for(int error) {
  switch (error) {
    case EADDRINUSE:
      return "stop the process that listens there, or use another port; port 0 takes a free one";
    case EADDRNOTAVAIL: return "use an address of this machine, or 0.0.0.0 for all of them";
    case EACCES: return "use a port above 1023, or run as a user who may";
    default: return "use another address";
  }
}

}  // namespace

Result<void> probe_listen(const Endpoint& at) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found);
  if (status != 0) return refuse(at, gai_strerror(status), "write an address or a name of this machine");
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  int error = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const int socket_fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_fd < 0) {
      error = errno;
      continue;
    }
    // As servers do, or else a port would count as taken for a minute after its last connection.
    const int on = 1;
    (void)setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool good =
        bind(socket_fd, address->ai_addr, address->ai_addrlen) == 0 && listen(socket_fd, 1) == 0;
    error = errno;
    ::close(socket_fd);
    if (good) return {};
  }
  return refuse(at, std::strerror(error), fix_for(error));
}

}  // namespace gossamer::host
