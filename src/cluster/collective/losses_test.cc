// SPDX-License-Identifier: Apache-2.0
//
// Members that are lost at every moment of every operation, and views that follow one another.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "cluster/collective/collectives.h"
#include "cluster/collective/test_members.h"

namespace gossamer::cluster {
namespace {

struct Case {
  const char* name;
  OperationKind kind;
  std::uint64_t part;
};
// The sizes with small_limits(): one chunk, and several windows. The all-reduce is direct and in two rounds.
constexpr std::array kCases = {
    Case{"small all-gather", OperationKind::kAllGather, 9},
    Case{"large all-gather", OperationKind::kAllGather, 90},
    Case{"small reduce-scatter", OperationKind::kReduceScatter, 3},
    Case{"large reduce-scatter", OperationKind::kReduceScatter, 21},
    Case{"direct all-reduce", OperationKind::kAllReduce, 1},
    Case{"all-reduce in two rounds", OperationKind::kAllReduce, 21},
    Case{"small all-to-all", OperationKind::kAllToAll, 9},
    Case{"large all-to-all", OperationKind::kAllToAll, 90},
};

// Begins and deliveries in an order drawn from the seed. step() is false when nothing is left to happen.
class Scene {
 public:
  Scene(const Job& job, std::uint64_t seed)
      : members(job.inputs.size(), seed), job_(job), rng_(seed, Purpose::kTest, 2) {
    members.install(view_of(job.inputs.size()));
    for (std::size_t rank = 0; rank < members.ranks(); ++rank) not_begun_.push_back(rank);
  }

  bool step() {
    const auto pairs = members.under_way();
    const std::size_t events = not_begun_.size() + pairs.size();
    if (events == 0) return false;
    const std::size_t choice = rng_.below(events);
    if (choice >= not_begun_.size()) {
      members.deliver(pairs[choice - not_begun_.size()]);
      return true;
    }
    const std::size_t rank = not_begun_[choice];
    not_begun_.erase(not_begun_.begin() + static_cast<std::ptrdiff_t>(choice));
    members.begin(rank, 1, job_);
    return true;
  }

  // Kills a member. The others learn of it one by one, while they go on.
  void lose(std::size_t gone) {
    members.kill(gone);
    std::erase(not_begun_, gone);
    for (std::size_t rank = 0; rank < members.ranks(); ++rank) {
      if (rank == gone) continue;
      for (std::uint64_t steps = rng_.below(4); steps > 0; --steps) step();
      members.lost(rank, gone);
    }
    while (step()) {
    }
  }

  // Checks that each survivor has one outcome: the right result, or the name of the lost member. Returns how
  // many completed.
  std::size_t judge(std::size_t gone) {
    std::size_t completed = 0;
    for (std::size_t rank = 0; rank < members.ranks(); ++rank) {
      if (rank == gone) continue;
      const Outcome& outcome = members.outcomes[rank][1];
      EXPECT_EQ(outcome.times, 1) << "rank " << rank;
      if (outcome.completed) {
        ++completed;
        EXPECT_EQ(outcome.result, job_.expected[rank]) << "rank " << rank;
      } else {
        EXPECT_EQ(outcome.lost, peer_of(gone)) << "rank " << rank;
      }
      EXPECT_EQ(members.at(rank).under_way(), 0U);
      EXPECT_EQ(members.at(rank).held_bytes(), 0U);
    }
    EXPECT_TRUE(members.broken.empty());
    return completed;
  }

  Members members;

 private:
  const Job& job_;
  Rng rng_;
  std::vector<std::size_t> not_begun_;
};

// Each survivor completes with the right bits or names the lost member k, exactly once, and keeps nothing.
// Some scenes have both outcomes. This holds for every operation with 2 to 5 members, and for several orders
// of events. Each k is lost after each number of events s (begins and arrivals).
TEST(Losses, EveryMemberAfterEveryEvent) {
  for (const Case& one : kCases) {
    std::size_t all = 0;
    std::size_t some = 0;
    std::size_t none = 0;
    for (std::size_t ranks = 2; ranks <= 5; ++ranks) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        Rng rng(seed, Purpose::kTest, ranks);
        const Job job = make_job(one.kind, std::vector<std::uint64_t>(ranks, one.part), rng);
        std::size_t events = 0;
        for (Scene scene(job, seed); scene.step();) ++events;
        for (std::size_t gone = 0; gone < ranks; ++gone) {
          for (std::size_t before = 0; before <= events; ++before) {
            SCOPED_TRACE(testing::Message()
                         << one.name << ", " << ranks << " members, seed " << seed << ", loss of " << gone
                         << " after " << before << " of " << events);
            Scene scene(job, seed);
            for (std::size_t i = 0; i < before; ++i) scene.step();
            scene.lose(gone);
            const std::size_t completed = scene.judge(gone);
            if (testing::Test::HasFailure()) return;
            ++(completed == 0 ? none : completed + 1 == ranks ? all : some);
          }
        }
      }
    }
    EXPECT_GT(all, 0U) << one.name;
    EXPECT_GT(some, 0U) << one.name;
    EXPECT_GT(none, 0U) << one.name;
  }
}

// Survivors of the loss of two members, at any two moments, name one of them.
TEST(Losses, TwoAtOnce) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest);
    const Case& one = kCases[rng.below(kCases.size())];
    const Job job = make_job(one.kind, std::vector<std::uint64_t>(5, one.part), rng);
    Scene scene(job, seed);
    for (std::uint64_t steps = rng.below(60); steps > 0; --steps) scene.step();
    const std::size_t first = rng.below(5);
    const std::size_t second = (first + 1 + rng.below(4)) % 5;
    for (std::size_t rank = 0; rank < 5; ++rank) {
      if (rank == first || rank == second) continue;
      scene.members.lost(rank, rng.below(2) == 0 ? first : second);
      scene.members.lost(rank, first);
      scene.members.lost(rank, second);
      for (std::uint64_t steps = rng.below(9); steps > 0; --steps) scene.step();
    }
    while (scene.step()) {
    }
    for (std::size_t rank = 0; rank < 5; ++rank) {
      if (rank == first || rank == second) continue;
      const Outcome& outcome = scene.members.outcomes[rank][1];
      ASSERT_EQ(outcome.times, 1);
      if (outcome.completed) {
        ASSERT_EQ(outcome.result, job.expected[rank]);
      } else {
        ASSERT_TRUE(outcome.lost == peer_of(first) || outcome.lost == peer_of(second));
      }
    }
  }
}

// A view is over after a loss: operations begun in it fail at once, and its messages are dropped. The next
// view starts clean.
TEST(Losses, TheViewIsOver) {
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllReduce, {1, 1, 1}, rng);
  Members members(3, 1);
  members.install(view_of(3));
  members.begin(1, 1, job);
  members.lost(0, 2);
  members.deliver_all();
  members.begin(0, 1, job);
  EXPECT_EQ(members.outcomes[0][1].lost, peer_of(2));
  members.begin(0, 9, job);
  EXPECT_EQ(members.outcomes[0][9].lost, peer_of(2));
  EXPECT_EQ(members.at(0).held_bytes(), 0U);

  const ExchangeView next{.epoch = Epoch(6), .members = {peer_of(0), peer_of(1)}};
  const Job two = make_job(OperationKind::kAllReduce, {1, 1}, rng);
  for (const std::size_t rank : {0U, 1U}) members.install(rank, next);
  EXPECT_EQ(members.outcomes[1][1].times, 1);
  EXPECT_EQ(members.outcomes[1][1].lost, std::nullopt);  // another view took over
  for (const std::size_t rank : {0U, 1U}) members.begin(rank, 7, two);
  members.deliver_all();
  for (const std::size_t rank : {0U, 1U}) EXPECT_EQ(members.outcomes[rank][7].result, two.expected[rank]);
}

// A peer that is known to be lost when a view is installed is lost in it. Another incarnation of its node is
// not.
TEST(Losses, KnownAtInstall) {
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllGather, {1, 1}, rng);
  Members members(2, 1);
  members.install(0, view_of(2), {{peer_of(1).node, Incarnation{1}}});
  members.begin(0, 1, job);
  EXPECT_EQ(members.outcomes[0].count(1), 0U);
  members.install(0, view_of(2, 6), {peer_of(1)});
  members.begin(0, 2, job);
  EXPECT_EQ(members.outcomes[0][2].lost, peer_of(1));
}

// Members go from view to view at different times, in any order with messages. Messages of a later view are
// kept, and those of an earlier view are dropped. Each operation ends with the right bits or, if its view was
// replaced, as failed with nobody named.
TEST(Losses, ViewsFollowOneAnother) {
  std::size_t completed = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest);
    const std::size_t ranks = 2 + rng.below(3);
    Members members(ranks, seed, small_limits(), {}, formed_at(seed));
    std::vector<Job> jobs;
    for (int i = 0; i < 4; ++i) {
      const Case& one = kCases[rng.below(kCases.size())];
      jobs.push_back(make_job(one.kind, std::vector<std::uint64_t>(ranks, one.part), rng));
    }
    std::vector<std::uint64_t> next(ranks, 0);
    for (std::size_t left = 4 * ranks; left > 0;) {
      const std::size_t rank = rng.below(ranks);
      if (next[rank] < 4 && rng.below(12) == 0) {
        // Each view's operation has the number 1, so that views alone tell them apart.
        members.install(rank, view_of(ranks, 5 + next[rank]));
        if (next[rank] > 0) members.outcomes[rank][100 + next[rank] - 1] = members.outcomes[rank][1];
        members.outcomes[rank].erase(1);
        members.begin(rank, 1, jobs[next[rank]++]);
        --left;
      } else {
        members.deliver_any();
      }
    }
    members.deliver_all();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      members.outcomes[rank][103] = members.outcomes[rank][1];
      for (std::uint64_t view = 0; view < 4; ++view) {
        const Outcome& outcome = members.outcomes[rank][100 + view];
        ASSERT_EQ(outcome.times, 1) << view;
        if (outcome.completed) {
          ++completed;
          ASSERT_EQ(outcome.result, jobs[view].expected[rank]);
        } else {
          ASSERT_TRUE(!outcome.lost.has_value() && view < 3);
        }
      }
      ASSERT_EQ(members.at(rank).held_bytes(), 0U);
    }
    ASSERT_TRUE(members.broken.empty());
  }
  EXPECT_GT(completed, 800U);  // the operations of the last views at least
}

}  // namespace
}  // namespace gossamer::cluster
