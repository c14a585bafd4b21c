// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/active_set.h"

namespace gossamer::sparse {

void ActiveSet::build(const data::LabelSets& labels) {
  lists_.build(labels);
  certain_.clear();
  found_.clear();
  own_sets_ = false;
}

void ActiveSet::add_certain(std::uint32_t id) {
  if (!lists_.owns(id)) return;
  const std::uint32_t slot = lists_.slot_of(id);
  if (slot >= certain_.size()) certain_.resize(lists_.size());
  certain_[slot] = 1;
}

void ActiveSet::add_finder(std::uint32_t id, std::uint32_t sample) {
  if (lists_.owns(id)) found_.push_back({.slot = lists_.slot_of(id), .sample = sample});
}

void ActiveSet::end_finders() {
  own_sets_ = true;
  begin_.assign(size() + 2, 0);
  // Counts go two places further, so that filling moves each beginning to where it belongs.
  for (const Found& f : found_) ++begin_[f.slot + 2];
  for (std::size_t slot = 2; slot < begin_.size(); ++slot) begin_[slot] += begin_[slot - 1];
  finder_.resize(found_.size());
  for (const Found& f : found_) finder_[begin_[f.slot + 1]++] = f.sample;
}

std::uint64_t ActiveSet::bytes() const {
  return lists_.bytes() + certain_.capacity() + found_.capacity() * sizeof(Found) +
         (begin_.capacity() + finder_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace gossamer::sparse
