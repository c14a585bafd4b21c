// SPDX-License-Identifier: Apache-2.0
#include "kernels/top_k.h"

#include <algorithm>

#include "base/check.h"

namespace gossamer::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

PanelShape panel_shape(const TopKShape& shape) {
  CHECK(shape.queries > 0 && shape.k > 0, shape.queries, shape.k);
  return {.hidden = shape.hidden, .batch = padded_to_panel(shape.queries)};
}

}  // namespace

template <class E>
BlockedTopK<E>::BlockedTopK(Isa isa, TopKShape shape)
    : kernels_(&kernels_for(isa)),
      products_(isa, panel_shape(shape)),
      shape_(shape),
      padded_(products_.shape().batch * shape.hidden),
      packed_(products_.packed_size()),
      panel_(products_.panel_size()),
      scores_(kPanelRows * products_.shape().batch),
      thresholds_(products_.shape().batch),
      hits_(products_.shape().batch),
      best_(shape.queries * shape.k),
      found_(shape.queries) {}

template <class E>
void BlockedTopK<E>::begin(const float* queries, std::size_t count) {
  CHECK(count <= shape_.queries, count, shape_.queries);
  const std::size_t used = count * shape_.hidden;
  std::copy_n(queries, used, padded_.data());
  std::fill(padded_.data() + used, padded_.data() + padded_.size(), 0.0F);
  products_.pack_hidden(padded_.data(), packed_.data());
  std::fill_n(thresholds_.data(), count, -kInfinity);
  std::fill(thresholds_.data() + count, thresholds_.data() + thresholds_.size(), kInfinity);
  std::fill_n(found_.data(), count, 0U);
  queries_ = count;
  next_label_ = 0;
}

template <class E>
void BlockedTopK<E>::load_panel(const LabelRows& rows, std::size_t start) {
  const std::size_t used = std::min<std::size_t>(kPanelRows, rows.count - start);
  for (std::size_t r = 0; r < used; ++r) {
    products_.pack_row(rows.rows + (start + r) * rows.stride, panel_.data() + r * products_.panel_stride());
  }
  std::fill(panel_.data() + used * products_.panel_stride(), panel_.data() + panel_.size(), E{});
}

template <class E>
void BlockedTopK<E>::scan(const LabelRows& rows) {
  CHECK(rows.first >= next_label_, rows.first, next_label_);
  CHECK(rows.stride >= shape_.hidden, rows.stride, shape_.hidden);
  next_label_ = std::uint64_t{rows.first} + rows.count;
  const std::size_t batch = products_.shape().batch;
  for (std::size_t start = 0; start < rows.count; start += kPanelRows) {
    load_panel(rows, start);
    products_.scores(panel_.data(), packed_.data(), scores_.data());
    const std::size_t used = std::min<std::size_t>(kPanelRows, rows.count - start);
    for (std::size_t r = 0; r < used; ++r) {
      const std::size_t hits =
          kernels_->select_above({.scores = scores_.data() + r * batch,
                                  .bias = rows.bias == nullptr ? 0 : rows.bias[start + r],
                                  .thresholds = thresholds_.data(),
                                  .hits = hits_.data(),
                                  .n = batch});
      const auto label = static_cast<std::uint32_t>(rows.first + start + r);
      for (std::size_t i = 0; i < hits; ++i)
        insert(hits_[i].column, {.label = label, .score = hits_[i].score});
    }
  }
}

// Keeps the list sorted; the last of a full list falls out.
template <class E>
void BlockedTopK<E>::insert(std::size_t query, ScoredLabel candidate) {
  ScoredLabel* const list = best_.data() + query * shape_.k;
  std::uint32_t& found = found_[query];
  if (found == shape_.k) {
    if (!better(candidate, list[found - 1])) return;
    --found;
  }
  std::size_t at = found++;
  for (; at > 0 && better(candidate, list[at - 1]); --at) list[at] = list[at - 1];
  list[at] = candidate;
  if (found == shape_.k) thresholds_[query] = list[found - 1].score;
}

template <class E>
void BlockedTopK<E>::add(std::size_t query, std::span<const ScoredLabel> found) {
  CHECK(query < queries_, query, queries_);
  for (const ScoredLabel& candidate : found) {
    // As in scan: NaN and minus infinity never enter.
    if (candidate.score > -kInfinity) insert(query, candidate);
  }
}

template <class E>
std::span<const ScoredLabel> BlockedTopK<E>::best(std::size_t query) const {
  CHECK(query < queries_, query, queries_);
  return best_.span().subspan(query * shape_.k, found_[query]);
}

template class BlockedTopK<float>;
template class BlockedTopK<Bf16>;

}  // namespace gossamer::kernels
