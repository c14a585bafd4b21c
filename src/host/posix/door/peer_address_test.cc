// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/peer_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

namespace gossamer::host {
namespace {

sockaddr_storage socket_address(const char* text, std::uint16_t port) {
  sockaddr_storage storage{};
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    std::memcpy(&storage, &four, sizeof four);
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    std::memcpy(&storage, &six, sizeof six);
  }
  return storage;
}

// gRPC's name of a peer and the address that the socket has are the same value. IPv4 that came over an IPv6
// socket is IPv4.
TEST(PeerAddress, NamesAndSockets) {
  const PeerAddress four = peer_address(socket_address("192.0.2.1", 5000));
  EXPECT_EQ(read_peer("ipv4:192.0.2.1:5000"), four);
  EXPECT_EQ(peer_address(socket_address("::ffff:192.0.2.1", 5000)), four);
  EXPECT_EQ(read_peer("ipv6:%5B::ffff:192.0.2.1%5D:5000"), four);
  EXPECT_EQ(to_string(four), "ipv4:192.0.2.1:5000");
  const PeerAddress six = peer_address(socket_address("2001:db8::1", 1));
  for (const char* name :
       {"ipv6:%5B2001:db8::1%5D:1", "ipv6:[2001:db8::1]:1", "ipv6:%5B2001:db8::1%25eth0%5D:1"})
    EXPECT_EQ(read_peer(name), six) << name;
  EXPECT_EQ(to_string(six), "ipv6:[2001:db8::1]:1");
  EXPECT_NE(read_peer("ipv4:192.0.2.1:5001"), four);
}

// Names that are none of an address are told apart.
TEST(PeerAddress, OtherNames) {
  for (const char* name :
       {"", "unix:path", "ipv4:", "ipv4:1", "ipv4:1.2.3.4", "ipv4:1.2.3.4:", "ipv4:1.2.3.4:70000",
        "ipv4:1.2.3.4:5x", "ipv4:1.2.3:5", "ipv6:%5Bx%5D:5", "ipv6:::1"})
    EXPECT_FALSE(read_peer(name)) << name;
}

// A host is an IPv4 address, or 64 bits of IPv6.
TEST(PeerAddress, Hosts) {
  const auto host = [](const char* name) { return host_of(*read_peer(name)); };
  EXPECT_EQ(host("ipv4:192.0.2.1:5000"), host("ipv4:192.0.2.1:1"));
  EXPECT_NE(host("ipv4:192.0.2.1:5000"), host("ipv4:192.0.2.2:5000"));
  EXPECT_EQ(host("ipv6:[2001:db8:1:2::1]:1"), host("ipv6:[2001:db8:1:2:ffff::9]:7"));
  EXPECT_NE(host("ipv6:[2001:db8:1:2::1]:1"), host("ipv6:[2001:db8:1:3::1]:1"));
}

}  // namespace
}  // namespace gossamer::host
