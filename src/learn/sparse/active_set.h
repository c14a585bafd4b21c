// SPDX-License-Identifier: Apache-2.0
//
// ActiveSet: one worker's output rows of a step. First come the rows of the batch's labels, with the samples
// that have them, then drawn and found ones. For each row it knows whether its presence was certain, given
// the samples that asked the hash tables (hash_negatives.h). Where each sample scores only what it found
// itself, it also knows which samples found the row.
//
// Owner: one worker. Thread rule: one owner; results are views until the next build. Allocates only when a
// step is larger than all before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "learn/sparse/inverted_lists.h"

namespace gossamer::sparse {

class ActiveSet {
 public:
  explicit ActiveSet(Ownership ownership) : lists_(ownership) {}

  void build(const data::LabelSets& labels);
  // All three leave out rows that others own.
  void add(std::uint32_t id) { lists_.add_without_samples(id); }
  void add_certain(std::uint32_t id);
  // Notes that this sample found the row; samples must rise. For HashSets::kOwn, ended by end_finders().
  void add_finder(std::uint32_t id, std::uint32_t sample);
  void end_finders();

  [[nodiscard]] std::size_t size() const { return lists_.size(); }
  [[nodiscard]] std::span<const std::uint32_t> ids() const { return lists_.ids(); }
  // The samples that have the label, rising.
  [[nodiscard]] std::span<const std::uint32_t> samples(std::size_t slot) const {
    return lists_.samples(slot);
  }
  [[nodiscard]] bool certain(std::size_t slot) const { return slot < certain_.size() && certain_[slot] != 0; }
  // Whether samples score only their own labels and what they found themselves.
  [[nodiscard]] bool own_sets() const { return own_sets_; }
  // The samples that found the row, rising. Requires own_sets().
  [[nodiscard]] std::span<const std::uint32_t> finders(std::size_t slot) const {
    return std::span(finder_).subspan(begin_[slot], begin_[slot + 1] - begin_[slot]);
  }
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Found {
    std::uint32_t slot;
    std::uint32_t sample;
  };

  InvertedLists lists_;
  std::vector<std::uint8_t> certain_;  // by slot; shorter: not certain
  bool own_sets_ = false;
  std::vector<Found> found_;
  std::vector<std::uint32_t> begin_;  // [slots + 1]
  std::vector<std::uint32_t> finder_;
};

}  // namespace gossamer::sparse
