// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/inverted_lists.h"

namespace gossamer::sparse {
namespace {

// The number of entries by which the slot table is fetched ahead.
constexpr std::size_t kAhead = 8;
// An entry that is looked up costs as much as a few ids that are passed over.
constexpr std::size_t kIdsPerEntry = 2;

}  // namespace

void InvertedLists::collect_own(std::span<const std::uint32_t> begin, std::span<const std::uint32_t> ids) {
  slots_.clear();
  // There is no branch on ownership, which no predictor can guess: every entry is written, only own ones
  // stay.
  if (own_.size() < ids.size() + 1) own_.resize(ids.size() + 1);
  std::size_t count = 0;
  for (std::size_t sample = 0; sample + 1 < begin.size(); ++sample) {
    for (std::uint32_t at = begin[sample]; at < begin[sample + 1]; ++at) {
      own_[count] = {.id_or_slot = ids[at], .sample = static_cast<std::uint32_t>(sample), .position = at};
      count += ownership_.owns(ids[at]) ? 1 : 0;
    }
  }
  own_count_ = count;
}

void InvertedLists::assign_slots() {
  begin_.clear();
  begin_.push_back(0);
  for (std::size_t i = 0; i < own_count_; ++i) {
    if (i + kAhead < own_count_) slots_.prefetch(own_[i + kAhead].id_or_slot);
    const std::uint32_t slot = slots_.insert(own_[i].id_or_slot);
    own_[i].id_or_slot = slot;
    if (slot + 1 == begin_.size()) begin_.push_back(0);
    ++begin_[slot + 1];
  }
  listed_ = slots_.size();
  for (std::size_t slot = 0; slot < listed_; ++slot) begin_[slot + 1] += begin_[slot];
  cursor_.assign(begin_.begin(), begin_.end() - 1);
  if (sample_.size() < own_count_) sample_.resize(own_count_);
}

// Numbers the ids that have entries, and turns their counts into the places where their lists begin.
void InvertedLists::number_counted() {
  if (counted_ids_.size() <= cursor_.size()) counted_ids_.resize(cursor_.size() + 1);
  if (begin_.size() <= cursor_.size()) begin_.resize(cursor_.size() + 1);
  std::size_t slots = 0;
  std::uint32_t entries = 0;
  // Without a branch, as in collect_own().
  for (std::size_t id = 0; id < cursor_.size(); ++id) {
    const std::uint32_t count = cursor_[id];
    counted_ids_[slots] = static_cast<std::uint32_t>(id);
    begin_[slots] = entries;
    cursor_[id] = entries;
    slots += count > 0 ? 1 : 0;
    entries += count;
  }
  begin_[slots] = entries;
  listed_ = slots;
}

void InvertedLists::count_out(const data::SparseRows& rows, std::size_t ids) {
  cursor_.assign(ids, 0);
  for (std::uint32_t at = rows.begin.front(); at < rows.begin.back(); ++at) {
    cursor_[rows.index[at]] += ownership_.owns(rows.index[at]) ? 1 : 0;
  }
  number_counted();
  // The last place is for what others own.
  const std::size_t nowhere = rows.index.size();
  if (sample_.size() <= nowhere) sample_.resize(nowhere + 1);
  if (value_.size() <= nowhere) value_.resize(nowhere + 1);
  for (std::size_t sample = 0; sample + 1 < rows.begin.size(); ++sample) {
    for (std::uint32_t at = rows.begin[sample]; at < rows.begin[sample + 1]; ++at) {
      const std::uint32_t id = rows.index[at];
      const bool own = ownership_.owns(id);
      const std::size_t to = own ? cursor_[id] : nowhere;
      cursor_[id] += own ? 1 : 0;
      sample_[to] = static_cast<std::uint32_t>(sample);
      value_[to] = rows.value[at];
    }
  }
}

void InvertedLists::build(const data::SparseRows& rows, std::size_t ids) {
  counted_ = rows.rows() > 0 && ids <= kIdsPerEntry * (rows.begin.back() - rows.begin.front());
  if (counted_) return count_out(rows, ids);
  collect_own(rows.begin, rows.index);
  assign_slots();
  if (value_.size() < own_count_) value_.resize(own_count_);
  for (std::size_t i = 0; i < own_count_; ++i) {
    const Entry& entry = own_[i];
    const std::uint32_t to = cursor_[entry.id_or_slot]++;
    sample_[to] = entry.sample;
    value_[to] = rows.value[entry.position];
  }
}

void InvertedLists::build(const data::LabelSets& sets) {
  counted_ = false;
  collect_own(sets.begin, sets.label);
  assign_slots();
  for (std::size_t i = 0; i < own_count_; ++i) sample_[cursor_[own_[i].id_or_slot]++] = own_[i].sample;
}

std::uint64_t InvertedLists::bytes() const {
  return own_.capacity() * sizeof(Entry) + sizeof(float) * value_.capacity() +
         sizeof(std::uint32_t) *
             (begin_.capacity() + cursor_.capacity() + sample_.capacity() + counted_ids_.capacity());
}

}  // namespace gossamer::sparse
