// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/train/batch_reader.h"

#include <algorithm>

#include "base/check.h"
#include "base/prefetch.h"
#include "base/rng.h"

namespace gossamer::sparse_engine {
namespace {

// How many records ahead bytes are fetched. Records lie anywhere, and each is short.
constexpr std::size_t kAhead = 4;

void prefetch(const data::Record& record) {
  prefetch_elements(record.features.index.data(), record.features.index.size());
  prefetch_elements(record.features.value.data(), record.features.value.size());
  prefetch_elements(record.labels.data(), record.labels.size());
}

// Drops features of a sample. The mask depends on the seed, the step and the sample alone, so that a replayed
// step sees the same features.
void drop_features(const StepRequest& request, std::uint32_t sample, std::span<float> value) {
  Rng rng(request.seed, Purpose::kInputDropout, request.step.value, sample);
  const auto drop = static_cast<float>(request.dropout);
  const float scale = 1 / (1 - drop);
  for (float& v : value) v = rng.uniform() < drop ? 0 : v * scale;
}

}  // namespace

BatchReader::BatchReader(const data::Dataset& dataset, const text::FeatureWeighting& weighting,
                         host::Compute& compute)
    : dataset_(dataset), weighting_(weighting), compute_(compute) {}

data::Batch BatchReader::read_step(const data::SamplingPlan& plan, const StepRequest& request) {
  records_.resize(request.batch);
  const std::uint64_t first = request.step.value * request.batch;
  for (std::size_t i = 0; i < request.batch; ++i) {
    records_[i] = dataset_.record(plan.record(SampleId{first + i}));
  }
  return gather(request.dropout > 0 ? &request : nullptr);
}

data::Batch BatchReader::read_records(host::Range records) {
  CHECK(records.begin <= records.end && records.end <= dataset_.size(), records.end, dataset_.size());
  records_.clear();
  for (std::size_t i = records.begin; i < records.end; ++i)
    records_.push_back(dataset_.record(RecordIndex{i}));
  return gather(nullptr);
}

data::Batch BatchReader::gather(const StepRequest* dropout) {
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
  // Weighting takes a logarithm per feature. So workers share it; each has its own samples.
  compute_.run([&](int worker) {
    const host::Range mine = host::worker_range(n, worker, compute_.workers());
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      if (i + kAhead < mine.end) prefetch(records_[i + kAhead]);
      const data::Record& record = records_[i];
      std::copy(record.features.index.begin(), record.features.index.end(),
                feature_.begin() + feature_begin_[i]);
      std::copy(record.labels.begin(), record.labels.end(), label_.begin() + label_begin_[i]);
      const auto value = std::span(value_).subspan(feature_begin_[i], record.features.index.size());
      weighting_.apply(record.features, value);
      if (dropout != nullptr) drop_features(*dropout, static_cast<std::uint32_t>(i), value);
    }
  });
  return {.features = {.begin = feature_begin_,
                       .index = std::span(feature_).first(feature_begin_[n]),
                       .value = std::span(value_).first(feature_begin_[n])},
          .labels = {.begin = label_begin_, .label = std::span(label_).first(label_begin_[n])}};
}

}  // namespace gossamer::sparse_engine
