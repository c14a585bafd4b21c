// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/listening.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "host/posix/door/peer_address.h"
#include "host/system/addresses.h"

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
    case EACCES: return "use a port above 1023, or as a user with that right";
    default: return "use another address";
  }
}

void set_flag(int socket, int level, int option, int value) {
  static_cast<void>(setsockopt(socket, level, option, &value, sizeof value));
}

// A socket that listens; without one, `error` says why.
std::optional<Descriptor> listen_one(const sockaddr* address, socklen_t size, Lane lane, int& error) {
  Descriptor socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() >= 0) {
    // Or else a port would count as taken for a minute after its last connection.
    set_flag(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    set_flag(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    if (address->sa_family == AF_INET6) set_flag(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    set_lane_options(socket.get(), lane);
    const bool good = bind(socket.get(), address, size) == 0 && listen(socket.get(), SOMAXCONN) == 0;
    if (good) return socket;
  }
  error = errno;
  return std::nullopt;
}

void set_port(sockaddr* address, std::uint16_t port) {
  if (address->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  if (address->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
}

std::uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const bool known = getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  return known ? peer_address(address).port : 0;
}

// All addresses of this machine by one socket; none where there is no IPv6.
std::optional<Descriptor> listen_everywhere(std::uint16_t port, Lane lane, int& error) {
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(port);
  return listen_one(reinterpret_cast<const sockaddr*>(&any), sizeof any, lane, error);
}

}  // namespace

void set_lane_options(int socket, Lane lane) {
  const char* const congestion = lane == Lane::kControl ? "cubic" : "bbr";
  static_cast<void>(setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion,
                               static_cast<socklen_t>(std::strlen(congestion))));
}

Result<Listening> listen_at(const Endpoint& at, Lane lane) {
  const Result<Addresses> addresses = addresses_of(at, AddressUse::kListen);
  if (!addresses.ok()) return refuse(at, addresses.error().got, "write an address or a name of this machine");
  Listening listening{.sockets = {}, .at = at};
  int error = 0;
  if (at.host == "0.0.0.0" || at.host == "::") {
    if (auto socket = listen_everywhere(at.port, lane, error))
      listening.sockets.push_back(*std::move(socket));
    if (error == EADDRINUSE || error == EACCES) return refuse(at, std::strerror(error), fix_for(error));
  }
  if (listening.sockets.empty()) {
    for (addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
      if (!listening.sockets.empty()) set_port(address->ai_addr, listening.at.port);
      auto socket = listen_one(address->ai_addr, address->ai_addrlen, lane, error);
      if (!socket) continue;
      listening.sockets.push_back(*std::move(socket));
      listening.at.port = port_of(listening.sockets.front().get());
    }
  }
  if (listening.sockets.empty()) return refuse(at, std::strerror(error), fix_for(error));
  listening.at.port = port_of(listening.sockets.front().get());
  return listening;
}

}  // namespace gossamer::host
