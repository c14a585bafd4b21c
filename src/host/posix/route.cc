// SPDX-License-Identifier: Apache-2.0
#include "host/posix/route.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "host/posix/descriptor.h"

namespace gossamer::host {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// The text, or why there is none.
Result<std::string> own_address(const Endpoint& to, const addrinfo& address) {
  const auto failed = [&to] {
    return Error{.where = to_string(to),
                 .what = "no way leads there",
                 .got = std::strerror(errno),
                 .fix = "look at this machine's network"};
  };
  // Connecting a datagram socket chooses a route, and does no more.
  const Descriptor socket(::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0 || ::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) return failed();
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* const raw = reinterpret_cast<sockaddr*>(&own);
  std::array<char, NI_MAXHOST> text{};
  if (::getsockname(socket.get(), raw, &size) != 0 ||
      ::getnameinfo(raw, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return failed();
  }
  return std::string(text.data());
}

}  // namespace

Result<std::string> address_towards(const Endpoint& to) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found);
  if (status != 0) {
    return Error{.where = to_string(to),
                 .what = "cannot find the name",
                 .got = ::gai_strerror(status),
                 .fix = "look at the name, and at this machine's DNS"};
  }
  const Addresses addresses(found);
  Result<std::string> last = Error{.where = to_string(to), .what = "the name has no address"};
  for (const addrinfo* one = addresses.get(); one != nullptr && !last.ok(); one = one->ai_next)
    last = own_address(to, *one);
  return last;
}

}  // namespace gossamer::host
