// SPDX-License-Identifier: Apache-2.0
//
// The lives of a process, one after another. member_test.cc tests what happens in one.
#include "cluster/control/member_process.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cluster/control/test_nobody.h"

namespace gossamer::cluster {
namespace {

// Claim: after a life that ended within a minute the node waits half a second before it asks for the next
// one. It waits twice as long each time, at most a minute. After a life of a minute it asks at once.
TEST(LivesOfAProcess, ShortOnesWait) {
  Nobody network;
  Instant now;
  MemberProcess::Options options;
  options.run = "run";
  options.coordinators = {{.host = "there", .port = 1}};
  MemberProcess process(options, network, now);
  process.tick(now);
  std::uint64_t life = 0;
  const auto waits_tenths = [&](double lasts_s) {
    membership::BeginAnswer begun;
    begun.set_node(2);
    begun.set_incarnation(++life);
    begun.mutable_lead()->set_incarnation(1);
    begun.set_beat_ms(100);
    const host::QuestionId asked = network.asked();
    process.on(host::Answered{asked, begun.SerializeAsString()}, now);
    now = now + from_seconds(lasts_s);
    process.begin_anew({.what = "its address has gone"}, now);
    static_cast<void>(process.take_events());
    int tenths = 0;
    for (process.tick(now); network.asked() == asked && tenths < 1000; process.tick(now)) {
      now = now + from_milliseconds(100);
      ++tenths;
    }
    return tenths;
  };
  for (const int tenths : {5, 10, 20, 40, 80, 160, 320, 600, 600}) EXPECT_EQ(waits_tenths(59), tenths);
  EXPECT_EQ(waits_tenths(60), 0);
  EXPECT_EQ(waits_tenths(1), 5);
}

}  // namespace
}  // namespace gossamer::cluster
