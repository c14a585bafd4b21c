// SPDX-License-Identifier: Apache-2.0
//
// The other end of a TCP connection, in one form for sockets and for gRPC's names. Thread rule: plain values.
#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gossamer::host {

struct PeerAddress {
  std::array<std::uint8_t, 16> bytes{};  // IPv6; an IPv4 address a.b.c.d is ::ffff:a.b.c.d
  std::uint16_t port = 0;

  auto operator<=>(const PeerAddress&) const = default;
};

// The address in a socket's form; all zero for a family other than IPv4 and IPv6.
[[nodiscard]] PeerAddress peer_address(const sockaddr_storage& from);
// Reads gRPC's name of a peer, "ipv4:192.0.2.1:5000" or "ipv6:%5B2001:db8::1%5D:5000"; nothing for others.
[[nodiscard]] std::optional<PeerAddress> read_peer(std::string_view name);

[[nodiscard]] bool is_ipv4(const PeerAddress& peer);
// What all connections of one host have in common: an IPv4 address, or the first 64 bits of an IPv6 address.
// One machine may have all addresses of such a network. The rest and the port are 0.
[[nodiscard]] PeerAddress host_of(PeerAddress peer);
// The address without its port: "192.0.2.1", "2001:db8::1".
[[nodiscard]] std::string address_text(const PeerAddress& peer);
// "ipv4:192.0.2.1:5000", "ipv6:[2001:db8::1]:5000".
[[nodiscard]] std::string to_string(const PeerAddress& peer);

}  // namespace gossamer::host
