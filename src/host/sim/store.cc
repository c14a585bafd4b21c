// SPDX-License-Identifier: Apache-2.0
#include "host/sim/store.h"

#include "base/check.h"

namespace gossamer::host {
namespace {

constexpr const char* kWhere = "simulated store";

}  // namespace

std::unique_ptr<SimStore> SimStoreMedium::open(const SimStoreFaults& faults) {
  return std::unique_ptr<SimStore>(new SimStore(*this, faults));
}

const LeaderRecord* SimStoreMedium::leader() const {
  const bool run_out = options_.lease && clock_.now() >= lease_end_;
  return leader_ && !run_out ? &*leader_ : nullptr;
}

void SimStoreMedium::depose() {
  leader_.reset();
  holder_ = nullptr;
}

SimStore::~SimStore() {
  if (medium_.holder_ != this) return;
  medium_.holder_ = nullptr;
  // A locked file is free at once; a lease has to run out.
  if (!medium_.options_.lease) medium_.leader_.reset();
}

void SimStore::restart_count(const SimStoreFaults& faults) {
  faults_ = faults;
  operations_ = 0;
}

SimStore::Fate SimStore::begin() {
  const std::uint64_t operation = operations_++;
  if (operation == faults_.crash_at_operation) crashed_ = true;
  if (crashed_ || operation == faults_.fail_at_operation) return Fate::kNotDone;
  return operation == faults_.lose_answer_at_operation ? Fate::kAnswerLost : Fate::kDone;
}

Error SimStore::fault() const {
  return Error{.where = kWhere,
               .what = crashed_ ? "this process has crashed" : "the store does not answer",
               .got = "no answer",
               .expected = "an answer",
               .fix = crashed_ ? "open the store anew" : "try again"};
}

Result<std::optional<Generation>> SimStore::campaign(const Candidate& self) {
  CHECK(!led_);
  const Fate fate = begin();
  if (fate == Fate::kNotDone) return fault();
  // A handle's own lead, won by a campaign whose answer was lost, is no obstacle to it.
  const bool taken = medium_.leader() != nullptr && medium_.holder_ != this;
  if (!taken) {
    ++medium_.generation_;
    medium_.leader_ = {.candidate = self, .generation = medium_.generation_};
    medium_.holder_ = this;
    extend_lease();
  }
  if (fate == Fate::kAnswerLost) return fault();
  if (taken) return std::optional<Generation>();
  led_ = medium_.generation_;
  has_led_ = true;
  return led_;
}

Result<void> SimStore::keep() {
  const Fate fate = begin();
  if (fate == Fate::kNotDone) return fault();
  const bool leads = check_lead();
  if (leads) extend_lease();
  if (fate == Fate::kAnswerLost) return fault();
  return leads ? Result<void>() : not_leading(kWhere);
}

Duration SimStore::keep_every() const {
  return medium_.options_.lease ? Duration{medium_.options_.lease->ns / 4} : from_seconds(1);
}

Result<void> SimStore::resign() {
  const Fate fate = begin();
  led_.reset();  // the store may hear of it only by silence
  if (fate == Fate::kNotDone) return fault();
  if (medium_.holder_ == this) medium_.depose();
  return fate == Fate::kAnswerLost ? Result<void>(fault()) : Result<void>();
}

Result<std::optional<LeaderRecord>> SimStore::leader() {
  if (begin() != Fate::kDone) return fault();
  const LeaderRecord* record = medium_.leader();
  return record != nullptr ? std::optional<LeaderRecord>(*record) : std::nullopt;
}

Result<std::vector<Entry>> SimStore::load() {
  if (begin() != Fate::kDone) return fault();
  if (!check_lead()) return not_leading(kWhere);
  std::vector<Entry> entries;
  entries.reserve(medium_.entries_.size());
  for (const auto& [key, value] : medium_.entries_) entries.push_back({.key = key, .value = value});
  return entries;
}

Result<void> SimStore::commit(std::span<const Change> changes) {
  if (auto within = check_limits(changes); !within.ok()) return within;
  const Fate fate = begin();
  if (fate == Fate::kNotDone) return fault();
  // The defect: a handle that led once writes for ever.
  const bool unguarded = medium_.options_.guard == StoreGuard::kNone && has_led_;
  const bool writes = check_lead() || unguarded;
  if (writes) {
    for (const Change& change : changes) {
      if (change.value) {
        medium_.entries_.insert_or_assign(change.key, *change.value);
      } else {
        medium_.entries_.erase(change.key);
      }
    }
  }
  if (writes && medium_.watcher_) medium_.watcher_(changes);
  if (fate == Fate::kAnswerLost) return fault();
  return writes ? Result<void>() : not_leading(kWhere);
}

bool SimStore::check_lead() {
  const LeaderRecord* record = medium_.leader();
  if (led_ && record != nullptr && record->generation == *led_) return true;
  led_.reset();
  return false;
}

void SimStore::extend_lease() {
  if (medium_.options_.lease) medium_.lease_end_ = medium_.clock_.now() + *medium_.options_.lease;
}

}  // namespace gossamer::host
