// SPDX-License-Identifier: Apache-2.0
//
// HoldOut: the records that training leaves out, to judge by them what it has learnt. KeptRecords: the
// dataset of the other records.
//
// Records that belong together often stand together (two forms of one text, the papers of one volume). A
// record with a sibling that was learnt says too much. So whole blocks of records are held out: the first
// kBlock records of every `period`. Where fewer are wanted, they are the first records of all. The last block
// is cut if more than half of the records would be held out.
//
// Thread rule: immutable after construction, any thread. KeptRecords borrows its base.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "learn/data/dataset.h"

namespace gossamer::data {

class HoldOut {
 public:
  static constexpr std::uint64_t kBlock = 16;

  // Holds out `wanted` of `records` or somewhat more, but at most half; none when `wanted` is 0. Requires
  // wanted <= records / 2.
  HoldOut(std::uint64_t records, std::uint64_t wanted);

  [[nodiscard]] std::uint64_t held() const { return held_; }
  [[nodiscard]] std::uint64_t kept() const { return records_ - held_; }
  // The position among all records of the i-th held or kept one. Requires i < held() or kept().
  [[nodiscard]] RecordIndex held_record(std::uint64_t i) const;
  [[nodiscard]] RecordIndex kept_record(std::uint64_t i) const;

 private:
  std::uint64_t records_;
  std::uint64_t block_;
  std::uint64_t period_ = 0;  // 0: nothing is held out
  std::uint64_t held_ = 0;
};

class KeptRecords final : public Dataset {
 public:
  // Reads the held records once.
  KeptRecords(const Dataset& base, const HoldOut& hold_out);

  [[nodiscard]] std::uint64_t size() const override { return hold_out_.kept(); }
  [[nodiscard]] std::uint32_t features() const override { return base_.features(); }
  [[nodiscard]] std::uint32_t labels() const override { return base_.labels(); }
  [[nodiscard]] std::uint64_t feature_entries() const override { return feature_entries_; }
  [[nodiscard]] std::uint64_t label_entries() const override { return label_entries_; }
  [[nodiscard]] Record record(RecordIndex i) const override {
    return base_.record(hold_out_.kept_record(i.value));
  }
  [[nodiscard]] std::string_view label_name(std::uint32_t label) const override {
    return base_.label_name(label);
  }
  [[nodiscard]] std::string_view feature_name(std::uint32_t feature) const override {
    return base_.feature_name(feature);
  }
  [[nodiscard]] bool has_label_names() const override { return base_.has_label_names(); }
  [[nodiscard]] bool has_feature_names() const override { return base_.has_feature_names(); }

 private:
  const Dataset& base_;
  HoldOut hold_out_;
  std::uint64_t feature_entries_;
  std::uint64_t label_entries_;
};

}  // namespace gossamer::data
