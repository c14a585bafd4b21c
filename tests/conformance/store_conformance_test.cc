// SPDX-License-Identifier: Apache-2.0
//
// Every promise of host/api/store.h, on SQLite, on a real etcd and on the simulated store.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/rng.h"
#include "stores.h"

namespace gossamer::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Model = std::map<std::string, std::string>;

class StoreConformance : public StoreTest {
 protected:
  static void put(Store& store, const std::string& key, const std::string& value) {
    const auto done = store.commit(std::vector<Change>{{.key = key, .value = value}});
    ASSERT_TRUE(done.ok()) << done.error().message();
  }
  // Expects the answer to a handle that does not lead, which says what to do.
  template <class T>
  static void expect_refused(const Result<T>& result) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, ErrorKind::kRefused);
    EXPECT_THAT(result.error().where, Not(IsEmpty()));
    EXPECT_THAT(result.error().what, HasSubstr("does not lead"));
    EXPECT_THAT(result.error().fix, HasSubstr("campaign again"));
  }
  static Model content(Store& store) {
    const auto entries = store.load();
    EXPECT_TRUE(entries.ok()) << entries.error().message();
    Model model;
    if (entries.ok()) {
      for (const Entry& entry : *entries) model.emplace(entry.key, entry.value);
    }
    return model;
  }
};

// A new store is empty and nobody leads it. Generations then rise with every campaign that is won.
TEST_P(StoreConformance, GenerationsRise) {
  Generation last;
  for (int i = 0; i < 5; ++i) {
    const auto store = system_->open();
    EXPECT_FALSE(*store->leader());
    const Generation won = lead(*store);
    EXPECT_GT(won, last);
    last = won;
    EXPECT_THAT(content(*store), IsEmpty());
    ASSERT_TRUE(store->resign().ok());
  }
}

// Others win nothing while one leads, and learn which one. When it resigns, the next wins at once.
TEST_P(StoreConformance, OneLeads) {
  const auto first = system_->open();
  const auto second = system_->open();
  const Candidate who{.name = "coordinator-ä", .address = "[2001:db8::1]:7070"};
  const auto won = first->campaign(who);
  ASSERT_TRUE(won.ok() && *won);
  for (int i = 0; i < 3; ++i) {
    const auto lost = second->campaign({.name = "second", .address = "b"});
    ASSERT_TRUE(lost.ok()) << lost.error().message();
    EXPECT_FALSE(*lost);
    for (Store* store : {first.get(), second.get()}) {
      const auto leader = store->leader();
      ASSERT_TRUE(leader.ok()) << leader.error().message();
      ASSERT_TRUE(*leader);
      EXPECT_EQ((*leader)->candidate.name, who.name);
      EXPECT_EQ((*leader)->candidate.address, who.address);
      EXPECT_EQ((*leader)->generation, **won);
    }
    EXPECT_TRUE(first->keep().ok());
  }
  ASSERT_TRUE(first->resign().ok());
  EXPECT_FALSE(*second->leader());
  const auto next = second->campaign({.name = "second", .address = "b"});
  ASSERT_TRUE(next.ok() && *next);
  EXPECT_GT(**next, **won);
}

// A handle that does not lead may neither load, commit nor keep, and is told what to do. Resigning is fine.
TEST_P(StoreConformance, OnlyTheLeaderReadsAndWrites) {
  const auto store = system_->open();
  expect_refused(store->commit({}));
  expect_refused(store->load());
  expect_refused(store->keep());
  EXPECT_TRUE(store->resign().ok());
}

// A leader that was replaced without noticing is refused whatever it tries, and changes nothing. It knows so
// from then on. It can campaign again and finds the other's entries.
TEST_P(StoreConformance, OldLeaderIsRefused) {
  for (const std::string call : {"commit", "load", "keep"}) {
    system_->start_anew();
    const auto old = system_->open();
    const auto other = system_->open();
    const Generation before = lead(*old);
    put(*old, "x", "old");
    system_->depose();
    const Generation after = lead(*other);
    EXPECT_GT(after, before);
    put(*other, "x", "new");
    const std::vector<Change> changes = {{.key = "x", .value = "zombie"}, {.key = "y", .value = "zombie"}};
    for (int i = 0; i < 2; ++i) {
      if (call == "commit") expect_refused(old->commit(changes));
      if (call == "load") expect_refused(old->load());
      if (call == "keep") expect_refused(old->keep());
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(content(*other), (Model{{"x", "new"}})) << call;
    ASSERT_TRUE(other->resign().ok());
    EXPECT_GT(lead(*old), after);
    EXPECT_EQ(content(*old), (Model{{"x", "new"}}));
  }
}

// Committed entries are there for the next process, in every detail.
TEST_P(StoreConformance, Reopening) {
  {
    const auto store = system_->open();
    static_cast<void>(lead(*store));
    put(*store, "a", "1");
    put(*store, "b", "2");
    put(*store, "a", "3");
    ASSERT_TRUE(store->resign().ok());
  }
  const auto store = system_->open();
  static_cast<void>(lead(*store));
  EXPECT_EQ(content(*store), (Model{{"a", "3"}, {"b", "2"}}));
}

// Entries come sorted by the bytes of their keys, also if there are many, whatever the order of writing.
TEST_P(StoreConformance, LoadIsSorted) {
  const auto store = system_->open();
  static_cast<void>(lead(*store));
  const std::vector<std::string> keys = {"b", "a/10", "a/9", "a", "a0", "Z", "\xc3\xa4", "\xff", "a/"};
  for (const std::string& key : keys) put(*store, key, key);
  std::vector<std::string> expected = keys;
  std::ranges::sort(expected);
  std::vector<Change> many;
  for (int i = 299; i >= 0; --i) {
    many.push_back({.key = fmt::format("c/{:03}", i * 7 % 300), .value = ""});
    expected.push_back(many.back().key);
  }
  ASSERT_TRUE(store->commit(many).ok());
  std::ranges::sort(expected);
  const auto entries = store->load();
  ASSERT_TRUE(entries.ok());
  std::vector<std::string> got;
  for (const Entry& entry : *entries) got.push_back(entry.key);
  EXPECT_EQ(got, expected);
}

// Changes of a batch count in their order. Removing a missing key is fine, and so is an empty batch.
TEST_P(StoreConformance, ChangesAreOrdered) {
  const auto store = system_->open();
  static_cast<void>(lead(*store));
  put(*store, "removed", "x");
  put(*store, "back", "x");
  const std::vector<Change> changes = {{.key = "twice", .value = "1"},
                                       {.key = "twice", .value = "2"},
                                       {.key = "removed"},
                                       {.key = "back"},
                                       {.key = "back", .value = "y"},
                                       {.key = "gone", .value = "z"},
                                       {.key = "gone"},
                                       {.key = "never there"}};
  ASSERT_TRUE(store->commit(changes).ok());
  ASSERT_TRUE(store->commit({}).ok());
  EXPECT_EQ(content(*store), (Model{{"back", "y"}, {"twice", "2"}}));
}

// Keys and values are any bytes up to the limits. Values may be empty, zeros, cut and overlong UTF-8, or
// separators.
TEST_P(StoreConformance, HostileBytes) {
  const auto store = system_->open();
  static_cast<void>(lead(*store));
  const std::string zero(1, '\0');
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  Model model = {{"empty", ""},
                 {zero, zero},
                 {"a" + zero + "b", "a" + zero + "b"},
                 {"a", "before a zero"},
                 {"\xf0\x9f\x92", "\xed\xa0\x80"},  // a cut character; half of a surrogate pair
                 {"\xf4\x8f\xbf\xbf", "\xc0\x80"},  // the last character; an overlong zero
                 {"/", "../.."},
                 {"%s'\";--", R"({"a":"\u0000"})"},
                 {all, all + all},
                 {std::string(kMaxKeyBytes, '\xff'), "longest key"}};
  std::vector<Change> changes;
  for (const auto& [key, value] : model) changes.push_back({.key = key, .value = value});
  ASSERT_TRUE(store->commit(changes).ok());
  EXPECT_EQ(content(*store), model);
  // Each is also found again one by one.
  while (!model.empty()) {
    ASSERT_TRUE(store->commit(std::vector<Change>{{.key = model.begin()->first}}).ok());
    model.erase(model.begin());
    EXPECT_EQ(content(*store), model);
  }
}

// Values up to the limit come back whole, alone and many in one batch.
TEST_P(StoreConformance, BigValues) {
  const auto store = system_->open();
  static_cast<void>(lead(*store));
  const auto value_of = [](int i) {
    std::string value(kMaxValueBytes, '\0');
    Rng rng(static_cast<std::uint64_t>(i), Purpose::kTest);
    for (char& c : value) c = static_cast<char>(rng.next_u32());
    return value;
  };
  Model model;
  std::vector<Change> changes;
  put(*store, "alone", value_of(99));
  model["alone"] = value_of(99);
  for (int i = 0; i < 15; ++i) {
    const std::string key = fmt::format("big/{}", i);
    model[key] = value_of(i);
    changes.push_back({.key = key, .value = model[key]});
  }
  const auto done = store->commit(changes);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_TRUE(content(*store) == model);  // not EXPECT_EQ: it would print them
}

// A batch with the most changes allowed, puts and removals, is carried out whole.
TEST_P(StoreConformance, ManyChanges) {
  const auto store = system_->open();
  static_cast<void>(lead(*store));
  Model model;
  for (const int round : {0, 1}) {
    std::vector<Change> changes;
    for (std::size_t i = 0; i < kMaxChanges; ++i) {
      const std::string key = fmt::format("k{}", i);
      if (round == 1 && i % 2 == 0) {
        changes.push_back({.key = key});
        model.erase(key);
      } else {
        changes.push_back({.key = key, .value = fmt::format("{}/{}", round, i)});
        model[key] = *changes.back().value;
      }
    }
    const auto done = store->commit(changes);
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(content(*store), model);
  }
}

// A batch beyond a limit is refused whole, with the limit in the message. The lead goes on.
TEST_P(StoreConformance, Limits) {
  const auto store = system_->open();
  static_cast<void>(lead(*store));
  const auto expect = [&](const std::vector<Change>& batch, const std::string& part) {
    const auto refused = store->commit(batch);
    ASSERT_FALSE(refused.ok()) << part;
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
    EXPECT_THAT(refused.error().message(), HasSubstr(part));
  };
  const Change good{.key = "good", .value = "1"};
  expect({good, {.key = "", .value = "1"}}, "key '': bytes of a key: got 0; expected 1 to 512");
  expect({good, {.key = "\x01" + std::string(512, 'k')}}, "key '\\x01kkk");
  expect({good, {.key = "v", .value = std::string(kMaxValueBytes + 1, 'v')}}, "key 'v': bytes of a value");
  expect(std::vector<Change>(kMaxChanges + 1, good), "too many changes: got 4097; expected at most 4096");
  expect(std::vector<Change>(17, {.key = "v", .value = std::string(kMaxValueBytes, 'v')}),
         "bytes of its keys and values");
  EXPECT_THAT(content(*store), IsEmpty());
  put(*store, "good", "1");
}

// Another process leads within three seconds after one vanishes without a word. No committed entry is lost.
TEST_P(StoreConformance, TakeoverAfterSilence) {
  system_->use_short_lease();
  auto first = system_->open();
  const auto second = system_->open();
  const Generation before = lead(*first);
  put(*first, "x", "1");
  ASSERT_TRUE(first->keep().ok());
  first.reset();
  EXPECT_GT(lead(*second), before);
  EXPECT_EQ(content(*second), (Model{{"x", "1"}}));
}

// A leader that keeps its lead has it for as long as it likes. One that falls silent loses it if the store
// asks for keeping, and keeps it if not.
TEST_P(StoreConformance, Keeping) {
  system_->use_short_lease();
  const auto first = system_->open();
  const auto second = system_->open();
  static_cast<void>(lead(*first));
  Instant kept = system_->now();
  for (const Instant start = kept; system_->now() - start < from_seconds(3);) {
    if (system_->now() - kept >= first->keep_every()) {
      const auto done = first->keep();
      ASSERT_TRUE(done.ok()) << done.error().message();
      kept = system_->now();
    }
    const auto won = second->campaign({.name = "second", .address = "b"});
    ASSERT_TRUE(won.ok() && !*won);
    system_->wait_a_little();
    if (GetParam() == StoreKind::kSimLock || GetParam() == StoreKind::kSqlite) break;
  }
  if (!system_->needs_keeping()) return;
  static_cast<void>(lead(*second));
  expect_refused(first->commit({}));
}

// Another process leads within three seconds after one is killed (SIGKILL) while it works.
TEST_P(StoreConformance, TakeoverAfterKill) {
  if (GetParam() == StoreKind::kSimLease || GetParam() == StoreKind::kSimLock) return;  // no processes there
  system_->use_short_lease();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the child never outlives the test
    const auto store = system_->open();
    bool good = *store->campaign({.name = "child", .address = "a"}) != std::nullopt;
    for (std::uint64_t i = 0; good; ++i) {
      good = store->keep().ok() &&
             store->commit(std::vector<Change>{{.key = "x", .value = std::to_string(i)}}).ok() &&
             ::write(pipe[1], "y", 1) == 1;
      system_->wait_a_little();
    }
    ::_exit(1);
  }
  ::close(pipe[1]);
  std::size_t answers = 0;
  for (char byte = 0; answers < 20 && ::read(pipe[0], &byte, 1) == 1;) ++answers;
  ASSERT_EQ(answers, 20U);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (char byte = 0; ::read(pipe[0], &byte, 1) == 1;) ++answers;
  ::close(pipe[0]);
  const auto store = system_->open();
  EXPECT_EQ(lead(*store), Generation(2));
  const Model model = content(*store);
  // The last commit may be there without its answer.
  EXPECT_THAT(model, ElementsAre(::testing::Pair(
                         "x", ::testing::AnyOf(std::to_string(answers - 1), std::to_string(answers)))));
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance,
                         ::testing::Values(StoreKind::kSqlite, StoreKind::kEtcd, StoreKind::kSimLease,
                                           StoreKind::kSimLock),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace gossamer::host
