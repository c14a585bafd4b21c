// SPDX-License-Identifier: Apache-2.0
//
// InvertedLists: one worker's rows of a step (labels or features that it owns), each with the samples that
// contain it. It is the batch "sample -> ids" turned into "id -> samples". Every worker scans the whole batch
// and keeps its own ids, so there is no serial part. Samples of a slot rise.
//
// Slots are numbered in order of first appearance. Where a batch has about as many entries as the layer has
// ids, lists are counted out instead of looked up. Then slots rise with ids, and rows are read and updated in
// the order in which they lie.
//
// Owner: one worker. Thread rule: one owner; results are views until the next build. Allocates only when a
// step is larger than all before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "learn/data/rows.h"
#include "learn/sparse/network/ownership.h"
#include "learn/sparse/slot_map.h"

namespace gossamer::sparse {

class InvertedLists {
 public:
  explicit InvertedLists(Ownership ownership) : ownership_(ownership) {}

  // Ids of `rows` are below `ids`.
  void build(const data::SparseRows& rows, std::size_t ids);
  void build(const data::LabelSets& sets);
  // After build(LabelSets). Gives `id` a slot without samples, if the worker owns it and it has no slot.
  void add_without_samples(std::uint32_t id) {
    if (ownership_.owns(id)) slots_.insert(id);
  }

  [[nodiscard]] bool owns(std::uint32_t id) const { return ownership_.owns(id); }
  // After build(LabelSets). The slot of `id`; a new one without samples if it has none. Requires owns(id).
  std::uint32_t slot_of(std::uint32_t id) { return slots_.insert(id); }

  [[nodiscard]] std::size_t size() const { return ids().size(); }
  [[nodiscard]] std::span<const std::uint32_t> ids() const {
    return counted_ ? std::span<const std::uint32_t>(counted_ids_).first(listed_) : slots_.ids();
  }
  [[nodiscard]] std::span<const std::uint32_t> samples(std::size_t slot) const {
    if (slot >= listed_) return {};
    return std::span(sample_).subspan(begin_[slot], begin_[slot + 1] - begin_[slot]);
  }
  // Values beside samples(slot). Empty lists after build(LabelSets).
  [[nodiscard]] std::span<const float> values(std::size_t slot) const {
    return std::span(value_).subspan(begin_[slot], begin_[slot + 1] - begin_[slot]);
  }
  // Bytes held.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Entry {
    std::uint32_t id_or_slot;
    std::uint32_t sample;
    std::uint32_t position;  // in the batch's index array
  };

  void collect_own(std::span<const std::uint32_t> begin, std::span<const std::uint32_t> ids);
  void assign_slots();
  void count_out(const data::SparseRows& rows, std::size_t ids);
  void number_counted();

  Ownership ownership_;
  SlotMap slots_;
  std::vector<Entry> own_;
  std::size_t own_count_ = 0;
  std::size_t listed_ = 0;             // slots that have samples
  std::vector<std::uint32_t> begin_;   // [listed_ + 1] used
  std::vector<std::uint32_t> cursor_;  // next free place of a slot, or of an id where lists are counted out
  std::vector<std::uint32_t> sample_;
  std::vector<float> value_;
  bool counted_ = false;
  std::vector<std::uint32_t> counted_ids_;  // [listed_] used
};

}  // namespace gossamer::sparse
