// SPDX-License-Identifier: Apache-2.0
//
// The process of a coordinator that leads, before nodes whose frames the test chooses.
#include "cluster/control/coordinator_process.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "cluster/control/control_message.h"
#include "cluster/control/test_coordinator.h"
#include "cluster/control/test_hello.h"
#include "cluster/control/test_store_rows.h"
#include "net/link/channels.h"
#include "net/link/test_counting_network.h"

namespace gossamer::cluster {
namespace {

class LeadingProcess : public ::testing::Test {
 protected:
  explicit LeadingProcess(CoordinatorProcess::Options given = {})
      : process_(options(std::move(given)), network_, workload_, now_) {
    network_.keeps = true;
    store();
    CHECK(process_.coordinator() != nullptr);
  }

  CoordinatorProcess::Options options(CoordinatorProcess::Options options) {
    options.coordinator.run = "run";
    if (!options.lead_time) options.keep_every = from_seconds(1000);
    options.others = [this](const net::Arrived& arrived) { others_.push_back(arrived.from); };
    return options;
  }
  // The store does all that it is asked to do.
  void store() {
    while (const auto call = process_.next_call(now_)) {
      if (std::holds_alternative<Campaign>(*call)) {
        process_.answered(CampaignAnswer(Generation(1)), now_);
      } else if (std::holds_alternative<Load>(*call)) {
        std::vector<host::Entry> entries;
        for (const auto& [key, value] : kept_) entries.push_back({.key = key, .value = value});
        process_.answered(LoadAnswer(std::move(entries)), now_);
      } else {
        if (const auto* const commit = std::get_if<Commit>(&*call)) keep(commit->changes, kept_);
        process_.answered(Result<void>(), now_);
      }
    }
  }
  // The node begins a life, which the store has to write.
  void ask(NodeId node) {
    membership::BeginAsk ask;
    ask.set_run("run");
    ask.set_memory_bytes(1 << 20);
    ask.set_cores(1);
    process_.coordinator()->begin(
        node, ask.SerializeAsString(),
        [&](const Result<std::string>& answer) { CHECK(answer.ok() && begun_.ParseFromString(*answer)); },
        now_);
  }
  net::PeerId begin(NodeId node) {
    ask(node);
    store();
    return {node, Incarnation(begun_.incarnation())};
  }
  // The life opens its control lane, and sends a report before the store can do anything.
  void report(net::PeerId from) {
    const host::ConnectionId connection{++last_};
    process_.on(knock(connection, from), now_);
    process_.on(host::Received{.connection = connection, .frame = net::encode_frame(hello(from, last_))},
                now_);
    wire::FrameHeader header;
    header.mutable_data()->set_number(1);
    header.mutable_data()->mutable_start()->set_channel(net::kReports);
    header.mutable_data()->mutable_start()->set_body("a report");
    process_.on(host::Received{.connection = connection, .frame = net::encode_frame(header)}, now_);
  }

  Instant now_;
  net::CountingNetwork network_;
  EqualThings workload_;
  StoreRows kept_;
  std::vector<net::PeerId> others_;
  CoordinatorProcess process_;
  membership::BeginAnswer begun_;
  std::uint64_t last_ = 0;
};

// Claim: what a life says that this coordinator did not give, or that has ended, reaches no user of links,
// even while the store has not written yet that it is refused.
TEST_F(LeadingProcess, HearsOnlyLivesThatWereGiven) {
  const net::PeerId former = begin(NodeId(9));
  const net::PeerId lives = begin(NodeId(9));
  ask(NodeId(11));  // the store is busy
  report({lives.node, Incarnation(lives.incarnation.value + 100)});
  report({NodeId(8), Incarnation(3)});
  report(former);
  EXPECT_TRUE(others_.empty());
  store();
  const net::PeerId other = begin(NodeId(10));
  report(other);
  EXPECT_EQ(others_, std::vector{other});
}

class LeaderWithStandby : public LeadingProcess {
 protected:
  LeaderWithStandby() : LeadingProcess(with_standby()) {
    const net::PeerId member = begin(NodeId(9));
    say(member, [](auto& said) { said.mutable_here(); });
    say(member, [](auto& said) { said.mutable_ready(); });
    say(member, [this](auto& said) {
      said.mutable_frozen()->set_epoch(process_.coordinator()->view().epoch().value);
    });
    CHECK(process_.coordinator()->installed() != Epoch());
  }

  static CoordinatorProcess::Options with_standby() {
    CoordinatorProcess::Options options;
    options.lead_time = from_seconds(5);
    options.keep_every = from_seconds(1);
    options.coordinator.coordinators.resize(2);
    return options;
  }
  template <class Fill>
  void say(net::PeerId from, Fill fill) {
    membership::ToCoordinator said;
    fill(said);
    process_.coordinator()->on(net::Arrived{.from = from, .message = pack(said), .receipt = {}}, now_);
    store();
  }
  // For how many milliseconds it goes on to lead, or to stand by, while nobody says anything.
  std::int64_t stays_ms() {
    const Instant begin = now_;
    const bool leads = process_.coordinator() != nullptr;
    while ((process_.coordinator() != nullptr) == leads && now_ - begin < from_seconds(1000)) {
      now_ = now_ + from_milliseconds(500);
      process_.tick(now_);
      store();
    }
    return (now_ - begin).ns / 1'000'000;
  }
  // Whether it leads all the time while nobody says anything.
  bool leads_for(double seconds) {
    for (const Instant end = now_ + from_seconds(seconds); now_ < end;) {
      now_ = now_ + from_milliseconds(500);
      process_.tick(now_);
      if (process_.coordinator() == nullptr) return false;
      store();
    }
    return true;
  }
};

// Claim: a leader that hears nobody for 10 s leaves the lead to a standby.
TEST_F(LeaderWithStandby, GivesWay) {
  EXPECT_TRUE(leads_for(9));
  EXPECT_FALSE(leads_for(3));
}

// Claim: a leader that gave way leads again if nobody else does after two lead times. It then stays twice as
// long as before, as the members may be gone. Their silences of all leads add up. So they are fenced soon
// after the members' ten minutes: in the seventh lead, after its minute. Then it stays.
TEST_F(LeaderWithStandby, StaysLongerEachTime) {
  for (const int seconds : {10, 20, 40, 80, 160, 320}) {
    EXPECT_EQ(stays_ms(), 1000 * seconds);
    ASSERT_EQ(process_.coordinator(), nullptr) << seconds;
    EXPECT_EQ(stays_ms(), 10'000) << "two lead times";
    ASSERT_NE(process_.coordinator(), nullptr) << seconds;
  }
  ASSERT_TRUE(leads_for(59));
  EXPECT_FALSE(process_.coordinator()->members().empty());
  ASSERT_TRUE(leads_for(2));
  EXPECT_TRUE(process_.coordinator()->members().empty());
  ASSERT_TRUE(leads_for(1000));
}

// Claim: a member that joins, and is heard, does not keep a leader that hears none of those that serve.
TEST_F(LeaderWithStandby, OneThatJoinsKeepsItNot) {
  const net::PeerId joins = begin(NodeId(11));
  say(joins, [](auto& said) { said.mutable_here(); });
  int tenths = 0;
  for (; tenths < 1000; ++tenths) {
    now_ = now_ + from_milliseconds(100);
    process_.tick(now_);
    if (process_.coordinator() == nullptr) break;
    store();
    say(joins, [](auto& said) { said.mutable_beat(); });
  }
  EXPECT_EQ(tenths, 99);
}

class LeaderOfThree : public LeaderWithStandby {
 protected:
  LeaderOfThree() {
    for (const std::uint64_t node : {10U, 11U}) {
      const net::PeerId member = begin(NodeId(node));
      say(member, [](auto& said) { said.mutable_here(); });
      say(member, [](auto& said) { said.mutable_ready(); });
      for (const auto& [one, record] : std::map(process_.coordinator()->view().members())) {
        say(peer_of(record), [this](auto& said) {
          said.mutable_frozen()->set_epoch(process_.coordinator()->view().epoch().value);
        });
      }
    }
    CHECK(process_.coordinator()->view().members().size() == 3);
    first_ = peer_of(process_.coordinator()->view().members().at(NodeId(9)));
  }
  // For how many seconds it leads on, at most so many, while it hears the first member alone, or nobody.
  double leads_on(double seconds, bool hears_first) {
    const Instant begin = now_;
    while (now_ - begin < from_seconds(seconds)) {
      now_ = now_ + from_milliseconds(100);
      process_.tick(now_);
      if (process_.coordinator() == nullptr) break;
      store();
      if (hears_first) say(first_, [](auto& said) { said.mutable_beat(); });
    }
    return (now_ - begin).seconds();
  }
  net::PeerId first_;
};

// Claim: a leader that hears one of three stays while that one comes to rest, for freeze time longer. While
// nobody is heard it gives way as soon as else.
TEST_F(LeaderOfThree, StaysWhileThoseThatItHearsComeToRest) {
  say(first_, [](auto& said) { said.mutable_drain(); });
  ASSERT_EQ(process_.coordinator()->phase(), CoordinatorPhase::kFreezing);
  EXPECT_NEAR(leads_on(20, true), 20, 0.2);
  EXPECT_NEAR(leads_on(60, false), 0.4, 0.4) << "most are missed for longer than ten seconds";
}

// Claim: that has an end, as the one that it hears may never come to rest.
TEST_F(LeaderOfThree, StaysForFreezeTimeAtMost) {
  say(first_, [](auto& said) { said.mutable_drain(); });
  EXPECT_NEAR(leads_on(100, true), 40, 0.3);
}

// Claim: once the one that it hears has come to rest, it gives way, though the silent ones have not.
TEST_F(LeaderOfThree, GivesWayOnceThoseThatItHearsRest) {
  say(first_, [](auto& said) { said.mutable_drain(); });
  EXPECT_NEAR(leads_on(30, true), 30, 0.2);
  say(first_,
      [this](auto& said) { said.mutable_frozen()->set_epoch(process_.coordinator()->view().epoch().value); });
  ASSERT_EQ(process_.coordinator()->phase(), CoordinatorPhase::kFreezing);
  EXPECT_NEAR(leads_on(60, true), 0.2, 0.2);
}

// Claim: after it gave way it waits for twice as long, also if one of three comes at once: the others have
// their ten seconds to come, and then twenty.
TEST_F(LeaderOfThree, OneThatComesMakesItNoLessPatient) {
  EXPECT_NEAR(leads_on(60, true), 10, 0.2);
  ASSERT_EQ(process_.coordinator(), nullptr);
  (void)stays_ms();
  ASSERT_NE(process_.coordinator(), nullptr);
  say(first_, [](auto& said) { said.mutable_here(); });
  EXPECT_NEAR(leads_on(60, true), 30, 1);
  EXPECT_EQ(process_.coordinator(), nullptr);
}

// Claim: while the end waits for a silent member, the members do not know of it yet, and the leader gives way
// as before. The next lead goes on with the end.
TEST_F(LeaderWithStandby, GivesWayWhileTheEndWaits) {
  ASSERT_TRUE(leads_for(5));
  process_.coordinator()->stop("enough", now_);
  store();
  EXPECT_TRUE(process_.coordinator()->ending());
  EXPECT_FALSE(leads_for(6));
  (void)stays_ms();
  ASSERT_NE(process_.coordinator(), nullptr);
  EXPECT_TRUE(process_.coordinator()->ending());
}

// Claim: once the members were told of the end it stays. They save, and leave by themselves.
TEST_F(LeaderWithStandby, StaysWhenMembersWereTold) {
  process_.coordinator()->stop("enough", now_);
  store();
  ASSERT_TRUE(leads_for(500));
}

}  // namespace
}  // namespace gossamer::cluster
