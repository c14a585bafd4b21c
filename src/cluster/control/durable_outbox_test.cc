// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/durable_outbox.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"

namespace gossamer::cluster {
namespace {

std::vector<std::string> keys(const std::optional<std::vector<host::Change>>& batch) {
  std::vector<std::string> found;
  if (batch) {
    for (const host::Change& change : *batch) found.push_back(change.key);
  }
  return found;
}

using Strings = std::vector<std::string>;

// Claim: an action runs when all changes put in before it are committed, and not before.
TEST(DurableOutbox, NothingLeavesBeforeItIsDurable) {
  DurableOutbox outbox;
  Strings said;
  outbox.then([&] { said.push_back("free"); });
  EXPECT_EQ(said, Strings{"free"});
  EXPECT_FALSE(outbox.next_commit().has_value());

  outbox.put({"a", "1"});
  outbox.then([&] { said.push_back("after a"); });
  EXPECT_EQ(keys(outbox.next_commit()), Strings{"a"});
  outbox.put({"b", "1"});
  outbox.then([&] { said.push_back("after b"); });
  EXPECT_FALSE(outbox.next_commit().has_value()) << "one commit at a time";
  EXPECT_EQ(said.size(), 1u);
  outbox.committed();
  EXPECT_EQ(said.back(), "after a");
  EXPECT_EQ(keys(outbox.next_commit()), Strings{"b"});
  outbox.committed();
  EXPECT_EQ(said, (Strings{"free", "after a", "after b"}));
  EXPECT_FALSE(outbox.waiting());
}

// Claim: changes that failed are committed again, with newer ones behind them. No action runs meanwhile.
TEST(DurableOutbox, FailedCommitsAreRepeated) {
  DurableOutbox outbox;
  Strings said;
  outbox.put({"a", "1"});
  outbox.then([&] { said.push_back("a"); });
  EXPECT_EQ(keys(outbox.next_commit()), Strings{"a"});
  outbox.put({"b", std::nullopt});
  outbox.failed();
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(keys(outbox.next_commit()), (Strings{"a", "b"}));
  outbox.committed();
  EXPECT_EQ(said, Strings{"a"});
}

// Claim: a guard asks for a commit begun after it, even if there is nothing to write.
TEST(DurableOutbox, GuardsAskForProof) {
  DurableOutbox outbox;
  Strings said;
  outbox.put({"a", "1"});
  EXPECT_EQ(keys(outbox.next_commit()), Strings{"a"});
  outbox.guard();
  outbox.then([&] { said.push_back("renewed"); });
  outbox.committed();
  EXPECT_TRUE(said.empty()) << "the commit was begun before the guard";
  const auto proof = outbox.next_commit();
  ASSERT_TRUE(proof.has_value());
  EXPECT_TRUE(proof->empty());
  outbox.committed();
  EXPECT_EQ(said, Strings{"renewed"});
}

// Claim: batches keep the store's limits. Actions behind a batch's border wait for the next batch.
TEST(DurableOutbox, BatchesKeepTheLimits) {
  DurableOutbox outbox;
  std::size_t said = 0;
  for (std::size_t i = 0; i < host::kMaxChanges + 5; ++i) {
    outbox.put({std::to_string(i), "v"});
    outbox.then([&] { ++said; });
  }
  EXPECT_EQ(outbox.next_commit()->size(), host::kMaxChanges);
  outbox.committed();
  EXPECT_EQ(said, host::kMaxChanges);
  EXPECT_EQ(outbox.next_commit()->size(), 5u);
  outbox.committed();
  EXPECT_EQ(said, host::kMaxChanges + 5);

  for (int i = 0; i < 20; ++i) outbox.put({std::to_string(i), std::string(host::kMaxValueBytes, 'x')});
  std::size_t changes = 0;
  while (const auto batch = outbox.next_commit()) {
    EXPECT_TRUE(host::check_limits(*batch).ok());
    changes += batch->size();
    outbox.committed();
  }
  EXPECT_EQ(changes, 20u);
}

// Claim: actions run once, in their order, each after the changes before it, whatever the order of calls.
TEST(DurableOutbox, RandomHistoriesKeepTheOrder) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed, Purpose::kTest);
    DurableOutbox outbox;
    std::size_t put = 0;
    std::size_t durable = 0;
    std::size_t under_way = 0;
    std::size_t next_action = 0;
    std::size_t actions = 0;
    bool busy = false;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t what = rng.below(6);
      if (what == 0) {
        outbox.put({std::to_string(++put), "v"});
      } else if (what == 1) {
        outbox.then([&, number = actions++, rests_on = put] {
          EXPECT_EQ(number, next_action++) << "seed " << seed;
          EXPECT_LE(rests_on, durable) << "seed " << seed;
        });
      } else if (what == 2) {
        outbox.guard();
      } else if (!busy) {
        if (const auto batch = outbox.next_commit()) {
          busy = true;
          under_way = batch->empty() ? durable : std::stoull(batch->back().key);
        }
      } else if (what == 3) {
        outbox.failed();
        busy = false;
      } else {
        durable = std::max(durable, under_way);
        outbox.committed();
        busy = false;
      }
    }
  }
}

}  // namespace
}  // namespace gossamer::cluster
