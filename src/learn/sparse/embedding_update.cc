// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/embedding_update.h"

#include <algorithm>
#include <span>

namespace gossamer::sparse {

EmbeddingUpdate::EmbeddingUpdate(const Parts& parts, const LayerColumns& first, Size size) : parts_(parts) {
  if (const std::size_t width = first.own.end - first.own.begin; width < first.stride) {
    own_gradient_ = AlignedArray<float>(size.padded * width);
  }
  for (int worker = 0; worker < size.workers; ++worker)
    row_gradients_.emplace_back(parts.network.embedding.stride());
}

void EmbeddingUpdate::gather(const LayerState& first, host::Range samples) {
  const std::size_t width = first.own.end - first.own.begin;
  if (own_gradient_.size() == 0) return;
  for (std::size_t sample = samples.begin; sample < samples.end; ++sample) {
    std::copy_n(first.dh.data() + sample * first.stride + first.own.begin, width,
                own_gradient_.data() + sample * width);
  }
}

void EmbeddingUpdate::update(int worker, const InvertedLists& features, const LayerState& first) {
  RowTable& table = parts_.network.embedding;
  const std::size_t width = first.own.end - first.own.begin;
  if (width == 0) return;
  float* const row_gradient = row_gradients_[static_cast<std::size_t>(worker)].data();
  const std::span<const float> gradient = own_gradient_.size() > 0 ? own_gradient_.span() : first.dh.span();
  const std::span<const std::uint32_t> ids = features.ids();
  for (std::size_t slot = 0; slot < ids.size(); ++slot) {
    if (slot + kUpdateAhead < ids.size()) prefetch_row(table, ids[slot + kUpdateAhead]);
    const auto samples = features.samples(slot);
    parts_.kernels.weighted_sum({.out = row_gradient,
                                 .table = gradient.data(),
                                 .stride = width,
                                 .indices = samples.data(),
                                 .values = features.values(slot).data(),
                                 .count = samples.size(),
                                 .width = width});
    parts_.optimizer.update(parts_.kernels, table, ids[slot], row_gradient);
  }
}

}  // namespace gossamer::sparse
