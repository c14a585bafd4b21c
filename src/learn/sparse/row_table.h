// SPDX-License-Identifier: Apache-2.0
//
// RowTable: the parameters of one layer as rows (an embedding per feature, an output vector per label), with
// the two Adam moments of each row and the step that last updated it. Weights, moments and step numbers are
// separate arrays: prediction streams through the weights alone.
//
// A row has width() values, padded with zeros to stride(), a multiple of 32. Padding stays zero.
// Owner: the network. Thread rule: in a step each row belongs to one worker (ownership.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_array.h"
#include "base/rng.h"
#include "host/api/compute.h"

namespace gossamer::sparse {

struct RowTableShape {
  std::size_t rows = 0;
  std::size_t width = 0;
};

// Whether a table can be trained; a table for prediction only saves two thirds of the memory.
enum class Moments { kNone, kAdam };

class RowTable {
 public:
  RowTable() = default;
  // All zeros.
  RowTable(RowTableShape shape, Moments moments);

  [[nodiscard]] std::size_t rows() const { return shape_.rows; }
  [[nodiscard]] std::size_t width() const { return shape_.width; }
  [[nodiscard]] std::size_t stride() const { return stride_; }
  [[nodiscard]] bool has_moments() const { return moment1_.size() > 0 || shape_.rows == 0; }

  [[nodiscard]] float* weights(std::size_t row) { return weights_.data() + row * stride_; }
  [[nodiscard]] const float* weights(std::size_t row) const { return weights_.data() + row * stride_; }
  // Require has_moments().
  [[nodiscard]] float* moment1(std::size_t row) { return moment1_.data() + row * stride_; }
  [[nodiscard]] float* moment2(std::size_t row) { return moment2_.data() + row * stride_; }
  // 1 + the step that last updated the row; 0 = never.
  [[nodiscard]] std::uint32_t& last_step(std::size_t row) { return last_step_[row]; }

  // Whole tensors [rows][stride] and [rows], for checkpoints and models; empty without moments.
  [[nodiscard]] std::span<float> all_weights() { return weights_.span(); }
  [[nodiscard]] std::span<const float> all_weights() const { return weights_.span(); }
  [[nodiscard]] std::span<float> all_moment1() { return moment1_.span(); }
  [[nodiscard]] std::span<float> all_moment2() { return moment2_.span(); }
  [[nodiscard]] std::span<std::uint32_t> all_last_steps() { return last_step_.span(); }

  // Frees what only training needs.
  void drop_moments();

  // Bytes of the arrays when every page is in use.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  RowTableShape shape_;
  std::size_t stride_ = 0;
  AlignedArray<float> weights_;
  AlignedArray<float> moment1_;
  AlignedArray<float> moment2_;
  AlignedArray<std::uint32_t> last_step_;
};

// The stride of rows of `width` values.
[[nodiscard]] constexpr std::size_t row_stride(std::size_t width) { return (width + 31) / 32 * 32; }

// Brings the weights and moments of a row towards the cache; `row` need not be used afterwards.
void prefetch_weights(const RowTable& table, std::size_t row);
void prefetch_row(RowTable& table, std::size_t row);

struct NormalInit {
  float stddev;
  std::uint64_t seed;
  Purpose purpose;
  std::uint32_t layer = 0;
};
// Fills the weights with N(0, stddev^2). Row r uses the random stream (seed, purpose, r, layer): the values
// do not depend on the number of workers. Requires moments, if any, that are still zero: their pages are
// brought into memory, so that no step waits for one (clearing a huge page costs as much as many rows'
// updates) and a machine with too little memory stops before the first step, not in the middle of a run.
void initialize_normal(RowTable& table, const NormalInit& init, host::Compute& compute);

}  // namespace gossamer::sparse
