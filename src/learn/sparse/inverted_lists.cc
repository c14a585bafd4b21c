// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/inverted_lists.h"

namespace gossamer::sparse {
namespace {

// How many entries ahead the slot table is fetched.
constexpr std::size_t kAhead = 8;

}  // namespace

void InvertedLists::collect_own(std::span<const std::uint32_t> begin, std::span<const std::uint32_t> ids) {
  slots_.clear();
  // Without a branch on ownership, which no predictor can guess: every entry is written, only own ones stay.
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

void InvertedLists::build(const data::SparseRows& rows) {
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
  collect_own(sets.begin, sets.label);
  assign_slots();
  for (std::size_t i = 0; i < own_count_; ++i) sample_[cursor_[own_[i].id_or_slot]++] = own_[i].sample;
}

std::uint64_t InvertedLists::bytes() const {
  return own_.capacity() * sizeof(Entry) + sizeof(float) * value_.capacity() +
         sizeof(std::uint32_t) * (begin_.capacity() + cursor_.capacity() + sample_.capacity());
}

}  // namespace gossamer::sparse
