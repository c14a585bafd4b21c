// SPDX-License-Identifier: Apache-2.0
#include "commands/ask_fleet/query_desk.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "host/posix/clock.h"
#include "host/posix/serial_thread.h"
#include "host/sim/clock.h"

namespace gossamer::commands {
namespace {

using Found = QueryDesk::Found;

const QueryDesk::Patience kNone{.time = Duration()};
const QueryDesk::Patience kLong{.time = from_seconds(600)};

AskedBlock block(std::uint64_t number) {
  return {.number = number, .begin = {0, 0}, .index = {}, .value = {}, .labels = 1};
}
Found lists(std::uint32_t label) { return {.net = {{{.id = label, .score = 1}}}, .fused = {}}; }

// The asking thread, with a lead that does `answer` when it is woken.
class QueryDeskTest : public ::testing::Test {
 protected:
  void lead(std::function<void()> answer) {
    desk_.leads(
        {.at = {}, .token = "token", .wake = [answer = std::move(answer)](const auto&) { answer(); }});
    const auto led = desk_.wait_until_led(clock_, kNone);
    ASSERT_TRUE(led.ok());
    EXPECT_EQ(led->token, "token");
  }

  host::PosixClock clock_;
  QueryDesk desk_;
};

// Claim: each block gets its own answer, whatever comes late for an earlier one. The late answer is heard
// alone: the right one comes when the asker has looked once.
TEST_F(QueryDeskTest, LateAnswersAreDropped) {
  lead([this] {
    const auto asked = desk_.take_question();
    ASSERT_TRUE(asked);
    desk_.gives({.number = asked->number - 1, .found = lists(99)});
  });
  for (std::uint64_t number = 1; number < 4; ++number) {
    const auto looked_once = [this, number] {
      desk_.gives({.number = number, .found = lists(static_cast<std::uint32_t>(number))});
      return false;
    };
    const auto answer = desk_.ask(block(number), clock_, {.time = from_seconds(600), .stop = looked_once});
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->net, lists(static_cast<std::uint32_t>(number)).net);
  }
}

// Claim: an answer that comes late hides no other, though both are heard in one look.
TEST_F(QueryDeskTest, LateAnswersHideNoOther) {
  lead([this] {
    const auto asked = desk_.take_question();
    ASSERT_TRUE(asked);
    desk_.gives({.number = asked->number, .found = lists(static_cast<std::uint32_t>(asked->number))});
    desk_.gives({.number = asked->number - 1, .found = lists(99)});
  });
  for (std::uint64_t number = 1; number < 4; ++number) {
    const auto looked_once = [] { return true; };
    const auto answer = desk_.ask(block(number), clock_, {.time = from_seconds(600), .stop = looked_once});
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->net, lists(static_cast<std::uint32_t>(number)).net);
  }
}

// An answer may be an error, which concerns its block alone.
TEST_F(QueryDeskTest, ErrorOfOneBlock) {
  lead([this] {
    const auto asked = desk_.take_question();
    if (asked->number == 1) return desk_.gives({.number = 1, .found = Error{.where = "node 5"}});
    desk_.gives({.number = asked->number, .found = lists(2)});
  });
  const auto wrong = desk_.ask(block(1), clock_, kNone);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().where, "node 5");
  EXPECT_TRUE(desk_.ask(block(2), clock_, kNone).ok());
}

// A thread that waits in vain is told why.
TEST_F(QueryDeskTest, WaitsNoLongerThanIsOfUse) {
  desk_.shows({.members = 2, .whole = false});
  const auto late = desk_.wait_until_whole(clock_, kNone);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().got, "2 of them ready after 0 s");
  const auto stopped =
      desk_.wait_until_whole(clock_, {.time = from_seconds(600), .stop = [] { return true; }});
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().got, "stopped while they were waited for");
  desk_.shows({.members = 3, .whole = true});
  EXPECT_TRUE(desk_.wait_until_whole(clock_, kNone).ok());
  lead([this] { desk_.fails({.where = "nodes/2.log"}); });
  const auto failed = desk_.ask(block(1), clock_, kLong);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().where, "nodes/2.log");
}

// Claim: of many blocks, the first alone waits for nodes that are away. All later ones fail at once, whatever
// part comes back. They are asked again when the late answer comes, or when all parts are there.
TEST_F(QueryDeskTest, OnlyTheFirstWaitsInVain) {
  int asked = 0;
  lead([&] { ++asked; });
  const QueryDesk::Patience patience{.time = from_seconds(10)};
  const auto fails_at_once = [&](std::uint64_t number) {
    const auto answer = desk_.ask(block(number), clock_, patience);
    return !answer.ok() && answer.error().got == "they have not answered for a while";
  };
  const auto out_of_reach = [&](std::uint64_t number) {
    return !desk_.ask(block(number), clock_, kNone).ok() && fails_at_once(number + 1);
  };
  desk_.shows({.members = 2, .whole = true});
  EXPECT_TRUE(out_of_reach(1));
  desk_.shows({.members = 1, .whole = false});
  EXPECT_TRUE(fails_at_once(3));
  EXPECT_EQ(asked, 1);
  desk_.gives({.number = 1, .found = lists(1)});
  EXPECT_TRUE(out_of_reach(4));
  EXPECT_EQ(asked, 2);
  desk_.shows({.members = 2, .whole = true, .epoch = Epoch(7)});
  EXPECT_TRUE(out_of_reach(6));
  EXPECT_EQ(asked, 3);
}

// Claim: an asking thread that is told to stop still waits a while for an answer, and no longer.
TEST_F(QueryDeskTest, StopsAfterTheLastAnswer) {
  host::SimClock clock;
  lead([] {});
  const QueryDesk::Patience patience{.time = from_seconds(600),
                                     .stop =
                                         [&] {
                                           clock.advance(from_seconds(1));
                                           return clock.now() > Instant() + from_seconds(3);
                                         },
                                     .after_stop = from_seconds(5)};
  const auto stopped = desk_.ask(block(1), clock, patience);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().got, "stopped while they were waited for");
  EXPECT_EQ(clock.now(), Instant() + from_seconds(9));
}

// Claim: nodes that are all there have all of the time for an answer, also after the word to stop. Once one
// is away, it is waited for no longer than one that has been away before.
TEST_F(QueryDeskTest, WaitsForNodesThatAreThere) {
  host::SimClock clock;
  lead([] {});
  desk_.shows({.members = 2, .whole = true});
  desk_.reaches(true);
  const auto asked_for = [&](std::uint64_t number, Duration after_stop, double away_at) {
    const Instant begin = clock.now();
    const auto stop = [&, begin] {
      clock.advance(from_seconds(1));
      if (clock.now() - begin == from_seconds(away_at)) desk_.reaches(false);
      return true;
    };
    desk_.gives({.number = number - 1, .found = lists(1)});  // they are not taken for away
    EXPECT_FALSE(
        desk_.ask(block(number), clock, {.time = from_seconds(20), .stop = stop, .after_stop = after_stop})
            .ok());
    return (clock.now() - begin).seconds();
  };
  EXPECT_EQ(asked_for(1, from_seconds(5), 30), 20);
  EXPECT_EQ(asked_for(2, Duration(), 30), 1) << "one that does not wait for the last answer";
  EXPECT_EQ(asked_for(3, from_seconds(5), 10), 16);
  EXPECT_EQ(asked_for(4, from_seconds(5), 30), 6);
}

// Claim: waiting ends when nothing leads any more. A thread that has no question sees it too, and why.
TEST_F(QueryDeskTest, NobodyLeadsAnyMore) {
  desk_.shows({.members = 1, .whole = false});
  EXPECT_FALSE(desk_.ended());
  desk_.closes();
  ASSERT_TRUE(desk_.ended());
  EXPECT_EQ(desk_.ended()->got, "they have ended");
  const auto led = desk_.wait_until_led(clock_, kLong);
  ASSERT_FALSE(led.ok());
  EXPECT_EQ(led.error().got, "they have ended");
  desk_.fails({.where = "nodes/state"});
  ASSERT_TRUE(desk_.ended());
  EXPECT_EQ(desk_.ended()->where, "nodes/state");
}

// The lead lives until it is told that there is nothing more to come, and no longer.
TEST_F(QueryDeskTest, LeadsUntilTheEnd) {
  host::Mailbox<int> wakes;
  host::SerialThread leading("leading");  // ends first
  leading.give([&] {
    desk_.leads({.at = {}, .token = {}, .wake = [&wakes](const auto&) { wakes.push(1); }});
    while (!desk_.ending()) {
      if (wakes.wait(from_milliseconds(5)).empty()) continue;
      if (const auto asked = desk_.take_question()) desk_.gives({.number = asked->number, .found = lists(1)});
    }
    desk_.wait_for_end();
  });
  ASSERT_TRUE(desk_.wait_until_led(clock_, kLong).ok());
  for (std::uint64_t number = 1; number < 100; ++number)
    ASSERT_TRUE(desk_.ask(block(number), clock_, kLong).ok()) << number;
  desk_.end();
}

}  // namespace
}  // namespace gossamer::commands
