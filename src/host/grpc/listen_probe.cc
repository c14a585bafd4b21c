// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/listen_probe.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "host/system/addresses.h"
#include "host/system/descriptor.h"

namespace gossamer::host {
namespace {

Error refuse(const Endpoint& at, std::string_view why, const char* fix) {
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
  const Result<Addresses> addresses = addresses_of(at, AddressUse::kListen);
  if (!addresses.ok()) return refuse(at, addresses.error().got, "write an address or a name of this machine");
  int error = 0;
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    const Descriptor socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) {
      error = errno;
      continue;
    }
    // Set as servers set it, or else a port would count as taken for a minute after its last connection.
    const int on = 1;
    (void)setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool good =
        bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 && listen(socket.get(), 1) == 0;
    if (good) return {};
    error = errno;
  }
  return refuse(at, std::strerror(error), fix_for(error));
}

}  // namespace gossamer::host
