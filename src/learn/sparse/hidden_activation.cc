// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/hidden_activation.h"

#include <cmath>

#include "base/check.h"
#include "base/rng.h"

namespace gossamer::sparse {

DropoutMask::DropoutMask(const HiddenOptions& options)
    : seed_(options.seed),
      drop_below_(static_cast<std::uint32_t>(std::lround(options.dropout * 65536))),
      scale_(65536.0F / (65536.0F - static_cast<float>(drop_below_))) {
  CHECK(options.dropout >= 0 && drop_below_ < 65536, options.dropout);
}

void DropoutMask::draw(StepNumber step, HiddenRow row, std::size_t first,
                       std::span<std::uint8_t> kept) const {
  Rng rng(seed_, Purpose::kDropout, step.value, static_cast<std::uint32_t>(row.layer << 16 | row.sample));
  rng.discard(first / 2);
  for (std::size_t i = 0; i + 1 < kept.size(); i += 2) {
    const std::uint32_t bits = rng.next_u32();
    kept[i] = (bits & 0xFFFFU) >= drop_below_ ? 1 : 0;
    kept[i + 1] = (bits >> 16) >= drop_below_ ? 1 : 0;
  }
}

void HiddenActivation::forward(StepNumber step, HiddenRow row, LayerState& layer) const {
  const std::size_t begin = row.sample * layer.stride;
  const std::size_t at = begin + layer.own.begin;
  std::uint8_t* const kept = dropout_.active() ? layer.kept.data() : nullptr;
  if (dropout_.active())
    dropout_.draw(step, row, layer.own.begin, {kept + at, layer.own.end - layer.own.begin});
  kernels_.activate[activation_]({.y = layer.y.data() + at,
                                  .h = layer.h.data() + at,
                                  .kept = dropout_.active() ? kept + at : nullptr,
                                  .scale = dropout_.scale(),
                                  .n = layer.own.end - layer.own.begin});
}

void HiddenActivation::backward(std::size_t sample, LayerState& layer) const {
  const std::size_t at = sample * layer.stride + layer.own.begin;
  kernels_.activate_backward[activation_]({.y = layer.y.data() + at,
                                           .gradient = layer.dh.data() + at,
                                           .kept = dropout_.active() ? layer.kept.data() + at : nullptr,
                                           .scale = dropout_.scale(),
                                           .n = layer.own.end - layer.own.begin});
}

}  // namespace gossamer::sparse
