// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/row_table.h"

#include "base/prefetch.h"

namespace gossamer::sparse {
namespace {

constexpr std::size_t kFloatsInPage = 1024;

// Writes to every page that a row of zeros begins or reaches into.
void touch_zeros(float* row, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kFloatsInPage) row[i] = 0;
}

}  // namespace

RowTable::RowTable(RowTableShape shape, Moments moments)
    : shape_(shape), stride_(row_stride(shape.width)), weights_(shape.rows * stride_) {
  if (moments == Moments::kNone) return;
  moment1_ = AlignedArray<float>(shape.rows * stride_);
  moment2_ = AlignedArray<float>(shape.rows * stride_);
  last_step_ = AlignedArray<std::uint32_t>(shape.rows);
}

void RowTable::drop_moments() {
  moment1_ = {};
  moment2_ = {};
  last_step_ = {};
}

std::uint64_t RowTable::bytes() const {
  return sizeof(float) * (weights_.size() + moment1_.size() + moment2_.size()) +
         sizeof(std::uint32_t) * last_step_.size();
}

void prefetch_weights(const RowTable& table, std::size_t row) {
  prefetch_floats(table.weights(row), table.stride());
}

void prefetch_row(RowTable& table, std::size_t row) {
  prefetch_floats(table.weights(row), table.stride());
  prefetch_floats(table.moment1(row), table.stride());
  prefetch_floats(table.moment2(row), table.stride());
  __builtin_prefetch(&table.last_step(row));
}

void initialize_normal(RowTable& table, const NormalInit& init, host::Compute& compute) {
  compute.run([&](int worker) {
    const host::Range range = host::worker_range(table.rows(), worker, compute.workers());
    for (std::size_t row = range.begin; row < range.end; ++row) {
      Rng rng(init.seed, init.purpose, row, init.layer);
      float* w = table.weights(row);
      for (std::size_t i = 0; i < table.width(); ++i) w[i] = init.stddev * rng.normal();
      if (!table.has_moments()) continue;
      touch_zeros(table.moment1(row), table.stride());
      touch_zeros(table.moment2(row), table.stride());
    }
  });
}

}  // namespace gossamer::sparse
