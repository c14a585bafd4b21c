// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/batch_reader.h"

#include <algorithm>

#include "base/check.h"

namespace gossamer::engine {

BatchReader::BatchReader(const data::Dataset& dataset, const text::FeatureWeighting& weighting,
                         host::Compute& compute)
    : dataset_(dataset), weighting_(weighting), compute_(compute) {}

data::Batch BatchReader::read_step(const data::SamplingPlan& plan, StepNumber step, std::size_t batch) {
  records_.resize(batch);
  const std::uint64_t first = step.value * batch;
  for (std::size_t i = 0; i < batch; ++i) {
    records_[i] = dataset_.record(plan.record(SampleId{first + i}));
  }
  return gather();
}

data::Batch BatchReader::read_range(RecordIndex first, std::size_t count) {
  CHECK(first.value + count <= dataset_.size(), first.value, count, dataset_.size());
  records_.resize(count);
  for (std::size_t i = 0; i < count; ++i) records_[i] = dataset_.record(RecordIndex{first.value + i});
  return gather();
}

data::Batch BatchReader::gather() {
  const std::size_t n = records_.size();
  feature_begin_.resize(n + 1);
  label_begin_.resize(n + 1);
  feature_begin_[0] = 0;
  label_begin_[0] = 0;
  for (std::size_t i = 0; i < n; ++i) {
    feature_begin_[i + 1] = feature_begin_[i] + static_cast<std::uint32_t>(records_[i].features.index.size());
    label_begin_[i + 1] = label_begin_[i] + static_cast<std::uint32_t>(records_[i].labels.size());
  }
  if (feature_.size() < feature_begin_[n]) {
    feature_.resize(feature_begin_[n]);
    value_.resize(feature_begin_[n]);
  }
  if (label_.size() < label_begin_[n]) label_.resize(label_begin_[n]);
  // Weighting takes a logarithm per feature: shared by the workers, each its own samples.
  compute_.run([&](int worker) {
    const host::Range mine = host::worker_range(n, worker, compute_.workers());
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      const data::Record& record = records_[i];
      std::copy(record.features.index.begin(), record.features.index.end(),
                feature_.begin() + feature_begin_[i]);
      std::copy(record.labels.begin(), record.labels.end(), label_.begin() + label_begin_[i]);
      weighting_.apply(record.features,
                       std::span(value_).subspan(feature_begin_[i], record.features.index.size()));
    }
  });
  return {.features = {.begin = feature_begin_,
                       .index = std::span(feature_).first(feature_begin_[n]),
                       .value = std::span(value_).first(feature_begin_[n])},
          .labels = {.begin = label_begin_, .label = std::span(label_).first(label_begin_[n])}};
}

}  // namespace gossamer::engine
