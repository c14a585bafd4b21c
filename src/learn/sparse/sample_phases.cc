// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/sample_phases.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace gossamer::sparse {

DropoutMask::DropoutMask(const HiddenOptions& options)
    : seed_(options.seed),
      drop_below_(static_cast<std::uint32_t>(std::lround(options.dropout * 65536))),
      scale_(65536.0F / (65536.0F - static_cast<float>(drop_below_))) {
  CHECK(options.dropout >= 0 && drop_below_ < 65536, options.dropout);
}

void DropoutMask::draw(StepNumber step, std::size_t sample, std::span<std::uint8_t> kept) const {
  Rng rng(seed_, Purpose::kDropout, step.value, static_cast<std::uint32_t>(sample));
  for (std::size_t i = 0; i + 1 < kept.size(); i += 2) {
    const std::uint32_t bits = rng.next_u32();
    kept[i] = (bits & 0xFFFFU) >= drop_below_ ? 1 : 0;
    kept[i + 1] = (bits >> 16) >= drop_below_ ? 1 : 0;
  }
}

void SamplePhases::embed_sample(const data::SparseRow& features, StepNumber step, std::size_t sample,
                                BatchState& state) const {
  const std::size_t at = sample * state.stride;
  parts_.kernels.weighted_sum({.out = state.y.data() + at,
                               .table = parts_.network.embedding.weights(0),
                               .stride = state.stride,
                               .indices = features.index.data(),
                               .values = features.value.data(),
                               .count = features.index.size(),
                               .width = state.stride});
  std::uint8_t* const kept = has_dropout() ? state.kept.data() + at : nullptr;
  if (has_dropout()) dropout_.draw(step, sample, {kept, state.stride});
  parts_.kernels.activate[static_cast<std::size_t>(options_.activation)]({.y = state.y.data() + at,
                                                                          .h = state.h.data() + at,
                                                                          .kept = kept,
                                                                          .scale = dropout_.scale(),
                                                                          .n = state.stride});
}

void SamplePhases::embed(const data::Batch& batch, StepNumber step, host::Range range,
                         BatchState& state) const {
  for (std::size_t sample = range.begin; sample < range.end; ++sample) {
    if (sample >= batch.size()) {
      std::fill_n(state.h.data() + sample * state.stride, state.stride, 0.0F);
      continue;
    }
    for (const std::uint32_t label : batch.labels.row(sample)) {
      prefetch_weights(parts_.network.output, label);
    }
    embed_sample(batch.features.row(sample), step, sample, state);
  }
}

void SamplePhases::score_positives(const data::Batch& batch, host::Range range, BatchState& state) const {
  const kernels::Kernels& k = parts_.kernels;
  for (std::size_t sample = range.begin; sample < range.end; ++sample) {
    float* const dh = state.dh.data() + sample * state.stride;
    const float* const h = state.h.data() + sample * state.stride;
    std::fill_n(dh, state.stride, 0.0F);
    state.shift[sample] = 0;
    state.target[sample] = 0;
    state.positive_mean[sample] = 0;
    if (sample >= batch.size() || batch.labels.row(sample).empty()) continue;
    const auto labels = batch.labels.row(sample);
    const float target = 1.0F / static_cast<float>(labels.size());
    float largest = -INFINITY;
    float sum = 0;
    for (const std::uint32_t label : labels) {
      const float* const w = parts_.network.output.weights(label);
      const float correction = parts_.logq.own_correction(parts_.labels.count[label]);
      const float score = k.dot(w, h, state.stride) + parts_.network.bias[label] + correction;
      largest = std::max(largest, score);
      sum += score;
      k.add_scaled(dh, w, -target / static_cast<float>(state.samples), state.stride);
    }
    state.shift[sample] = largest;
    state.target[sample] = target;
    state.positive_mean[sample] = sum * target;
  }
}

void SamplePhases::reduce(std::span<const Part> parts, host::Range range, BatchState& state) const {
  const kernels::Kernels& k = parts_.kernels;
  const auto backward = k.activate_backward[static_cast<std::size_t>(options_.activation)];
  for (std::size_t sample = range.begin; sample < range.end; ++sample) {
    state.inv[sample] = 0;
    state.loss[sample] = 0;
    if (sample >= state.samples || state.target[sample] == 0) continue;
    float z = 0;
    for (const Part& part : parts) z += part.sums[sample];
    state.inv[sample] = 1.0F / (z * static_cast<float>(state.samples));
    state.loss[sample] = state.shift[sample] + std::log(z) - state.positive_mean[sample];
    const std::size_t at = sample * state.stride;
    float* const dh = state.dh.data() + at;
    for (const Part& part : parts) {
      k.add_scaled(dh, part.hidden_gradient + at, state.inv[sample], state.stride);
    }
    backward({.y = state.y.data() + at,
              .gradient = dh,
              .kept = has_dropout() ? state.kept.data() + at : nullptr,
              .scale = dropout_.scale(),
              .n = state.stride});
  }
}

}  // namespace gossamer::sparse
