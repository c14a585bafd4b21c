// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/sample_phases.h"

#include <algorithm>
#include <cmath>

namespace gossamer::sparse {
namespace {

// The number of samples by which labels are fetched ahead of their scores. The embedding's rows have driven
// them out of the second-level cache since embed() asked for them.
constexpr std::size_t kSamplesAhead = 2;
// The shift of a labelled sample when none of its labels is held here.
constexpr float kNoShift = -INFINITY;

}  // namespace

void SamplePhases::embed_sample(const data::Batch& batch, StepNumber step, std::size_t sample,
                                LayerState& first) const {
  if (sample >= batch.size()) {
    std::fill_n(first.h.data() + sample * first.stride, first.stride, 0.0F);
    return;
  }
  if (first.own.begin == first.own.end) return;
  const data::SparseRow features = batch.features.row(sample);
  parts_.kernels.weighted_sum({.out = first.y.data() + sample * first.stride + first.own.begin,
                               .table = parts_.network.embedding.weights(0),
                               .stride = parts_.network.embedding.stride(),
                               .indices = features.index.data(),
                               .values = features.value.data(),
                               .count = features.index.size(),
                               .width = first.own.end - first.own.begin,
                               .more = batch.features.begin.back() - batch.features.begin[sample + 1]});
  activation_.forward(step, {.layer = 0, .sample = sample}, first);
}

void SamplePhases::prefetch_labels(std::span<const std::uint32_t> labels) const {
  for (const std::uint32_t label : labels) {
    if (!parts_.network.part.rows.contains(label)) continue;
    prefetch_weights(parts_.network.output, label);
    __builtin_prefetch(&parts_.network.bias[label]);
    __builtin_prefetch(&parts_.labels.count[label]);
  }
}

void SamplePhases::set_target(const data::Batch& batch, std::size_t sample, BatchState& state) const {
  state.target[sample] = 0;
  if (sample >= batch.size()) return;
  const auto labels = batch.labels.row(sample);
  if (!labels.empty()) state.target[sample] = 1.0F / static_cast<float>(labels.size());
  prefetch_labels(labels);
}

void SamplePhases::embed(const data::Batch& batch, StepNumber step, host::Range range,
                         BatchState& state) const {
  for (std::size_t sample = range.begin; sample < range.end; ++sample) {
    set_target(batch, sample, state);
    embed_sample(batch, step, sample, state.first());
  }
}

void SamplePhases::set_targets(const data::Batch& batch, host::Range range, BatchState& state) const {
  for (std::size_t sample = range.begin; sample < range.end; ++sample) set_target(batch, sample, state);
}

void SamplePhases::embed(const data::Batch& batch, StepNumber step, host::Range range,
                         LayerState& first) const {
  for (std::size_t sample = range.begin; sample < range.end; ++sample)
    embed_sample(batch, step, sample, first);
}

void SamplePhases::score_positives(const data::Batch& batch, host::Range range, BatchState& state) const {
  const kernels::Kernels& k = parts_.kernels;
  LayerState& layer = state.last();
  for (std::size_t sample = range.begin; sample < range.end; ++sample) {
    float* const dh = layer.dh.data() + sample * layer.stride;
    const float* const h = layer.h.data() + sample * layer.stride;
    std::fill_n(dh, layer.stride, 0.0F);
    state.shift[sample] = 0;
    state.positives[sample] = 0;
    state.positive_sum[sample] = 0;
    if (sample + kSamplesAhead < std::min(range.end, batch.size())) {
      prefetch_labels(batch.labels.row(sample + kSamplesAhead));
    }
    const float target = state.target[sample];
    if (target == 0) continue;
    float largest = kNoShift;
    for (const std::uint32_t label : batch.labels.row(sample)) {
      if (!parts_.network.part.rows.contains(label)) continue;
      const float* const w = parts_.network.output.weights(label);
      const float correction = parts_.logq.own_correction(parts_.labels.count[label]);
      const float score = k.dot(w, h, layer.stride) + parts_.network.bias[label] + correction;
      largest = std::max(largest, score);
      state.positives[sample] += 1;
      state.positive_sum[sample] += score;
      k.add_scaled(dh, w, -target / static_cast<float>(state.samples), layer.stride);
    }
    state.shift[sample] = largest;
  }
}

void SamplePhases::fill_shifts(BatchState& state) {
  double sum = 0;
  std::size_t known = 0;
  for (std::size_t sample = 0; sample < state.samples; ++sample) {
    if (state.positives[sample] == 0) continue;
    sum += state.shift[sample];
    ++known;
  }
  const float mean = known == 0 ? 0 : static_cast<float>(sum / static_cast<double>(known));
  for (std::size_t sample = 0; sample < state.samples; ++sample) {
    if (state.shift[sample] == kNoShift) state.shift[sample] = mean;
  }
}

void SamplePhases::add_shares(std::span<const Part> parts, BatchState& state) {
  for (std::size_t sample = 0; sample < state.samples; ++sample) {
    float sum = 0;
    for (const Part& part : parts) sum += part.sums[sample];
    state.shares[sample] = {.shift = state.shift[sample], .sum = sum};
  }
}

namespace {

// exp(shift here - shift of the sum) / (Z samples). Rows that are here have at most all of the probability.
// Sums that come from other nodes may say otherwise, and would make infinities of what is here.
float factor_of_own(std::size_t sample, const PartitionShare& sum, const BatchState& state) {
  const float here = state.shares[sample].sum;
  if (here == 0) return 0;
  const auto samples = static_cast<float>(state.samples);
  const float factor = std::exp(state.shift[sample] - sum.shift) / (sum.sum * samples);
  const float most = 2 / (here * samples);  // rounding leaves it far below
  return factor <= most ? factor : most;
}

}  // namespace

void SamplePhases::normalise(std::span<const PartitionShare> sums, std::span<const Part> parts,
                             host::Range range, BatchState& state) const {
  LayerState& layer = state.last();
  for (std::size_t sample = range.begin; sample < range.end; ++sample) {
    state.inv[sample] = 0;
    state.loss[sample] = 0;
    if (sample >= state.samples || state.target[sample] == 0) continue;
    const auto [shift, z] = sums[sample];
    state.inv[sample] = factor_of_own(sample, sums[sample], state);
    if (state.positives[sample] > 0)
      state.loss[sample] = state.target[sample] *
                           (state.positives[sample] * (shift + std::log(z)) - state.positive_sum[sample]);
    const std::size_t at = sample * layer.stride;
    for (const Part& part : parts) {
      parts_.kernels.add_scaled(layer.dh.data() + at, part.hidden_gradient + at, state.inv[sample],
                                layer.stride);
    }
  }
}

void SamplePhases::through_activation(std::size_t layer, host::Range range, BatchState& state) const {
  for (std::size_t sample = range.begin; sample < std::min(range.end, state.samples); ++sample) {
    if (state.target[sample] != 0) activation_.backward(sample, state.layers[layer]);
  }
}

}  // namespace gossamer::sparse
