// SPDX-License-Identifier: Apache-2.0
//
// Histories of two processes on one store, against a model: all short ones, and long random ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "base/rng.h"
#include "stores.h"

namespace gossamer::host {
namespace {

// The actions of one process. kUsurp: the leader is deposed behind its back, and this process campaigns.
enum class Action { kCampaign, kUsurp, kCommit, kResign };
constexpr std::uint64_t kActions = 4;
constexpr std::size_t kProcesses = 2;
constexpr std::uint64_t kSteps = kActions * kProcesses;

class StoreHistories : public StoreTest {
 protected:
  void start() {
    for (auto& store : stores_) store.reset();
    system_->start_anew();
    for (auto& store : stores_) store = system_->open();
    believes_ = {};
    leader_.reset();
    generation_ = 0;
    entries_.clear();
    history_.clear();
  }

  // One action of one process, on the store and on the model; its answer must be the model's.
  void step(Action action, std::size_t process) {
    Store& store = *stores_[process];
    history_ += fmt::format(" {}{}", "CUWR"[static_cast<int>(action)], process);
    switch (action) {
      case Action::kCampaign: return campaign(store, process);
      case Action::kUsurp:
        if (believes_[process]) return;
        system_->depose();
        leader_.reset();
        return campaign(store, process);
      case Action::kCommit: return commit(store, process);
      case Action::kResign:
        resign(store);
        believes_[process] = false;
        if (leader_ == process) leader_.reset();
        return;
    }
  }

  // Checks what all handles see in the end, and what the next leader loads.
  void check_end() {
    for (auto& store : stores_) {
      const auto seen = store->leader();
      ASSERT_TRUE(seen.ok()) << history_ << ": " << seen.error().message();
      ASSERT_EQ(seen->has_value(), leader_.has_value()) << history_;
      if (*seen) {
        ASSERT_EQ((*seen)->generation, Generation(generation_)) << history_;
      }
    }
    const auto successor = system_->open();
    system_->depose();
    ASSERT_EQ(lead(*successor), Generation(generation_ + 1)) << history_;
    const auto loaded = successor->load();
    ASSERT_TRUE(loaded.ok()) << history_;
    std::map<std::string, std::string> got;
    for (const Entry& entry : *loaded) got.emplace(entry.key, entry.value);
    ASSERT_EQ(got, entries_) << history_;
  }

  void all_histories(int length) {
    std::uint64_t count = 1;
    for (int i = 0; i < length; ++i) count *= kSteps;
    for (std::uint64_t number = 0; number < count; ++number) {
      start();
      std::uint64_t rest = number;
      for (int i = 0; i < length; ++i, rest /= kSteps) {
        ASSERT_NO_FATAL_FAILURE(step(static_cast<Action>(rest % kSteps / kProcesses), rest % kProcesses));
      }
      ASSERT_NO_FATAL_FAILURE(check_end());
    }
  }

 private:
  void campaign(Store& store, std::size_t process) {
    if (believes_[process]) return;  // a precondition of campaign()
    const auto won = store.campaign({.name = std::to_string(process), .address = "a"});
    ASSERT_TRUE(won.ok()) << history_ << ": " << won.error().message();
    ASSERT_EQ(won->has_value(), !leader_.has_value()) << history_;
    if (!*won) return;
    ASSERT_EQ(**won, Generation(++generation_)) << history_;
    leader_ = process;
    believes_[process] = true;
  }

  void resign(Store& store) {
    const auto done = store.resign();
    ASSERT_TRUE(done.ok()) << history_ << ": " << done.error().message();
  }

  void commit(Store& store, std::size_t process) {
    const std::string value = std::to_string(++values_);
    const std::string removed = fmt::format("k{}", values_ % 3);
    const std::vector<Change> batch = {{.key = "k0", .value = value},
                                       {.key = "k1", .value = value},
                                       {.key = "k2", .value = value},
                                       {.key = removed}};
    const auto done = store.commit(batch);
    ASSERT_EQ(done.ok(), leader_ == process) << history_;
    if (!done.ok()) {
      ASSERT_EQ(done.error().kind, ErrorKind::kRefused) << history_ << ": " << done.error().message();
      believes_[process] = false;
      return;
    }
    for (const char* key : {"k0", "k1", "k2"}) entries_[key] = value;
    entries_.erase(removed);
  }

  std::array<std::unique_ptr<Store>, kProcesses> stores_;
  std::array<bool, kProcesses> believes_{};  // whether it believes that it leads
  std::optional<std::size_t> leader_;
  std::uint64_t generation_ = 0;
  std::uint64_t values_ = 0;
  std::map<std::string, std::string> entries_;
  std::string history_;
};

// Answers, leaders, generations and entries are the model's after every short history of two processes.
// Histories have three actions on real stores and five on simulated ones.
TEST_P(StoreHistories, AllShortOnes) {
  const bool real = GetParam() == StoreKind::kSqlite || GetParam() == StoreKind::kEtcd;
  all_histories(real ? 3 : 5);
}

// Answers, leaders, generations and entries are the model's after long random histories, too.
TEST_P(StoreHistories, RandomOnes) {
  const bool real = GetParam() == StoreKind::kSqlite || GetParam() == StoreKind::kEtcd;
  for (std::uint64_t seed = 0; seed < (real ? 8U : 1000U); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed, Purpose::kTest);
    start();
    for (int i = 0; i < 60; ++i) {
      ASSERT_NO_FATAL_FAILURE(step(static_cast<Action>(rng.below(kActions)), rng.below(kProcesses)));
    }
    ASSERT_NO_FATAL_FAILURE(check_end());
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreHistories,
                         ::testing::Values(StoreKind::kSqlite, StoreKind::kEtcd, StoreKind::kSimLease,
                                           StoreKind::kSimLock),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace gossamer::host
