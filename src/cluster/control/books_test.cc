// SPDX-License-Identifier: Apache-2.0
//
// The part of a coordinator with leases and ledgers, alone. The ledgers have tests of their own in
// cluster/membership.
#include "cluster/control/books.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cluster/control/test_coordinator.h"
#include "cluster/control/test_leadership.h"

namespace gossamer::cluster {
namespace {

using membership::ToMember;
using Strings = std::vector<std::string>;

CoordinatorOptions with_ledgers() {
  CoordinatorOptions options;
  options.tracks = {TrackId(0), TrackId(1)};
  options.batch = 4;
  return options;
}

Books::Progress progress(std::uint64_t track, std::uint64_t next) {
  Books::Progress all;
  membership::Progress& one = *all.Add();
  one.set_track(track);
  one.set_next(next);
  return all;
}

class BooksTest : public ::testing::Test {
 protected:
  TestLeadership around_{with_ledgers()};
  Books books_{around_.shared(), Records{}, {}};
};

// Claim: a lease is written before it is answered, and freed once it has lapsed.
TEST_F(BooksTest, LeasesAreWritten) {
  LedMember& member = around_.add(10, membership::SERVING);
  membership::LeaseAsk ask;
  ask.set_wish(membership::LeaseAsk::GRANT);
  ask.mutable_keys()->set_end(1);
  ask.set_duration_ns(from_seconds(10).ns);
  EXPECT_FALSE(books_.lease(member, ask, {}).has_value());
  EXPECT_EQ(around_.said(ToMember::kLease), 0);
  const Strings granted = around_.store();
  EXPECT_EQ(granted.size(), 1u);
  EXPECT_EQ(around_.said(ToMember::kLease), 1);
  books_.tick(at(10));
  EXPECT_EQ(around_.store(), Strings{});
  books_.tick(at(11));
  EXPECT_EQ(around_.store(), granted);
}

// Claim: a request that is no lease is an objection to the member, and is not answered. It is none without a
// key, with an unknown wish, or for more than an hour: no coordinator could read such a row.
TEST_F(BooksTest, ImpossibleLease) {
  LedMember& member = around_.add(10, membership::SERVING);
  const auto objects = [&](auto change) {
    membership::LeaseAsk ask;
    ask.set_wish(membership::LeaseAsk::GRANT);
    ask.mutable_keys()->set_begin(5);
    ask.mutable_keys()->set_end(6);
    ask.set_duration_ns(3600'000'000'000);
    change(ask);
    return books_.lease(member, ask, {}).has_value();
  };
  EXPECT_TRUE(objects([](auto& ask) { ask.set_wish(static_cast<membership::LeaseAsk::Wish>(3)); }));
  EXPECT_TRUE(objects([](auto& ask) { ask.mutable_keys()->set_end(5); }));
  EXPECT_TRUE(objects([](auto& ask) { ask.set_duration_ns(0); }));
  EXPECT_TRUE(objects([](auto& ask) { ask.set_duration_ns(3600'000'000'001); }));
  EXPECT_EQ(around_.store(), Strings{});
  EXPECT_EQ(around_.said(ToMember::kLease), 0);
  EXPECT_FALSE(objects([](auto&) {}));
  EXPECT_EQ(around_.store().size(), 1u);
}

// Claim: marks of a member of the view are written together, 0.1 s after the first. Marks of joining members
// count for nothing.
TEST_F(BooksTest, MarksAreWrittenTogether) {
  LedMember& member = around_.add(10, membership::SERVING);
  LedMember& joining = around_.add(11, membership::JOINING);
  EXPECT_FALSE(books_.applied(joining, progress(0, 5), {}).has_value());
  EXPECT_FALSE(books_.next_wakeup().has_value());
  EXPECT_FALSE(books_.applied(member, progress(0, 1), {}).has_value());
  EXPECT_FALSE(books_.applied(member, progress(1, 2), at(0.05)).has_value());
  EXPECT_EQ(books_.next_wakeup(), at(0.1));
  EXPECT_EQ(around_.store(), Strings{});
  books_.tick(at(0.1));
  EXPECT_EQ(around_.store().size(), 3u) << "two marks, and the step that both tracks have applied";
  EXPECT_EQ(books_.marks()->committed(), StepNumber(1));
}

class BooksOfThings : public BooksTest {
 protected:
  BooksOfThings() { around_.workload.tracks_of_things = true; }
  void hold(std::uint64_t first, std::uint64_t second) {
    around_.run.holdings = {{placement::ThingId(0), NodeId(first)}, {placement::ThingId(1), NodeId(second)}};
    books_.placed({});
  }
  StepNumber marks(LedMember& member, std::uint64_t track, std::uint64_t next) {
    EXPECT_FALSE(books_.applied(member, progress(track, next), {}).has_value());
    return books_.marks()->committed();
  }
};

// Claim: marks count as long as their member holds the thing. What it has said too much of a thing that
// others hold since then carries the committed step nowhere: not with marks of others, and not with its own.
TEST_F(BooksOfThings, MarksOfFormerHolders) {
  LedMember& liar = around_.add(10, membership::SERVING);
  LedMember& other = around_.add(11, membership::SERVING);
  hold(11, 10);
  EXPECT_EQ(marks(liar, 1, 85), StepNumber(0));
  hold(10, 11);
  EXPECT_EQ(marks(liar, 0, 85), StepNumber(0));
  EXPECT_EQ(marks(liar, 1, 90), StepNumber(0)) << "it holds that thing no more";
  EXPECT_EQ(marks(other, 1, 3), StepNumber(3));
  hold(10, 11);
  EXPECT_EQ(marks(other, 1, 4), StepNumber(4)) << "both still hold what they have held";
}

// Claim: a mark that is not written yet when its member loses the thing is never written. A coordinator that
// takes over would count it.
TEST_F(BooksOfThings, MarksOfFormerHoldersAreNotWritten) {
  LedMember& member = around_.add(10, membership::SERVING);
  around_.add(11, membership::SERVING);
  hold(10, 10);
  marks(member, 0, 5);
  hold(11, 10);
  books_.tick(at(0.1));
  EXPECT_EQ(around_.store(), Strings{});
}

// Claim: marks of former holders leave the store. Those of another life of the holder's node are such marks.
TEST_F(BooksOfThings, MarksOfFormerHoldersLeaveTheStore) {
  LedMember& member = around_.add(10, membership::SERVING);
  around_.add(11, membership::SERVING);
  hold(10, 10);
  marks(member, 0, 5);
  books_.tick(at(0.1));
  const Strings written = around_.store();
  EXPECT_EQ(written.size(), 1u);
  hold(10, 10);
  EXPECT_EQ(around_.store(), Strings{});
  hold(11, 10);
  EXPECT_EQ(around_.store(), written);
  hold(10, 10);
  marks(member, 0, 6);
  books_.tick(at(0.3));
  EXPECT_EQ(around_.store(), written);
  membership::Change change;
  change.set_from(around_.run.view.epoch().value);
  change.set_epoch(around_.run.view.epoch().value + 1);
  change.add_fenced()->set_first(110);
  change.mutable_fenced(0)->set_last(110);
  ASSERT_TRUE(around_.run.view.apply(change).ok());
  hold(10, 10);
  EXPECT_EQ(around_.store(), written);
}

// Claim: a mark of a track that is none, or far ahead of all, is an objection.
TEST_F(BooksTest, ImpossibleMarks) {
  LedMember& member = around_.add(10, membership::SERVING);
  EXPECT_TRUE(books_.applied(member, progress(2, 1), {}).has_value());
  EXPECT_TRUE(books_.applied(member, progress(0, std::uint64_t{1} << 40), {}).has_value());
}

// Claim: the claims of a fenced member leave the store.
TEST_F(BooksTest, FencedMembersHoldNothing) {
  LedMember& member = around_.add(10, membership::SERVING);
  membership::ClaimAsk ask;
  ask.set_end(2);
  EXPECT_FALSE(books_.claim(member, ask).has_value());
  const Strings claimed = around_.store();
  EXPECT_EQ(claimed.size(), 1u);
  books_.free_everything_of(peer_of(member.record).incarnation);
  EXPECT_EQ(around_.store(), claimed);
}

// Claim: a sample of a step up to 4096 ahead can be claimed. One of a later step cannot: each step that is
// open costs the coordinator memory.
TEST_F(BooksTest, ClaimsFarAhead) {
  LedMember& member = around_.add(10, membership::SERVING);
  const auto rows = [&](std::uint64_t step) {
    membership::ClaimAsk ask;
    ask.set_step(step);
    ask.set_begin(4 * step);
    ask.set_end(4 * step + 1);
    EXPECT_FALSE(books_.claim(member, ask).has_value());
    return around_.store().size();
  };
  EXPECT_EQ(rows(4096), 1u);
  EXPECT_EQ(rows(4097), 0u);
  EXPECT_EQ(rows(1'000'000), 0u);
}

// Claim: members of the view claim and commit. A member that joins can do neither.
TEST_F(BooksTest, JoiningMembersClaimNothing) {
  LedMember& member = around_.add(10, membership::SERVING);
  LedMember& joining = around_.add(11, membership::JOINING);
  membership::ClaimAsk ask;
  ask.set_end(4);
  EXPECT_FALSE(books_.claim(joining, ask).has_value());
  EXPECT_EQ(around_.store(), Strings{});
  EXPECT_EQ(around_.said(ToMember::kClaim), 1);
  EXPECT_FALSE(books_.claim(member, ask).has_value());
  const Strings claimed = around_.store();
  EXPECT_EQ(claimed.size(), 1u);
  books_.commit(joining, {});
  EXPECT_EQ(around_.store(), Strings{});
  books_.commit(member, {});
  EXPECT_EQ(around_.store().size(), 2u) << "the commit, and the claim that is no more";
}

// Claim: a member of the view is granted leases. One that joins is not: it could hold back those that serve.
TEST_F(BooksTest, JoiningMembersHaveNoLeases) {
  LedMember& member = around_.add(10, membership::SERVING);
  LedMember& joining = around_.add(11, membership::JOINING);
  membership::LeaseAsk ask;
  ask.set_wish(membership::LeaseAsk::GRANT);
  ask.set_duration_ns(from_seconds(10).ns);
  ask.mutable_keys()->set_end(1);
  EXPECT_FALSE(books_.lease(joining, ask, {}).has_value());
  EXPECT_EQ(around_.store(), Strings{});
  EXPECT_EQ(around_.said(ToMember::kLease), 1);
  EXPECT_FALSE(books_.lease(member, ask, {}).has_value());
  EXPECT_EQ(around_.store().size(), 1u);
}

// Claim: one member holds at most so many leases. One more is an objection to that member. Another member
// may have as many, and leases that are given back count no more.
TEST_F(BooksTest, LeasesOfOneMember) {
  std::uint64_t key = 0;
  for (const std::uint64_t node : {10U, 11U}) {
    LedMember& member = around_.add(node, membership::SERVING);
    membership::LeaseAsk ask;
    ask.set_duration_ns(from_seconds(10).ns);
    const auto asks = [&](membership::LeaseAsk::Wish wish) {
      ask.set_wish(wish);
      ask.mutable_keys()->set_begin(key);
      ask.mutable_keys()->set_end(key + 1);
      return books_.lease(member, ask, {}).has_value();
    };
    for (std::size_t i = 0; i < Books::kMostLeases; ++i, ++key)
      ASSERT_FALSE(asks(membership::LeaseAsk::GRANT)) << i;
    --key;
    EXPECT_FALSE(asks(membership::LeaseAsk::GRANT)) << "the same again";
    EXPECT_FALSE(asks(membership::LeaseAsk::RELEASE));
    EXPECT_FALSE(asks(membership::LeaseAsk::GRANT));
    ++key;
    EXPECT_TRUE(asks(membership::LeaseAsk::GRANT));
    books_.free_everything_of(peer_of(member.record).incarnation);
  }
}

// Claim: one member has at most so many claims of steps that are not committed. Committed ones count no more.
TEST(BooksOfManySamples, ClaimsOfOneMember) {
  constexpr std::uint64_t kBatch = 1 << 15;
  CoordinatorOptions options = with_ledgers();
  options.batch = kBatch;
  TestLeadership around(options);
  Books books(around.shared(), Records{}, {});
  LedMember& member = around.add(10, membership::SERVING);
  const auto claims = [&](std::uint64_t id) {
    membership::ClaimAsk ask;
    ask.set_step(id / kBatch);
    ask.set_begin(id);
    ask.set_end(id + 1);
    return books.claim(member, ask).has_value();
  };
  std::uint64_t id = 0;
  for (; id < kBatch; ++id) ASSERT_FALSE(claims(id)) << id;
  books.commit(member, {});
  for (; id < kBatch + Books::kMostClaims; ++id) ASSERT_FALSE(claims(id)) << id;
  EXPECT_TRUE(claims(id));
}

class CoordinatorOfLiars : public CoordinatorTest {};

// Claim: a member whose beat names more than 100,000 nodes, of all kinds together, is fenced.
TEST_F(CoordinatorOfLiars, WhoNamesTooManyIsFenced) {
  const auto names = [&](std::uint64_t node, int more) {
    const net::PeerId peer = begin(node);
    say(peer, [&](auto& said) {
      membership::Beat& beat = *said.mutable_beat();
      for (int i = 0; i < 25'000; ++i) {
        beat.add_unreachable(1000);
        beat.add_lost(1000);
        beat.add_hears(1000);
        beat.add_quiet(1000);
      }
      for (int i = 0; i < more; ++i) beat.add_lost(1000);
    });
    return coordinator_->lives(peer);
  };
  EXPECT_TRUE(names(10, 0));
  EXPECT_FALSE(names(11, 1));
}

class CoordinatorOfTwoTracks : public CoordinatorTest {
 protected:
  CoordinatorOfTwoTracks() : CoordinatorTest({TrackId(0), TrackId(1)}) {}
};

// Claim: a member that says how far more tracks are than the run has is fenced, though what it says is of no
// use to the coordinator: it waits for no rest. One that says it of as many goes on.
TEST_F(CoordinatorOfTwoTracks, MarksOfMoreTracks) {
  const auto says = [&](std::uint64_t node, int tracks, auto marks) {
    const net::PeerId peer = begin(node);
    say(peer, [&](auto& said) {
      for (int i = 0; i < tracks; ++i) marks(said).add_progress();
    });
    return coordinator_->lives(peer);
  };
  const auto of_beat = [](auto& said) -> auto& { return *said.mutable_beat(); };
  const auto of_rest = [](auto& said) -> auto& { return *said.mutable_frozen(); };
  EXPECT_TRUE(says(10, 2, of_beat));
  EXPECT_TRUE(says(11, 2, of_rest));
  EXPECT_FALSE(says(12, 3, of_beat));
  EXPECT_FALSE(says(13, 3, of_rest));
}

}  // namespace
}  // namespace gossamer::cluster
