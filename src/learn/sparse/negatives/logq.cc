// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/negatives/logq.h"

#include <algorithm>
#include <cmath>

namespace gossamer::sparse {
namespace {

constexpr std::size_t kTableSize = 1024;

}  // namespace

LogQCorrection::LogQCorrection(LogQ kind, const NegativeSampler& sampler, std::uint64_t records)
    : kind_(kind),
      sampler_(sampler),
      records_(static_cast<double>(std::max<std::uint64_t>(records, 1))),
      table_(kTableSize) {}

void LogQCorrection::set_batch(std::size_t batch, std::size_t asking) {
  if (batch == batch_ && asking == asking_) return;
  batch_ = batch;
  asking_ = asking;
  for (std::size_t count = 0; count < kTableSize; ++count) {
    table_[count] = compute(static_cast<std::uint32_t>(count));
  }
}

float LogQCorrection::compute(std::uint32_t count) const {
  if (kind_ == LogQ::kNone) return 0;
  const std::uint32_t f = std::max(count, 1U);
  const double share = std::min(1.0, f / records_);
  const auto b = static_cast<double>(batch_);
  // The number of other samples with labels that are not given.
  const double others = b - 1 - static_cast<double>(asking_);
  // ln of the chance that no sample of the batch (kExact: none of the others) has the label
  const double log_absent = kind_ == LogQ::kAll ? -b * share : others * std::log1p(-share);
  const double absent = others <= 0 && kind_ == LogQ::kExact ? 1.0 : std::exp(log_absent);
  const double q = 1 - absent * (1 - sampler_.chance(f));
  // Without others and draws all active labels are certain: any finite value serves, none is used.
  return q > 0 ? static_cast<float>(-std::log(q)) : 0.0F;
}

}  // namespace gossamer::sparse
