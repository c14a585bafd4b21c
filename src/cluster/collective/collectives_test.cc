// SPDX-License-Identifier: Apache-2.0
//
// Operations in which nobody is lost: results, order of summation, bytes and messages, memory, early
// messages.
#include "cluster/collective/collectives.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "cluster/collective/test_members.h"

namespace gossamer::cluster {
namespace {

constexpr std::array kKinds = {OperationKind::kAllGather, OperationKind::kReduceScatter,
                               OperationKind::kAllReduce, OperationKind::kAllToAll};

void expect_completed(const Members& members, std::uint64_t id, const Job& job) {
  for (std::size_t rank = 0; rank < members.ranks(); ++rank) {
    const auto found = members.outcomes[rank].find(id);
    ASSERT_TRUE(found != members.outcomes[rank].end()) << "rank " << rank;
    ASSERT_EQ(found->second.times, 1) << "rank " << rank;
    ASSERT_TRUE(found->second.completed) << "rank " << rank;
    ASSERT_EQ(found->second.result, job.expected[rank]) << "rank " << rank;
  }
}

void expect_idle(Members& members) {
  for (std::size_t rank = 0; rank < members.ranks(); ++rank) {
    ASSERT_EQ(members.at(rank).under_way(), 0U) << "rank " << rank;
    ASSERT_EQ(members.at(rank).held_bytes(), 0U) << "rank " << rank;
  }
  ASSERT_TRUE(members.broken.empty()) << members.broken[0].error.message();
}

// Sizes for tests with small_limits(): nothing, and less and more than chunks and windows. They are equal for
// everybody or drawn for each member.
std::vector<std::vector<std::uint64_t>> shapes(std::size_t ranks, Rng& rng) {
  std::vector<std::vector<std::uint64_t>> all;
  for (const std::uint64_t size : {0U, 1U, 3U, 4U, 5U, 8U, 9U, 60U}) all.emplace_back(ranks, size);
  for (int i = 0; i < 6; ++i) {
    std::vector<std::uint64_t>& parts = all.emplace_back(ranks);
    for (std::uint64_t& part : parts) part = rng.below(3) == 0 ? 0 : rng.below(i < 3 ? 9 : 90);
  }
  return all;
}

// Each member gets the result of one machine that sums by rank, bit for bit, and nothing is left behind. This
// holds for every operation with up to five members, equal and unequal parts, any order of arrival, and
// payloads cut anywhere.
TEST(Collectives, EqualTheReference) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    for (std::size_t ranks = 1; ranks <= 5; ++ranks) {
      Rng rng(seed, Purpose::kTest, ranks);
      for (const OperationKind kind : kKinds) {
        for (const auto& parts : shapes(ranks, rng)) {
          const Job job = make_job(kind, parts, rng);
          Members members(ranks, seed, small_limits(), {}, formed_at(seed));
          members.install(view_of(ranks));
          for (std::size_t rank = 0; rank < ranks; ++rank) members.begin(rank, 1, job);
          members.deliver_all();
          ASSERT_NO_FATAL_FAILURE(expect_completed(members, 1, job));
          ASSERT_NO_FATAL_FAILURE(expect_idle(members));
        }
      }
    }
  }
}

// Runs one way of interleaving begins and deliveries; `choices` says which event comes next, and grows by 0s
// where it ends. Returns the number of events to choose from at each point.
std::vector<std::size_t> run_choices(const Job& job, std::vector<std::size_t>& choices, Members& members) {
  std::vector<std::size_t> open;
  std::vector<std::size_t> not_begun;
  for (std::size_t rank = 0; rank < members.ranks(); ++rank) not_begun.push_back(rank);
  for (std::size_t at = 0;; ++at) {
    const auto pairs = members.under_way();
    const std::size_t events = not_begun.size() + pairs.size();
    if (events == 0) return open;
    if (choices.size() == at) choices.push_back(0);
    open.push_back(events);
    const std::size_t choice = choices[at];
    if (choice < not_begun.size()) {
      const std::size_t rank = not_begun[choice];
      not_begun.erase(not_begun.begin() + static_cast<std::ptrdiff_t>(choice));
      members.begin(rank, 1, job);
    } else {
      members.deliver(pairs[choice - not_begun.size()]);
    }
  }
}

// Runs all interleavings of begins and arrivals, and returns their number.
std::size_t all_interleavings(const Job& job, const CollectiveLimits& limits = small_limits()) {
  const std::size_t ranks = job.inputs.size();
  std::vector<std::size_t> choices;
  std::size_t runs = 0;
  for (;;) {
    Members members(ranks, runs, limits);
    members.install(view_of(ranks));
    const std::vector<std::size_t> open = run_choices(job, choices, members);
    expect_completed(members, 1, job);
    expect_idle(members);
    ++runs;
    while (!choices.empty() && choices.back() + 1 == open[choices.size() - 1]) choices.pop_back();
    if (choices.empty() || testing::Test::HasFailure()) return runs;
    ++choices.back();
  }
}

// All interleavings of begins and messages complete. Three members send one chunk each. Two members send
// several chunks, of which one waits for a GRANT. An all-reduce takes two rounds.
TEST(Collectives, AllInterleavings) {
  Rng rng(3, Purpose::kTest);
  for (const OperationKind kind : kKinds) {
    EXPECT_EQ(all_interleavings(make_job(kind, {1, 2, 1}, rng)), 13440U);  // 9! / 3^3
  }
  EXPECT_GT(all_interleavings(make_job(OperationKind::kAllGather, {65, 16}, rng)), 50U);
  EXPECT_GT(all_interleavings(make_job(OperationKind::kReduceScatter, {17, 1}, rng)), 50U);
  CollectiveLimits two_rounds = small_limits();
  two_rounds.direct_extra_bytes = 0;
  EXPECT_GT(all_interleavings(make_job(OperationKind::kAllReduce, {1, 0, 1}, rng), two_rounds), 1000U);
}

// Each of several operations at once gets its own result. Every member begins them in another order, some
// long after others.
TEST(Collectives, ManyAtOnceInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest);
    const std::size_t ranks = 2 + rng.below(4);
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < 6; ++i) {
      std::vector<std::uint64_t> parts(ranks);
      for (std::uint64_t& part : parts) part = rng.below(60);
      jobs.push_back(make_job(kKinds[rng.below(kKinds.size())], parts, rng));
    }
    Members members(ranks, seed, small_limits(), {}, formed_at(seed));
    members.install(view_of(ranks));
    std::vector<std::set<std::uint64_t>> to_begin(ranks, {0, 1, 2, 3, 4, 5});
    for (std::size_t left = 6 * ranks; left > 0;) {
      const std::size_t rank = rng.below(ranks);
      if (rng.below(4) == 0 && !to_begin[rank].empty()) {
        const auto which =
            std::next(to_begin[rank].begin(), static_cast<std::ptrdiff_t>(rng.below(to_begin[rank].size())));
        members.begin(rank, *which, jobs[*which]);
        to_begin[rank].erase(which);
        --left;
      } else {
        members.deliver_any();
      }
    }
    members.deliver_all();
    for (std::uint64_t id = 0; id < 6; ++id) {
      ASSERT_NO_FATAL_FAILURE(expect_completed(members, id, jobs[id]));
    }
    ASSERT_NO_FATAL_FAILURE(expect_idle(members));
  }
}

std::uint64_t chunks_of(std::uint64_t bytes) { return StreamShape{bytes, 16}.chunks(); }

// How many GRANTs a stream of so many bytes takes, by the page's formula.
std::uint64_t grants_of(OperationKind kind, std::uint64_t bytes, std::uint64_t window) {
  const std::uint64_t chunks = chunks_of(bytes);
  if (chunks <= window) return 0;
  if (kind == OperationKind::kAllGather || kind == OperationKind::kAllToAll) return 1;
  return (chunks - window + window / 2 - 1) / (window / 2);
}

// Payload bytes and messages of each member are those of the page's tables, for every operation and size.
TEST(Collectives, BytesAndMessagesAsThePageSays) {
  for (std::size_t ranks = 2; ranks <= 5; ++ranks) {
    Rng rng(ranks, Purpose::kTest);
    const std::uint64_t window = window_chunks(small_limits(), ranks);
    for (const OperationKind kind : kKinds) {
      for (const auto& parts : shapes(ranks, rng)) {
        const Job job = make_job(kind, parts, rng);
        Members members(ranks, ranks);
        members.install(view_of(ranks));
        for (std::size_t rank = 0; rank < ranks; ++rank) members.begin(rank, 1, job);
        members.deliver_all();
        std::uint64_t whole = 0;
        for (const std::uint64_t part : parts) whole += 4 * part;
        const bool direct = kind == OperationKind::kAllReduce && goes_direct(small_limits(), whole, ranks);
        const bool sums = kind == OperationKind::kAllReduce && !direct;
        const bool gather = kind == OperationKind::kAllGather;
        for (std::size_t i = 0; i < ranks; ++i) {
          Sent expected;
          for (std::size_t j = 0; j < ranks; ++j) {
            if (j == i) continue;
            std::uint64_t out = gather ? parts[i] : direct ? whole : 4 * parts[j];
            std::uint64_t in = gather ? parts[j] : direct ? whole : 4 * parts[i];
            if (kind == OperationKind::kAllToAll) out = in = job.operation_of(i).parts[j];
            expected.payload += out + (sums ? 4 * parts[i] : 0);
            expected.messages[wire::Collective::PART] += chunks_of(out);
            expected.messages[wire::Collective::SUM] += sums ? chunks_of(4 * parts[i]) : 0;
            expected.messages[wire::Collective::GRANT] += grants_of(kind, in, window);
          }
          std::erase_if(expected.messages, [](const auto& one) { return one.second == 0; });
          ASSERT_EQ(members.sent[i].payload, expected.payload) << "rank " << i;
          ASSERT_EQ(members.sent[i].messages, expected.messages) << "rank " << i;
        }
      }
    }
  }
}

// The bytes that wait at a member for the lowest rank stay within (n-1) windows, however slow that rank is.
// They reach (n-2) windows.
TEST(Collectives, WindowsBoundWhatWaits) {
  for (const OperationKind kind : {OperationKind::kReduceScatter, OperationKind::kAllReduce}) {
    for (std::size_t ranks = 3; ranks <= 5; ++ranks) {
      Rng rng(ranks, Purpose::kTest);
      const Job job = make_job(kind, std::vector<std::uint64_t>(ranks, 400), rng);
      const std::uint64_t window = window_chunks(small_limits(), ranks) * 16;
      Members members(ranks, ranks);
      members.install(view_of(ranks));
      for (std::size_t rank = 0; rank < ranks; ++rank) members.begin(rank, 1, job);
      std::uint64_t most = 0;
      for (;;) {
        auto pairs = members.under_way();
        if (pairs.empty()) break;
        members.deliver(pairs.back());  // messages of rank 0 last
        for (std::size_t rank = 0; rank < ranks; ++rank) most = std::max(most, members.at(rank).held_bytes());
      }
      EXPECT_LE(most, (ranks - 1) * window);
      EXPECT_GE(most, (ranks - 2) * window);
      expect_completed(members, 1, job);
    }
  }
}

// A member that begins late keeps at most a window of messages from each other member, and loses nothing.
TEST(Collectives, LateMemberKeepsAWindow) {
  for (const OperationKind kind : kKinds) {
    Rng rng(9, Purpose::kTest);
    const Job job = make_job(kind, std::vector<std::uint64_t>(4, 400), rng);
    const std::uint64_t window = window_chunks(small_limits(), 4);
    constexpr std::uint64_t kMessage = net::kMessageCost + 12;  // and most of a body here
    Members members(4, 9);
    members.install(view_of(4));
    for (std::size_t rank = 1; rank < 4; ++rank) members.begin(rank, 1, job);
    members.deliver_all();
    EXPECT_GT(members.at(0).held_bytes(), 0U);
    EXPECT_LE(members.at(0).held_bytes(), 3 * (window * (16 + kMessage) + kMessage));  // and a GRANT
    members.begin(0, 1, job);
    members.deliver_all();
    expect_completed(members, 1, job);
    expect_idle(members);
  }
}

// Claim: a member that lacks something names those that owe it, and nobody who waits like itself. One sends
// nothing here; so all others lack its part, and nothing else.
TEST(Collectives, NamesWhoOwes) {
  for (const OperationKind kind : kKinds) {
    Rng rng(11, Purpose::kTest);
    const Job job = make_job(kind, std::vector<std::uint64_t>(4, 400), rng);
    Members members(4, 11);
    members.install(view_of(4));
    EXPECT_FALSE(members.at(1).missing());
    for (std::size_t rank = 0; rank < 4; ++rank) {
      if (rank == 2) continue;
      members.begin(rank, 8, job);
      members.begin(rank, 7, job);
    }
    const std::uint64_t at_first = members.at(1).missing()->chunks;
    members.deliver_all();
    for (const std::size_t rank : {0U, 1U, 3U}) {
      const auto missing = members.at(rank).missing();
      ASSERT_TRUE(missing);
      EXPECT_EQ(missing->id, OperationId(7)) << "the first";
      EXPECT_EQ(missing->members, std::vector{peer_of(2)}) << static_cast<int>(kind) << ", rank " << rank;
    }
    EXPECT_LT(members.at(1).missing()->chunks, at_first);
    members.begin(2, 7, job);
    members.begin(2, 8, job);
    members.deliver_all();
    expect_completed(members, 7, job);
    EXPECT_FALSE(members.at(1).missing());
  }
}

// Claim: in a sum of two rounds the member that lacks a part names the one that owes it. All others have
// their parts, and name the member that cannot sum its own. The parts need no grants here.
TEST(Collectives, NamesWhoOwesASum) {
  Rng rng(12, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllReduce, std::vector<std::uint64_t>(4, 12), rng);
  Members members(4, 12);
  members.install(view_of(4));
  for (std::size_t rank = 0; rank < 4; ++rank) members.begin(rank, 1, job);
  for (;;) {
    auto pairs = members.under_way();
    std::erase(pairs, std::pair<std::size_t, std::size_t>(2, 1));
    if (pairs.empty()) break;
    members.deliver(pairs.front());
  }
  EXPECT_EQ(members.at(1).missing()->members, std::vector{peer_of(2)});
  EXPECT_EQ(members.at(0).missing()->members, std::vector{peer_of(1)});
  EXPECT_EQ(members.at(3).missing()->members, std::vector{peer_of(1)});
  members.deliver_all();
  expect_completed(members, 1, job);
}

// Results and sent chunks refer to the input's and the messages' memory; only sums are new.
TEST(Collectives, NothingIsCopied) {
  Collectives member({.self = peer_of(0), .channel = 3});
  CollectiveEvents out;
  member.install(view_of(2), {}, out);
  const Slice input = Slice::of(std::string(8, 'a'));
  const Slice theirs = Slice::of(std::string(4, 'b'));
  member.begin(OperationId(1), {OperationKind::kAllGather, {8, 4}}, {input}, out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(std::get<Send>(out[0]).message.payload.at(0).bytes().data(), input.bytes().data());
  net::Message answer = std::get<Send>(out[0]).message;
  answer.payload = {theirs};
  out.clear();
  member.on(peer_of(1), std::move(answer), out);
  const auto& result = std::get<Completed>(out.at(0)).result;
  EXPECT_EQ(result.at(0).at(0).bytes().data(), input.bytes().data());
  EXPECT_EQ(result.at(1).at(0).bytes().data(), theirs.bytes().data());
}

}  // namespace
}  // namespace gossamer::cluster
