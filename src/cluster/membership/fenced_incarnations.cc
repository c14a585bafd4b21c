// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/fenced_incarnations.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace gossamer::cluster {

FencedIncarnations::FencedIncarnations(std::span<const Run> runs) {
  for (const Run& run : runs) insert(run);
}

bool FencedIncarnations::fence(Incarnation incarnation) {
  if (contains(incarnation)) return false;
  insert({incarnation, incarnation});
  return true;
}

bool FencedIncarnations::contains(Incarnation incarnation) const {
  const auto behind = last_by_first_.upper_bound(incarnation);
  return behind != last_by_first_.begin() && std::prev(behind)->second >= incarnation;
}

std::vector<FencedIncarnations::Run> FencedIncarnations::runs() const {
  std::vector<Run> runs;
  runs.reserve(last_by_first_.size());
  for (const auto& [first, last] : last_by_first_) runs.push_back({first, last});
  return runs;
}

void FencedIncarnations::insert(Run run) {
  CHECK(run.first <= run.last, run.first.value, run.last.value);
  // Written without `last + 1`, which would wrap at the largest number.
  const auto touch = [](Incarnation last, Incarnation first) {
    return first <= last || first.value - last.value == 1;
  };
  auto next = last_by_first_.upper_bound(run.first);
  if (next != last_by_first_.begin() && touch(std::prev(next)->second, run.first)) --next;
  while (next != last_by_first_.end() && touch(run.last, next->first)) {
    run.first = std::min(run.first, next->first);
    run.last = std::max(run.last, next->second);
    next = last_by_first_.erase(next);
  }
  last_by_first_.emplace(run.first, run.last);
}

}  // namespace gossamer::cluster
