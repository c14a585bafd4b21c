// SPDX-License-Identifier: Apache-2.0
//
// Collectives over links on the simulated internet: rounds, rates, connections that break, members that die.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/collective/collectives.h"
#include "cluster/collective/test_members.h"
#include "host/sim/internet.h"
#include "host/sim/timeline.h"
#include "net/link/test_simulated_nodes.h"

namespace gossamer::cluster {
namespace {

using host::Lane;

// A node with links and collectives, and the driver between them.
class Member {
 public:
  Member(host::Timeline& timeline, host::SimInternet& internet, std::size_t rank,
         const CollectiveLimits& limits, Lane lane)
      : node(timeline, internet, peer_of(rank).node.value, peer_of(rank).incarnation.value),
        timeline_(timeline),
        lane_(lane),
        collectives_({.self = peer_of(rank), .channel = 3, .limits = limits}) {
    node.on_event = [this](net::LinkEvent event) {
      if (auto* const arrived = std::get_if<net::Arrived>(&event)) {
        act([&](CollectiveEvents& out) { collectives_.on(arrived->from, std::move(arrived->message), out); });
      }
    };
  }

  void install(const ExchangeView& view) {
    act([&](CollectiveEvents& out) { collectives_.install(view, {}, out); });
  }
  void begin(std::uint64_t id, const Job& job, std::size_t rank) {
    act([&](CollectiveEvents& out) {
      collectives_.begin(OperationId(id), job.operation_of(rank), {Slice::of(job.inputs[rank])}, out);
    });
  }
  void lost(net::PeerId peer) {
    node.fence(peer);
    act([&](CollectiveEvents& out) { collectives_.lost(peer, out); });
  }

 private:
  template <class Action>
  void act(const Action& action) {
    CollectiveEvents events;
    action(events);
    for (CollectiveEvent& event : events) {
      if (auto* const send = std::get_if<Send>(&event)) {
        (void)node.send(send->to, lane_, std::move(send->message));  // false: the peer is about to be lost
      } else if (auto* const completed = std::get_if<Completed>(&event)) {
        Outcome& outcome = outcomes[completed->id.value];
        ++outcome.times;
        outcome.completed = true;
        for (const Slices& part : completed->result) outcome.result.push_back(joined(part));
        ended[completed->id.value] = timeline_.now();
      } else if (auto* const failed = std::get_if<Failed>(&event)) {
        Outcome& outcome = outcomes[failed->id.value];
        ++outcome.times;
        outcome.lost = failed->lost;
      } else {
        ADD_FAILURE() << std::get<RuleBroken>(event).error.message();
      }
    }
  }

 public:
  net::Node node;
  std::map<std::uint64_t, Outcome> outcomes;
  std::map<std::uint64_t, Instant> ended;  // completed

 private:
  host::Timeline& timeline_;
  const Lane lane_;
  Collectives collectives_;
};

class World {
 public:
  World(std::size_t ranks, std::uint64_t seed, const CollectiveLimits& limits, Lane lane = Lane::kControl)
      : timeline(seed), internet(timeline, seed) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      members.push_back(std::make_unique<Member>(timeline, internet, rank, limits, lane));
    }
  }
  void meet() {
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = a + 1; b < members.size(); ++b) members[a]->node.open(members[b]->node);
    }
    for (int turn = 0; turn < 100 && !all_up(); ++turn) run_for(0.1);
    CHECK(all_up());
    for (const auto& member : members) member->install(view_of(members.size()));
  }
  // Whether every pair has a link. A message to a node without a link is lost.
  [[nodiscard]] bool all_up() const {
    for (const auto& a : members) {
      for (const auto& b : members) {
        if (a != b && !a->node.links->statistics(b->node.id.node).up) return false;
      }
    }
    return true;
  }
  void set_rates(double bytes_per_second) {
    for (const auto& member : members) {
      internet.set_rates(member->node.machine, {.up_bytes_per_second = bytes_per_second,
                                                .down_bytes_per_second = bytes_per_second});
    }
  }
  void run_for(double seconds) { timeline.run_until(timeline.now() + from_seconds(seconds)); }
  // Lets all members begin at once, and returns the seconds until the last has its result.
  double seconds_of(std::uint64_t id, const Job& job) {
    const Instant begun = timeline.now();
    for (std::size_t rank = 0; rank < members.size(); ++rank) members[rank]->begin(id, job, rank);
    run_for(20);
    Instant last = begun;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      EXPECT_TRUE(members[rank]->outcomes[id].result == job.expected[rank]) << rank;  // too large to print
      last = std::max(last, members[rank]->ended[id]);
    }
    return (last - begun).seconds();
  }

  host::Timeline timeline;
  host::SimInternet internet;
  std::vector<std::unique_ptr<Member>> members;  // by rank; null: killed
};

// All-gather, reduce-scatter and the direct all-reduce take one delay; the all-reduce in two rounds takes
// two. The delay is 10 ms each way, and the rates are too high to count.
TEST(SimulatedCollectives, Rounds) {
  for (std::size_t ranks = 2; ranks <= 6; ++ranks) {
    Rng rng(ranks, Purpose::kTest);
    World world(ranks, ranks, CollectiveLimits());
    world.set_rates(1e18);
    world.meet();
    world.run_for(1);
    const std::vector<std::uint64_t> small(ranks, 16'000);
    const std::vector<std::uint64_t> tiny(ranks, 1000);
    const std::vector<std::uint64_t> large(ranks, 200'000);
    const double gather = world.seconds_of(1, make_job(OperationKind::kAllGather, small, rng));
    const double scatter = world.seconds_of(2, make_job(OperationKind::kReduceScatter, small, rng));
    const double direct = world.seconds_of(3, make_job(OperationKind::kAllReduce, tiny, rng));
    const double both = world.seconds_of(4, make_job(OperationKind::kAllReduce, large, rng));
    EXPECT_NEAR(gather, 0.010, 0.0001) << ranks;
    EXPECT_NEAR(scatter, 0.010, 0.0001) << ranks;
    EXPECT_NEAR(direct, 0.010, 0.0001) << ranks;
    EXPECT_NEAR(both, ranks == 2 ? 0.010 : 0.020, 0.0001) << ranks;
  }
}

// A large all-reduce among four at 100 Mb/s takes the time of its bytes and two delays, and at most a
// twentieth more. The two rounds overlap. The tensor is larger than its windows.
TEST(SimulatedCollectives, LargeAllReduceFillsTheLink) {
  Rng rng(1, Purpose::kTest);
  World world(4, 1, {}, Lane::kBulk);  // 4 MiB at a time of 6 from each
  world.internet.set_default_path({.delay = from_milliseconds(20)});
  world.set_rates(12.5e6);
  world.meet();
  world.run_for(1);
  const std::uint64_t elements = 6ULL << 20;
  const double seconds =
      world.seconds_of(1, make_job(OperationKind::kAllReduce, equal_parts(elements, 4), rng));
  const double sending = 2.0 * 3 / 4 * static_cast<double>(elements * 4) / 12.5e6;
  EXPECT_GE(seconds, sending + 0.020);
  EXPECT_LE(seconds, 1.05 * (sending + 0.040));
}

// One run with loss, jitter and connections that break. In every second run a member dies, and the others
// learn of it at different times.
void run_chaos(std::uint64_t seed, int& completed, int& failed) {
  Rng rng(seed, Purpose::kTest);
  const std::size_t ranks = 2 + rng.below(4);
  World world(ranks, seed, small_limits(), rng.below(2) == 0 ? Lane::kControl : Lane::kBulk);
  world.internet.set_default_path({.delay = from_milliseconds(static_cast<double>(rng.below(60))),
                                   .jitter = from_milliseconds(static_cast<double>(rng.below(30))),
                                   .loss = static_cast<double>(rng.below(4)) * 0.01});
  world.meet();
  std::vector<Job> jobs;
  for (int i = 0; i < 5; ++i) {
    std::vector<std::uint64_t> parts(ranks);
    for (std::uint64_t& part : parts) part = rng.below(60);
    jobs.push_back(make_job(static_cast<OperationKind>(rng.below(4)), parts, rng));
  }
  std::vector<std::set<std::uint64_t>> to_begin(ranks, {0, 1, 2, 3, 4});
  std::optional<std::size_t> gone;
  std::set<std::size_t> to_tell;
  const std::uint64_t death = seed % 2 == 0 ? 1000 : rng.below(60);
  for (std::uint64_t turn = 0; turn < 80; ++turn) {
    world.run_for(static_cast<double>(rng.below(40)) * 0.001);
    const std::size_t rank = rng.below(ranks);
    const std::size_t other = rng.below(ranks);
    if (turn == death) {
      gone = rank;
      world.members[rank].reset();
      for (std::size_t one = 0; one < ranks; ++one) {
        if (one != rank) to_tell.insert(one);
      }
    } else if (gone == rank) {
      continue;
    } else if (turn % 3 == 0) {
      world.internet.reset("m" + std::to_string(peer_of(rank).node.value),
                           "m" + std::to_string(peer_of(other).node.value));
    } else if (to_tell.erase(rank) > 0) {
      world.members[rank]->lost(peer_of(*gone));
    } else if (!to_begin[rank].empty()) {
      const auto which =
          std::next(to_begin[rank].begin(), static_cast<std::ptrdiff_t>(rng.below(to_begin[rank].size())));
      world.members[rank]->begin(*which, jobs[*which], rank);
      to_begin[rank].erase(which);
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (gone == rank) continue;
    for (const std::uint64_t id : to_begin[rank]) world.members[rank]->begin(id, jobs[id], rank);
    if (to_tell.contains(rank)) world.members[rank]->lost(peer_of(*gone));
  }
  world.run_for(90);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (gone == rank) continue;
    for (std::uint64_t id = 0; id < jobs.size(); ++id) {
      const Outcome& outcome = world.members[rank]->outcomes[id];
      ASSERT_EQ(outcome.times, 1) << "rank " << rank << " operation " << id;
      ++(outcome.completed ? completed : failed);
      if (outcome.completed) {
        ASSERT_EQ(outcome.result, jobs[id].expected[rank]);
      } else {
        ASSERT_TRUE(gone.has_value());
        ASSERT_EQ(outcome.lost, peer_of(*gone));
      }
    }
  }
}

// Each operation completes at every member with the reference's bits, or names the member that died. This
// holds for 100 seeds, whatever the network does.
TEST(SimulatedCollectives, Chaos) {
  int completed = 0;
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(run_chaos(seed, completed, failed));
  }
  EXPECT_GT(completed, 800);
  EXPECT_GT(failed, 100);
}

}  // namespace
}  // namespace gossamer::cluster
