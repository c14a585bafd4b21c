// SPDX-License-Identifier: Apache-2.0
//
// SimStore: a Store in memory with the promises of host/api/store.h, and faults on demand. A SimStoreMedium
// is what survives; each process that opens it has a handle of its own:
//
//   SimClock clock;
//   SimStoreMedium medium(clock, {.lease = from_seconds(2)});
//   auto first = medium.open();
//   auto second = medium.open({.crash_at_operation = 7});
//
// Calls of a Store are the operations of its handle, numbered from 0, whether they succeed or not. Not
// counted are keep_every(), lead_time() and a commit beyond the limits. So a test can visit every crash
// point. The operation that crashes does nothing. To crash between an operation and its answer, use
// lose_answer_at_operation and then destroy the handle.
//
// Deterministic: time is the clock's, and nothing is random. Thread rule: medium and handles belong to one
// thread; handles must not outlive the medium, nor the medium the clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "host/api/clock.h"
#include "host/api/store.h"

namespace gossamer::host {

// What keeps a leader of an earlier generation from writing. kNone is the defect that the guard protects
// against, for simulations that must find it.
enum class StoreGuard { kGeneration, kNone };

struct SimStoreOptions {
  // The silence after which the lead is free (like etcd). nullopt: the lead ends with the handle (like a
  // locked file).
  std::optional<Duration> lease = from_seconds(2);
  StoreGuard guard = StoreGuard::kGeneration;
};

struct SimStoreFaults {
  // This operation and all later ones fail.
  std::optional<std::uint64_t> crash_at_operation = std::nullopt;
  // This operation alone fails and does nothing.
  std::optional<std::uint64_t> fail_at_operation = std::nullopt;
  // This operation alone is carried out, but fails for its caller.
  std::optional<std::uint64_t> lose_answer_at_operation = std::nullopt;
};

class SimStore;

class SimStoreMedium {
 public:
  SimStoreMedium(const Clock& clock, const SimStoreOptions& options) : clock_(clock), options_(options) {}
  SimStoreMedium(const SimStoreMedium&) = delete;
  SimStoreMedium& operator=(const SimStoreMedium&) = delete;

  [[nodiscard]] std::unique_ptr<SimStore> open(const SimStoreFaults& faults = {});

  // Ends the lead behind its holder's back, at once, as an operator or a clock that leapt would.
  void depose();

  // Is told of each commit as it becomes durable, whether or not its caller hears of it.
  void watch(std::function<void(std::span<const Change>)> watcher) { watcher_ = std::move(watcher); }
  // All entries and the generation, for invariants to look at without asking a leader.
  [[nodiscard]] const std::map<std::string, std::string>& entries() const { return entries_; }
  [[nodiscard]] Generation generation() const { return generation_; }

 private:
  friend class SimStore;

  // The present leader, or null: a lease that has run out belongs to nobody.
  [[nodiscard]] const LeaderRecord* leader() const;

  const Clock& clock_;
  SimStoreOptions options_;
  std::map<std::string, std::string> entries_;
  Generation generation_;
  std::optional<LeaderRecord> leader_;
  const SimStore* holder_ = nullptr;  // the handle that holds the lead; may be dead
  Instant lease_end_;
  std::function<void(std::span<const Change>)> watcher_;
};

class SimStore final : public Store {
 public:
  ~SimStore() override;

  // Takes new faults and counts from 0 again.
  void restart_count(const SimStoreFaults& faults);
  // Operations so far; the number of the next one.
  [[nodiscard]] std::uint64_t operations() const { return operations_; }

  [[nodiscard]] Result<std::optional<Generation>> campaign(const Candidate& self) override;
  [[nodiscard]] Result<void> keep() override;
  [[nodiscard]] Duration keep_every() const override;
  [[nodiscard]] std::optional<Duration> lead_time() const override { return medium_.options_.lease; }
  [[nodiscard]] Result<void> resign() override;
  [[nodiscard]] Result<std::optional<LeaderRecord>> leader() override;
  [[nodiscard]] Result<std::vector<Entry>> load() override;
  [[nodiscard]] Result<void> commit(std::span<const Change> changes) override;

 private:
  friend class SimStoreMedium;
  enum class Fate { kDone, kAnswerLost, kNotDone };

  SimStore(SimStoreMedium& medium, const SimStoreFaults& faults) : medium_(medium), faults_(faults) {}

  [[nodiscard]] Fate begin();  // counts the operation; says what becomes of it
  [[nodiscard]] Error fault() const;
  // Whether the medium still has this handle's generation as the leader's. If not, it leads no more.
  [[nodiscard]] bool check_lead();
  void extend_lease();

  SimStoreMedium& medium_;
  SimStoreFaults faults_;
  std::uint64_t operations_ = 0;
  bool crashed_ = false;
  std::optional<Generation> led_;  // while it leads, as far as it knows
  bool has_led_ = false;           // at any time
};

}  // namespace gossamer::host
