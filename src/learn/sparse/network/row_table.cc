// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/row_table.h"

#include "base/check.h"
#include "base/prefetch.h"
#include "base/small_pages.h"

namespace gossamer::sparse {
namespace {

// Writes to every page that a row of zeros begins or reaches into.
template <class T>
void touch_zeros(T* row, std::size_t n) {
  constexpr std::size_t kInPage = 4096 / sizeof(T);
  for (std::size_t i = 0; i < n; i += kInPage) row[i] = T{};
}

}  // namespace

std::uint64_t row_table_bytes(RowTableShape shape, Moments moments) {
  const std::uint64_t numbers = std::uint64_t{shape.rows} * row_stride(shape.width);
  const std::uint64_t weights = sizeof(float) * numbers;
  const std::uint64_t last_steps = sizeof(std::uint32_t) * shape.rows;
  switch (moments) {
    case Moments::kNone: return weights;
    case Moments::kElement: return weights + 2 * sizeof(float) * numbers + last_steps;
    case Moments::kBlock:
      return weights + sizeof(kernels::Bf16) * numbers + sizeof(float) * numbers / kernels::kMomentBlock +
             last_steps;
  }
  return weights;
}

RowTable::RowTable(RowTableShape shape, Moments moments)
    : shape_(shape), stride_(row_stride(shape.width)), weights_(shape.rows * stride_) {
  if (moments == Moments::kNone) return;
  moments_ = moments;
  if (moments == Moments::kElement) {
    moment1_ = AlignedArray<float>(weights_.size());
    moment2_ = AlignedArray<float>(weights_.size());
  } else {
    block_moment1_ = AlignedArray<kernels::Bf16>(weights_.size());
    moment2_ = AlignedArray<float>(weights_.size() / kernels::kMomentBlock);
  }
  last_step_ = AlignedArray<std::uint32_t>(shape.rows);
}

void RowTable::drop_moments() {
  moments_ = Moments::kNone;
  moment1_ = {};
  block_moment1_ = {};
  moment2_ = {};
  last_step_ = {};
}

// With block moments a row of weights has 16 times the bytes of its second moments. So a run that is large in
// one array is small in another.
void RowTable::expect_scattered_runs(std::size_t run) {
  use_small_pages_of_runs(std::as_writable_bytes(weights_.span()), shape_.rows, run);
  use_small_pages_of_runs(all_moment1(), shape_.rows, run);
  use_small_pages_of_runs(std::as_writable_bytes(moment2_.span()), shape_.rows, run);
  use_small_pages_of_runs(std::as_writable_bytes(last_step_.span()), shape_.rows, run);
}

std::span<std::byte> RowTable::all_moment1() {
  return moments_ == Moments::kBlock ? std::as_writable_bytes(block_moment1_.span())
                                     : std::as_writable_bytes(moment1_.span());
}

void RowTable::touch_moments(std::size_t row) {
  if (moments_ == Moments::kBlock) {
    touch_zeros(block_moment1(row), stride_);
    touch_zeros(block_moment2(row), blocks());
  } else {
    touch_zeros(moment1(row), stride_);
    touch_zeros(moment2(row), stride_);
  }
}

void RowTable::prefetch_moments(std::size_t row) {
  if (moments_ == Moments::kBlock) {
    prefetch_elements(block_moment1(row), stride_);
    prefetch_elements(block_moment2(row), blocks());
  } else {
    prefetch_elements(moment1(row), stride_);
    prefetch_elements(moment2(row), stride_);
  }
  __builtin_prefetch(&last_step(row));
}

void prefetch_weights(const RowTable& table, std::size_t row) {
  prefetch_elements(table.weights(row), table.stride());
}

void prefetch_row(RowTable& table, std::size_t row) {
  prefetch_weights(table, row);
  table.prefetch_moments(row);
}

void initialize_normal(RowTable& table, host::Range rows, const NormalInit& init, host::Compute& compute) {
  CHECK(init.first_column % 2 == 0, init.first_column);  // normals come in twos
  compute.run([&](int worker) {
    const host::Range share = host::worker_range(rows.end - rows.begin, worker, compute.workers());
    for (std::size_t row = rows.begin + share.begin; row < rows.begin + share.end; ++row) {
      if (table.has_moments() && table.last_step(row) != 0) continue;
      const std::size_t stream = init.streams.empty() ? init.first_row + row : init.streams[row];
      Rng rng(init.seed, init.purpose, stream, init.layer);
      rng.discard(init.first_column);
      float* w = table.weights(row);
      for (std::size_t i = 0; i < table.width(); ++i) w[i] = init.stddev * rng.normal();
      if (table.has_moments()) table.touch_moments(row);
    }
  });
}

}  // namespace gossamer::sparse
