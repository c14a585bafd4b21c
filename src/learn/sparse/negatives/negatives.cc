// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/negatives/negatives.h"

#include <cmath>

namespace gossamer::sparse {

LabelCounts count_labels(const data::Dataset& dataset) {
  LabelCounts labels{.count = std::vector<std::uint32_t>(dataset.labels()), .records = dataset.size()};
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    for (const std::uint32_t label : dataset.record(RecordIndex{i}).labels) ++labels.count[label];
  }
  return labels;
}

LabelCounts by_row(const LabelCounts& labels, const RowOrder& order) {
  LabelCounts rows{.count = std::vector<std::uint32_t>(labels.count.size()), .records = labels.records};
  for (std::uint32_t row = 0; row < rows.count.size(); ++row) {
    rows.count[row] = labels.count[order.label_of(row)];
  }
  return rows;
}

double NegativeSampler::weight(std::uint32_t count) const {
  if (count == 0) return 0;
  return options_.kind == Negatives::kFrequency ? std::pow(count, options_.exponent) : 1.0;
}

NegativeSampler::NegativeSampler(const NegativeOptions& options, const LabelCounts& rows,
                                 const RowOrder& order)
    : options_(options) {
  const bool draws = options.kind == Negatives::kUniform || options.kind == Negatives::kFrequency;
  if (!draws || options.sampled == 0) return;
  std::vector<double> share;
  for (std::uint32_t label = 0; label < rows.count.size(); ++label) {
    const std::uint32_t row = order.row_of(label);
    const double w = weight(rows.count[row]);
    if (w <= 0) continue;
    slots_.push_back({.keep = 1, .row = row, .alias = 0});
    share.push_back(w);
    total_weight_ += w;
  }
  // Vose's construction: slots that hold less than an equal part are filled up from those that hold more.
  std::vector<std::uint32_t> small;
  std::vector<std::uint32_t> large;
  for (std::uint32_t i = 0; i < share.size(); ++i) {
    share[i] *= static_cast<double>(share.size()) / total_weight_;
    slots_[i].alias = slots_[i].row;
    (share[i] < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t less = small.back();
    const std::uint32_t more = large.back();
    small.pop_back();
    slots_[less].keep = static_cast<float>(share[less]);
    slots_[less].alias = slots_[more].row;
    share[more] -= 1 - share[less];
    if (share[more] >= 1) continue;
    large.pop_back();
    small.push_back(more);
  }
}

double NegativeSampler::chance(std::uint32_t count) const {
  if (draws() == 0 || count == 0) return 0;
  const double p = weight(count) / total_weight_;
  return -std::expm1(static_cast<double>(options_.sampled) * std::log1p(-p));
}

}  // namespace gossamer::sparse
