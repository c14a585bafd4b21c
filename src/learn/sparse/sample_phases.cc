// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/sample_phases.h"

#include <algorithm>
#include <cmath>

namespace gossamer::sparse {
namespace {

// Samples whose labels are fetched ahead of their scores: the embedding's rows have driven them out of the
// second cache since embed() asked for them.
constexpr std::size_t kSamplesAhead = 2;

}  // namespace

void SamplePhases::embed_sample(const data::SparseRow& features, StepNumber step, std::size_t sample,
                                BatchState& state) const {
  LayerState& layer = state.first();
  parts_.kernels.weighted_sum({.out = layer.y.data() + sample * layer.stride,
                               .table = parts_.network.embedding.weights(0),
                               .stride = layer.stride,
                               .indices = features.index.data(),
                               .values = features.value.data(),
                               .count = features.index.size(),
                               .width = layer.stride});
  activation_.forward(step, {.layer = 0, .sample = sample}, layer);
}

void SamplePhases::prefetch_labels(std::span<const std::uint32_t> labels) const {
  for (const std::uint32_t label : labels) {
    prefetch_weights(parts_.network.output, label);
    __builtin_prefetch(&parts_.network.bias[label]);
    __builtin_prefetch(&parts_.labels.count[label]);
  }
}

void SamplePhases::embed(const data::Batch& batch, StepNumber step, host::Range range,
                         BatchState& state) const {
  for (std::size_t sample = range.begin; sample < range.end; ++sample) {
    if (sample >= batch.size()) {
      std::fill_n(state.first().h.data() + sample * state.first().stride, state.first().stride, 0.0F);
      continue;
    }
    prefetch_labels(batch.labels.row(sample));
    embed_sample(batch.features.row(sample), step, sample, state);
  }
}

void SamplePhases::score_positives(const data::Batch& batch, host::Range range, BatchState& state) const {
  const kernels::Kernels& k = parts_.kernels;
  LayerState& layer = state.last();
  for (std::size_t sample = range.begin; sample < range.end; ++sample) {
    float* const dh = layer.dh.data() + sample * layer.stride;
    const float* const h = layer.h.data() + sample * layer.stride;
    std::fill_n(dh, layer.stride, 0.0F);
    state.shift[sample] = 0;
    state.target[sample] = 0;
    state.positive_mean[sample] = 0;
    if (sample + kSamplesAhead < std::min(range.end, batch.size())) {
      prefetch_labels(batch.labels.row(sample + kSamplesAhead));
    }
    if (sample >= batch.size() || batch.labels.row(sample).empty()) continue;
    const auto labels = batch.labels.row(sample);
    const float target = 1.0F / static_cast<float>(labels.size());
    float largest = -INFINITY;
    float sum = 0;
    for (const std::uint32_t label : labels) {
      const float* const w = parts_.network.output.weights(label);
      const float correction = parts_.logq.own_correction(parts_.labels.count[label]);
      const float score = k.dot(w, h, layer.stride) + parts_.network.bias[label] + correction;
      largest = std::max(largest, score);
      sum += score;
      k.add_scaled(dh, w, -target / static_cast<float>(state.samples), layer.stride);
    }
    state.shift[sample] = largest;
    state.target[sample] = target;
    state.positive_mean[sample] = sum * target;
  }
}

void SamplePhases::reduce(std::span<const Part> parts, host::Range range, BatchState& state) const {
  const kernels::Kernels& k = parts_.kernels;
  LayerState& layer = state.last();
  for (std::size_t sample = range.begin; sample < range.end; ++sample) {
    state.inv[sample] = 0;
    state.loss[sample] = 0;
    if (sample >= state.samples || state.target[sample] == 0) continue;
    float z = 0;
    for (const Part& part : parts) z += part.sums[sample];
    state.inv[sample] = 1.0F / (z * static_cast<float>(state.samples));
    state.loss[sample] = state.shift[sample] + std::log(z) - state.positive_mean[sample];
    const std::size_t at = sample * layer.stride;
    for (const Part& part : parts) {
      k.add_scaled(layer.dh.data() + at, part.hidden_gradient + at, state.inv[sample], layer.stride);
    }
    activation_.backward(sample, layer);
  }
}

}  // namespace gossamer::sparse
