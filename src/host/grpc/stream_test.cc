// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/stream.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "host/grpc/network.h"

namespace gossamer::host {
namespace {

// An IPv6 network of 64 bits counts as one host, however many of its addresses are used. Another network is
// another host, and so is another IPv4 address.
TEST(HostOf, CountsNetworksOfIpv6) {
  const std::string one = host_of("ipv6:%5B2001:db8:1:2::1%5D:5000");
  EXPECT_EQ(one, "ipv6:2001:db8:1:2::/64");
  for (const char* const same :
       {"ipv6:[2001:db8:1:2::1]:5000", "ipv6:%5B2001:db8:1:2:ffff:ffff:ffff:ffff%5D:1",
        "ipv6:%5B2001:0db8:0001:0002:0:0:0:9%25eth0%5D:7"})
    EXPECT_EQ(host_of(same), one) << same;
  EXPECT_NE(host_of("ipv6:%5B2001:db8:1:3::1%5D:5000"), one);
  EXPECT_EQ(host_of("ipv4:192.0.2.1:5000"), "ipv4:192.0.2.1");
  EXPECT_NE(host_of("ipv4:192.0.2.2:5000"), host_of("ipv4:192.0.2.1:5000"));
  EXPECT_EQ(host_of("unix:path"), "unix");  // other names lose nothing but what follows the colon
}

// Small parts of large blocks are copied, so that a frame keeps no blocks of which it counts little. A frame
// of large parts shares them.
TEST(FromGrpc, KeepsNoMoreThanTwiceItsBytes) {
  static int blocks = 0;
  const auto block = [] {
    ++blocks;
    return new std::string(8192, 'b');  // NOLINT(cppcoreguidelines-owning-memory): the slice ends it
  };
  const auto frame_of = [&](std::size_t parts, std::size_t bytes) {
    std::vector<grpc::Slice> slices;
    for (std::size_t i = 0; i < parts; ++i) {
      std::string* const whole = block();
      slices.emplace_back(
          whole->data(), bytes,
          [](void* one) {
            --blocks;
            delete static_cast<std::string*>(one);  // NOLINT(cppcoreguidelines-owning-memory): made above
          },
          whole);
    }
    return from_grpc(grpc::ByteBuffer(slices.data(), slices.size()));
  };
  {
    const Slices small = frame_of(3, 1000);
    EXPECT_EQ(joined(small), std::string(3000, 'b'));
    EXPECT_EQ(blocks, 0);
    const Slices large = frame_of(3, 5000);
    EXPECT_EQ(joined(large), std::string(15'000, 'b'));
    EXPECT_EQ(blocks, 3);
    EXPECT_EQ(total_bytes(frame_of(0, 0)), 0U);
  }
  EXPECT_EQ(blocks, 0);
}

// The name that gRPC itself gives a peer can be read.
TEST(HostOf, OfARealConnection) {
  std::promise<Accepted> accepted;
  const auto server = make_grpc_network(std::nullopt, [&accepted](const NetworkEvent& event) {
    if (const auto* const one = std::get_if<Accepted>(&event)) accepted.set_value(*one);
  });
  const auto at = server->listen({"::1", 0}, Lane::kControl);
  if (!at.ok()) GTEST_SKIP() << "this machine has no IPv6 loopback: " << at.error().message();
  const auto client = make_grpc_network(std::nullopt, [](const NetworkEvent&) {});
  static_cast<void>(client->connect(*at, Lane::kControl));
  EXPECT_EQ(accepted.get_future().get().host, "ipv6:::/64");
}

}  // namespace
}  // namespace gossamer::host
