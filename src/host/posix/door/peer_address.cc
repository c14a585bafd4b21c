// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/peer_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

namespace gossamer::host {
namespace {

constexpr std::size_t kNetworkBytes = 8;
constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

PeerAddress mapped(const in_addr& address, std::uint16_t port) {
  PeerAddress peer{.bytes = {}, .port = port};
  std::ranges::copy(kMapped, peer.bytes.begin());
  std::memcpy(peer.bytes.data() + kMapped.size(), &address, sizeof address);
  return peer;
}

PeerAddress plain(const in6_addr& address, std::uint16_t port) {
  PeerAddress peer{.bytes = {}, .port = port};
  std::ranges::copy(address.s6_addr, peer.bytes.begin());
  return peer;
}

}  // namespace

PeerAddress peer_address(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, &from, sizeof address);
    return mapped(address.sin_addr, ntohs(address.sin_port));
  }
  if (from.ss_family != AF_INET6) return {};
  sockaddr_in6 address{};
  std::memcpy(&address, &from, sizeof address);
  return plain(address.sin6_addr, ntohs(address.sin6_port));
}

std::optional<PeerAddress> read_peer(std::string_view name) {
  constexpr std::string_view kIpv4 = "ipv4:";
  constexpr std::string_view kIpv6 = "ipv6:";
  const bool four = name.starts_with(kIpv4);
  const std::size_t colon = name.rfind(':');
  if ((!four && !name.starts_with(kIpv6)) || colon < kIpv4.size()) return std::nullopt;
  const std::string_view digits = name.substr(colon + 1);
  std::uint16_t port = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  std::string address(name.substr(kIpv4.size(), colon - kIpv4.size()));
  in_addr bytes4{};
  if (four)
    return ::inet_pton(AF_INET, address.c_str(), &bytes4) == 1 ? std::optional(mapped(bytes4, port))
                                                               : std::nullopt;
  // An IPv6 address stands in brackets, which are escaped as in a URI, perhaps with a zone behind a '%'.
  for (const std::string_view bracket : {"%5B", "["}) {
    if (address.starts_with(bracket)) address.erase(0, bracket.size());
  }
  address.resize(std::min(address.find_first_of("%]"), address.size()));
  in6_addr bytes6{};
  if (::inet_pton(AF_INET6, address.c_str(), &bytes6) != 1) return std::nullopt;
  return plain(bytes6, port);
}

bool is_ipv4(const PeerAddress& peer) {
  return std::equal(kMapped.begin(), kMapped.end(), peer.bytes.begin());
}

PeerAddress host_of(PeerAddress peer) {
  peer.port = 0;
  if (!is_ipv4(peer)) std::fill(peer.bytes.begin() + kNetworkBytes, peer.bytes.end(), std::uint8_t{0});
  return peer;
}

std::string address_text(const PeerAddress& peer) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_ipv4(peer)) {
    ::inet_ntop(AF_INET, peer.bytes.data() + kMapped.size(), text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, peer.bytes.data(), text.data(), text.size());
  }
  return text.data();
}

std::string to_string(const PeerAddress& peer) {
  return is_ipv4(peer) ? fmt::format("ipv4:{}:{}", address_text(peer), peer.port)
                       : fmt::format("ipv6:[{}]:{}", address_text(peer), peer.port);
}

}  // namespace gossamer::host
