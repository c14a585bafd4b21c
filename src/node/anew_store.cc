// SPDX-License-Identifier: Apache-2.0
#include "node/anew_store.h"

#include <gossamer/membership.pb.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "cluster/control/records.h"

namespace gossamer::node {
namespace {

// Changes of one commit, so that there is room for those of the coordinator.
constexpr std::size_t kMostRemovals = host::kMaxChanges / 2;

bool stays(std::string_view key) {
  return key == "lead" || key.starts_with("tokens/") || key.starts_with("nodes/");
}

// What members did. A store that lacks a part of it can be read.
bool is_work(std::string_view key) {
  return key.starts_with("marks/") || key.starts_with("claims/") || key.starts_with("commits/") ||
         key.starts_with("leases/");
}

// The entries that are written anew.
std::vector<host::Change> written(cluster::Records& records, const AnewStore::Begin& begin) {
  for (const auto& [node, record] : records.members)
    static_cast<void>(records.fenced.fence(Incarnation(record.incarnation())));
  records.lead.set_tracks(begin.tracks);
  std::vector<host::Change> changes{
      cluster::put_lead(records.lead), cluster::put_fenced(records.fenced),
      cluster::put_epoch(records.epoch, records.fenced, records.expelled_in_view)};
  if (begin.step > StepNumber()) changes.push_back(cluster::put_committed(begin.step));
  return changes;
}

}  // namespace

Result<std::vector<host::Entry>> AnewStore::load() {
  auto entries = store_->load();
  if (begun_ || !entries.ok()) return entries;
  auto records = cluster::read_records(*entries);
  if (!records.ok()) return records.error();
  if (records->lead.run().empty()) return entries;  // nobody has led the run
  std::map<std::string, std::string> left;
  std::vector<host::Change> work;
  changes_.clear();
  for (host::Entry& entry : *entries) {
    if (stays(entry.key)) {
      left[entry.key] = std::move(entry.value);
    } else {
      (is_work(entry.key) ? work : changes_).push_back({.key = std::move(entry.key)});
    }
  }
  if (auto removed = remove(work); !removed.ok()) return removed.error();
  std::ranges::move(work, std::back_inserter(changes_));
  for (host::Change& change : written(*records, begin_)) {
    left[change.key] = *change.value;
    changes_.push_back(std::move(change));
  }
  std::vector<host::Entry> loaded;
  for (auto& [key, value] : left) loaded.push_back({.key = key, .value = std::move(value)});
  return loaded;
}

// Removes at once what would be too much for one commit.
Result<void> AnewStore::remove(std::vector<host::Change>& removals) {
  while (removals.size() > kMostRemovals) {
    const std::span<const host::Change> last = std::span(removals).last(kMostRemovals);
    if (auto removed = store_->commit(last); !removed.ok()) return removed;
    removals.resize(removals.size() - kMostRemovals);
  }
  return {};
}

Result<void> AnewStore::commit(std::span<const host::Change> changes) {
  if (begun_ || changes_.empty()) return store_->commit(changes);
  std::vector<host::Change> all = changes_;
  all.insert(all.end(), changes.begin(), changes.end());
  auto done = store_->commit(all);
  begun_ = done.ok();
  if (begun_) changes_.clear();
  return done;
}

}  // namespace gossamer::node
