// SPDX-License-Identifier: Apache-2.0
#include "host/posix/route.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "host/system/addresses.h"
#include "host/system/descriptor.h"

namespace gossamer::host {
namespace {

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
  const Result<Addresses> addresses = addresses_of(to, AddressUse::kReach);
  if (!addresses.ok()) return addresses.error();
  Result<std::string> last = Error{.where = to_string(to), .what = "the name has no address"};
  for (const addrinfo* one = addresses->get(); one != nullptr && !last.ok(); one = one->ai_next)
    last = own_address(to, *one);
  return last;
}

}  // namespace gossamer::host
