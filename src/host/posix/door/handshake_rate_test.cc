// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/handshake_rate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gossamer::host {
namespace {

constexpr int kBurst = 256;  // docs/protocols/admission.md, "At the door"

PeerAddress machine(std::uint32_t number) {
  PeerAddress address;
  for (std::size_t i = 0; i < 4; ++i) address.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return address;
}
Instant at(double seconds) { return Instant{} + from_seconds(seconds); }

// A host that floods begins kBurst handshakes and then kEachSecond, however many it tries. Another host does
// not notice.
TEST(HandshakeRateTest, AFlood) {
  HandshakeRate rate;
  int begun = 0;
  for (int i = 0; i < 100'000; ++i) begun += rate.take(machine(1), at(i / 10'000.0)) ? 1 : 0;
  EXPECT_NEAR(begun, kBurst + 1000, 1);
  EXPECT_TRUE(rate.take(machine(2), at(10)));
}

// Nodes behind one address, whose handshakes are given back, all come at once and again and again.
TEST(HandshakeRateTest, NodesAreNotSlowedDown) {
  HandshakeRate rate;
  for (int restart = 0; restart < 50; ++restart) {
    for (int connection = 0; connection < 64 * 4; ++connection)
      ASSERT_TRUE(rate.take(machine(1), at(0.001 * restart))) << restart << ' ' << connection;
    for (int connection = 0; connection < 64 * 4; ++connection)
      rate.give_back(machine(1), at(0.001 * restart));
  }
  // What is given back is never more than a whole store.
  for (int i = 0; i < 1000; ++i) rate.give_back(machine(1), at(1));
  for (int i = 0; i < kBurst; ++i) EXPECT_TRUE(rate.take(machine(1), at(1)));
  EXPECT_FALSE(rate.take(machine(1), at(1)));
}

// Guests above the rate wait. The newest one has the next turn, a hundredth of a second later. One that has
// gone has none.
TEST(HandshakeRateTest, TheNewestFirst) {
  HandshakeRate rate;
  EXPECT_FALSE(rate.next_turn());
  while (rate.take(machine(1), at(0))) {
  }
  for (std::uint64_t guest = 1; guest <= 5; ++guest) rate.wait(machine(1), GuestId{guest});
  rate.forget(machine(1), GuestId{5});
  EXPECT_FALSE(rate.next(at(0)));
  EXPECT_EQ(*rate.next_turn(), at(0.01));
  std::vector<GuestId> turns;
  for (double now = 0; rate.next_turn() && now < 1; now += 0.01) {
    if (const auto guest = rate.next(at(now + 1e-6))) turns.push_back(*guest);
  }
  EXPECT_EQ(turns, (std::vector{GuestId{4}, GuestId{3}, GuestId{2}, GuestId{1}}));
  EXPECT_FALSE(rate.next_turn());
}

// Hosts that have come and gone are forgotten.
TEST(HandshakeRateTest, ForgetsHosts) {
  HandshakeRate rate;
  for (std::uint32_t number = 0; number < 100'000; ++number)
    EXPECT_TRUE(rate.take(machine(number), at(number / 1000.0)));
  EXPECT_LT(rate.hosts(), 3000U);
}

}  // namespace
}  // namespace gossamer::host
