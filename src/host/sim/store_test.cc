// SPDX-License-Identifier: Apache-2.0
//
// What only the simulated store has: faults at chosen operations, leases on virtual time, a missing guard.
// The interface's promises: tests/conformance.
#include "host/sim/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/sim/clock.h"

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;

using Content = std::map<std::string, std::string>;

std::vector<Change> both(const std::string& value) {
  return {{.key = "x", .value = value}, {.key = "y", .value = value}};
}

// A process leads and commits twice; gives the number of commits that were answered.
int work(SimStore& store) {
  const auto won = store.campaign({.name = "worker", .address = "a"});
  if (!won.ok() || !*won) return 0;
  int answered = 0;
  for (const char* value : {"1", "2"}) {
    if (!store.keep().ok() || !store.commit(both(value)).ok()) break;
    ++answered;
  }
  return answered;
}

// A crash before any operation keeps what was answered and nothing else; the successor finds a whole batch.
TEST(SimStore, CrashAtEveryOperation) {
  SimClock clock;
  SimStoreMedium rehearsal(clock, {});
  const auto rehearsed = rehearsal.open();
  ASSERT_EQ(work(*rehearsed), 2);
  for (std::uint64_t k = 0; k <= rehearsed->operations(); ++k) {
    SimStoreMedium medium(clock, {});
    auto store = medium.open({.crash_at_operation = k});
    const int answered = work(*store);
    EXPECT_EQ(store->operations(), std::min(k + 1, rehearsed->operations())) << k;
    if (k < rehearsed->operations()) {
      EXPECT_THAT(store->commit({}).error().message(), HasSubstr("this process has crashed")) << k;
    }
    store.reset();
    const std::string value = std::to_string(answered);
    EXPECT_EQ(medium.entries(), answered == 0 ? Content{} : (Content{{"x", value}, {"y", value}})) << k;
    clock.advance(from_seconds(2));
    EXPECT_TRUE(*medium.open()->campaign({})) << k;
  }
}

// An operation with a lost answer was carried out; one that fails was not. The next one works again.
TEST(SimStore, OneFault) {
  for (const bool lost : {false, true}) {
    SimClock clock;
    SimStoreMedium medium(clock, {});
    const auto store = medium.open();
    ASSERT_TRUE(*store->campaign({}));
    store->restart_count(lost ? SimStoreFaults{.lose_answer_at_operation = 0}
                              : SimStoreFaults{.fail_at_operation = 0});
    const auto failed = store->commit(both("1"));
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
    EXPECT_EQ(medium.entries(), lost ? (Content{{"x", "1"}, {"y", "1"}}) : Content{});
    EXPECT_TRUE(store->commit(both("1")).ok());
    EXPECT_EQ(medium.entries(), (Content{{"x", "1"}, {"y", "1"}}));
  }
}

// A campaign with a lost answer holds other handles off, as its lease does, but not its own.
TEST(SimStore, LostCampaign) {
  SimClock clock;
  SimStoreMedium medium(clock, {});
  const auto store = medium.open({.lose_answer_at_operation = 0});
  const auto other = medium.open();
  EXPECT_FALSE(store->campaign({}).ok());
  EXPECT_EQ(store->commit({}).error().kind, ErrorKind::kRefused);
  EXPECT_FALSE(*other->campaign({}));
  EXPECT_EQ(**store->campaign({}), Generation(2));
}

// The lead ends with the last keep plus the lease, not a nanosecond earlier or later.
TEST(SimStore, LeaseEndsOnTime) {
  SimClock clock;
  SimStoreMedium medium(clock, {.lease = from_seconds(2)});
  const auto store = medium.open();
  const auto other = medium.open();
  ASSERT_TRUE(*store->campaign({}));
  clock.advance(from_seconds(1));
  ASSERT_TRUE(store->keep().ok());
  clock.advance({from_seconds(2).ns - 1});
  EXPECT_TRUE(store->commit(both("1")).ok());
  EXPECT_FALSE(*other->campaign({}));
  clock.advance({1});
  EXPECT_EQ(store->commit(both("2")).error().kind, ErrorKind::kRefused);
  EXPECT_FALSE(*store->leader());
  EXPECT_EQ(**other->campaign({}), Generation(2));
  EXPECT_EQ(medium.generation(), Generation(2));
  EXPECT_EQ(medium.entries(), (Content{{"x", "1"}, {"y", "1"}}));
}

// Without a lease the lead ends with the handle, and time changes nothing.
TEST(SimStore, LockEndsWithItsHandle) {
  SimClock clock;
  SimStoreMedium medium(clock, {.lease = std::nullopt});
  auto store = medium.open();
  const auto other = medium.open();
  ASSERT_TRUE(*store->campaign({}));
  clock.advance(from_seconds(1000));
  EXPECT_FALSE(*other->campaign({}));
  EXPECT_TRUE(store->commit({}).ok());
  store.reset();
  EXPECT_TRUE(*other->campaign({}));
}

// Claim: a watcher is told of each commit that becomes durable, and of no other. It is also told of one whose
// caller hears that it failed.
TEST(SimStore, WatcherSeesWhatIsDurable) {
  SimClock clock;
  SimStoreMedium medium(clock, {});
  std::size_t seen = 0;
  medium.watch([&](std::span<const Change> changes) {
    EXPECT_EQ(changes.size(), both("a").size());
    ++seen;
  });
  const auto store = medium.open();
  EXPECT_FALSE(store->commit(both("a")).ok());
  EXPECT_EQ(seen, 0u);
  ASSERT_TRUE(*store->campaign({}));
  store->restart_count({.fail_at_operation = 0});
  EXPECT_FALSE(store->commit(both("a")).ok());
  EXPECT_EQ(seen, 0u);
  store->restart_count({.lose_answer_at_operation = 0});
  EXPECT_FALSE(store->commit(both("a")).ok());
  EXPECT_EQ(seen, 1u);
  EXPECT_TRUE(store->commit(both("a")).ok());
  EXPECT_EQ(seen, 2u);
}

// The seeded defect: without the guard a leader of an old generation overwrites what its successor wrote.
TEST(SimStore, MissingGuardLetsOldLeadersWrite) {
  for (const StoreGuard guard : {StoreGuard::kGeneration, StoreGuard::kNone}) {
    SimClock clock;
    SimStoreMedium medium(clock, {.guard = guard});
    const auto old = medium.open();
    const auto next = medium.open();
    ASSERT_TRUE(*old->campaign({}));
    clock.advance(from_seconds(2));
    ASSERT_TRUE(*next->campaign({}));
    ASSERT_TRUE(next->commit(both("new")).ok());
    const bool wrote = old->commit(both("old")).ok();
    EXPECT_EQ(wrote, guard == StoreGuard::kNone);
    EXPECT_EQ(medium.entries().at("x"), wrote ? "old" : "new");
    // A handle that never led is refused in any case.
    EXPECT_FALSE(medium.open()->commit(both("stranger")).ok());
  }
}

}  // namespace
}  // namespace gossamer::host
