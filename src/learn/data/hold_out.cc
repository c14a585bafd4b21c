// SPDX-License-Identifier: Apache-2.0
#include "learn/data/hold_out.h"

#include <algorithm>

#include "base/check.h"

namespace gossamer::data {

HoldOut::HoldOut(std::uint64_t records, std::uint64_t wanted)
    : records_(records), block_(std::min(wanted, kBlock)) {
  CHECK(wanted <= records / 2, wanted, records);
  if (wanted == 0) return;
  const std::uint64_t blocks = (wanted + kBlock - 1) / kBlock;
  // There are whole blocks between held ones too, so that pairs of records stay together.
  period_ = wanted < kBlock ? records : std::max(records / blocks / kBlock, std::uint64_t{2}) * kBlock;
  const std::uint64_t held = records / period_ * block_ + std::min(records % period_, block_);
  held_ = std::min(held, records / 2);
}

RecordIndex HoldOut::held_record(std::uint64_t i) const {
  CHECK(i < held_, i, held_);
  return RecordIndex{i / block_ * period_ + i % block_};
}

RecordIndex HoldOut::kept_record(std::uint64_t i) const {
  if (period_ == 0) return RecordIndex{i};
  const std::uint64_t kept_of_period = period_ - block_;
  const std::uint64_t period = i / kept_of_period;
  // The last period may have fewer held records than the others.
  const std::uint64_t held_before = std::min((period + 1) * block_, held_);
  return RecordIndex{held_before + i};
}

KeptRecords::KeptRecords(const Dataset& base, const HoldOut& hold_out)
    : base_(base),
      hold_out_(hold_out),
      feature_entries_(base.feature_entries()),
      label_entries_(base.label_entries()) {
  CHECK(hold_out.held() + hold_out.kept() == base.size(), hold_out.held(), base.size());
  for (std::uint64_t i = 0; i < hold_out.held(); ++i) {
    const Record record = base.record(hold_out.held_record(i));
    feature_entries_ -= record.features.index.size();
    label_entries_ -= record.labels.size();
  }
}

}  // namespace gossamer::data
