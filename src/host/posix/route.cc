// SPDX-License-Identifier: Apache-2.0
#include "host/posix/route.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "base/hex.h"
#include "base/sha256.h"
#include "host/posix/environment.h"
#include "host/system/addresses.h"
#include "host/system/descriptor.h"

namespace gossamer::host {
namespace {

std::string text_of(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int status = ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return status == 0 ? std::string(text.data()) : std::string();
}

Result<Route> route_by(const Endpoint& to, const addrinfo& address) {
  // Connecting a datagram socket chooses a route, and does no more.
  const Descriptor socket(::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* const raw = reinterpret_cast<sockaddr*>(&own);
  const bool found = socket.get() >= 0 && ::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0 &&
                     ::getsockname(socket.get(), raw, &size) == 0;
  const int error = errno;
  Route route{.own = found ? text_of(raw, size) : std::string(),
              .to = {.host = text_of(address.ai_addr, address.ai_addrlen), .port = to.port}};
  if (!route.own.empty() && !route.to.host.empty()) return route;
  return Error{.where = to_string(to),
               .what = "no way leads there",
               .got = std::strerror(error),
               .fix = "look at this machine's network"};
}

}  // namespace

Result<Route> route_to(const Endpoint& to) {
  const Result<Addresses> addresses = addresses_of(to, AddressUse::kReach);
  if (!addresses.ok()) return addresses.error();
  Result<Route> last = Error{.where = to_string(to), .what = "the name has no address"};
  for (const addrinfo* one = addresses->get(); one != nullptr && !last.ok(); one = one->ai_next)
    last = route_by(to, *one);
  return last;
}

bool has_address(const std::string& address) {
  const Result<Addresses> addresses = addresses_of({.host = address, .port = 0}, AddressUse::kListen);
  if (!addresses.ok()) return false;
  const addrinfo& first = **addresses;
  const Descriptor socket(::socket(first.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket.get() >= 0 && ::bind(socket.get(), first.ai_addr, first.ai_addrlen) == 0;
}

std::string network_stack() {
  std::error_code none;
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/net", none).string();
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  // Where the system gives neither, the machine's name has to do.
  const std::string all = space.empty() || boot.empty() ? machine_name() : boot + " " + space;
  constexpr std::size_t kDigits = 16;
  return to_hex(sha256(all)).substr(0, kDigits);
}

}  // namespace gossamer::host
