// SPDX-License-Identifier: Apache-2.0
//
// How the simulated internet opens connections when something goes wrong meanwhile: at every moment of it.
#include "host/sim/internet.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "host/sim/timeline.h"

namespace gossamer::host {
namespace {

// One process on each of two machines, 10 ms apart; "a" opens and says something at once.
struct Two {
  Two() {
    a = internet.attach("a", {"a"}, [this](NetworkEvent event) { at_a.push_back(std::move(event)); });
    b = internet.attach("b", {"b"}, [this](NetworkEvent event) {
      if (const auto* const accepted = std::get_if<Accepted>(&event))
        b->send(accepted->connection, text("hi"));
      at_b.push_back(std::move(event));
    });
    const Endpoint there = *b->listen({"b", 0}, Lane::kControl);
    id = a->connect(there, Lane::kControl);
    a->send(id, text("early"));
  }
  static Slices text(const char* words) { return {Slice::of(std::string(words))}; }
  void run_to(double milliseconds) { timeline.run_until(Instant{} + from_milliseconds(milliseconds)); }
  // The kinds of a process's events, without Written: O(pened), A(ccepted), R(eceived), C(losed).
  static std::string kinds(const std::vector<NetworkEvent>& events) {
    std::string all;
    for (const NetworkEvent& event : events) {
      if (!std::holds_alternative<Written>(event)) all += "OARWC"[event.index()];
    }
    return all;
  }

  Timeline timeline{3};
  SimInternet internet{timeline, 3};
  std::unique_ptr<Network> a;
  std::unique_ptr<Network> b;
  ConnectionId id;
  std::vector<NetworkEvent> at_a;
  std::vector<NetworkEvent> at_b;
};

constexpr double kOpen = 80;  // milliseconds: eight ways

// However the path is cut while a connection opens, and healed before the time-out, it opens, and what was
// sent early on either side arrives.
TEST(SimInternet, OpensOnceHealed) {
  for (const int direction : {1, 2, 3}) {
    for (int cut = 0; cut <= 100; ++cut) {
      SCOPED_TRACE(testing::Message() << "direction " << direction << ", cut at " << cut << " ms");
      Two two;
      two.run_to(cut);
      const bool opened = !two.at_a.empty();
      if ((direction & 1) != 0) two.internet.cut("a", "b");
      if ((direction & 2) != 0) two.internet.cut("b", "a");
      two.run_to(3000);
      // Neither end hears what has not been on its way before the cut. A way takes 10 ms.
      if ((direction & 2) != 0 && cut < kOpen - 10) {
        EXPECT_EQ(Two::kinds(two.at_a), "");
      }
      if ((direction & 1) != 0 && cut < kOpen - 20) {
        EXPECT_EQ(Two::kinds(two.at_b), "");
      }
      EXPECT_EQ(opened, cut >= kOpen);
      two.internet.heal("a", "b");
      two.internet.heal("b", "a");
      two.run_to(4000);
      EXPECT_EQ(Two::kinds(two.at_a), "OR");
      EXPECT_EQ(Two::kinds(two.at_b), "AR");
    }
  }
}

// If the path is not healed, the opener is told that it timed out, once. What the other side has accepted
// ends too, as soon as the path lets it know.
TEST(SimInternet, TimesOutIfCut) {
  for (const int direction : {1, 2, 3}) {
    for (int cut = 0; cut < 70; ++cut) {
      SCOPED_TRACE(testing::Message() << "direction " << direction << ", cut at " << cut << " ms");
      Two two;
      two.run_to(cut);
      if ((direction & 1) != 0) two.internet.cut("a", "b");
      if ((direction & 2) != 0) two.internet.cut("b", "a");
      two.run_to(SimInternet::kConnectTimeout.milliseconds() + 1);
      // Forwards, the last that the opening needs has left after 60 ms.
      if ((direction & 2) == 0 && cut >= 60) continue;
      EXPECT_EQ(Two::kinds(two.at_a), "C");
      two.internet.heal("a", "b");
      two.internet.heal("b", "a");
      two.run_to(30000);
      EXPECT_EQ(Two::kinds(two.at_a), "C");
      EXPECT_TRUE(two.at_b.empty() || Two::kinds(two.at_b) == "AC") << Two::kinds(two.at_b);
    }
  }
}

// A machine that is stopped while somebody connects to it takes the connection when it goes on, or the opener
// gives up.
TEST(SimInternet, OpensToPaused) {
  for (const double resumed : {1000.0, 10000.0}) {
    for (int paused = 0; paused < 30; ++paused) {
      SCOPED_TRACE(testing::Message() << "paused at " << paused << " ms until " << resumed);
      Two two;
      two.run_to(paused);
      two.internet.pause("b");
      two.run_to(resumed);
      EXPECT_EQ(two.at_b.size(), 0U);
      two.internet.resume("b");
      two.run_to(resumed + 1000);
      EXPECT_EQ(Two::kinds(two.at_a), resumed < 5000 ? "OR" : "C");
      EXPECT_EQ(Two::kinds(two.at_b), resumed < 5000 ? "AR" : "");
    }
  }
}

// What waits for a slow downlink stays in its order, also where the last of it would have come soon.
TEST(SimInternet, WhatWaitsStaysInOrder) {
  Two two;
  two.run_to(2 * kOpen);
  two.at_b.clear();
  two.internet.set_rates("b", {.down_bytes_per_second = 10});
  two.a->send(two.id, Two::text("abcdefghijklmno"));  // 1.5 s
  two.run_to(2 * kOpen + 900);
  two.a->send(two.id, Two::text("p"));
  two.run_to(2 * kOpen + 1000);
  two.internet.set_rates("b", {.down_bytes_per_second = 1e6});
  two.run_to(2 * kOpen + 3000);
  ASSERT_EQ(Two::kinds(two.at_b), "RR");
  EXPECT_EQ(std::get<Received>(two.at_b[0]).frame[0].bytes()[0], std::byte{'a'});
}

// What waits for a slow downlink comes by the downlink's new rate, in its order, and before the end of the
// connection.
TEST(SimInternet, WhatWaitsTakesTheNewRate) {
  for (const bool closes : {false, true}) {
    Two two;
    two.run_to(2 * kOpen);
    two.at_b.clear();
    two.internet.set_rates("b", {.down_bytes_per_second = 1});
    for (const char* const words : {"0123456789", "abcdefghij", "klmnopqrst"})
      two.a->send(two.id, Two::text(words));
    two.run_to(2 * kOpen + 15'000);
    EXPECT_EQ(Two::kinds(two.at_b), "R");
    if (closes) two.a->close(two.id);
    two.internet.set_rates("b", {.down_bytes_per_second = 10});
    two.run_to(2 * kOpen + 15'000 + 400);
    EXPECT_EQ(Two::kinds(two.at_b), "R");
    two.run_to(2 * kOpen + 15'000 + 700);  // half of the second frame, by the rate of before, takes 0.5 s
    EXPECT_EQ(Two::kinds(two.at_b), "RR");
    two.internet.set_rates("b", {.down_bytes_per_second = 2});
    two.run_to(2 * kOpen + 15'000 + 2000);
    EXPECT_EQ(Two::kinds(two.at_b), "RR");
    two.run_to(2 * kOpen + 30'000);
    EXPECT_EQ(Two::kinds(two.at_b), closes ? "RRRC" : "RRR");
    ASSERT_GE(two.at_b.size(), 3U);
    EXPECT_EQ(std::get<Received>(two.at_b[2]).frame[0].bytes()[0], std::byte{'k'});
  }
}

}  // namespace
}  // namespace gossamer::host
