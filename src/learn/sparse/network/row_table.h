// SPDX-License-Identifier: Apache-2.0
//
// RowTable: the parameters of one layer as rows (an embedding per feature, an output vector per label).
// Beside them it has the Adam moments of each row and the step that last updated it. Weights, moments and
// step numbers are separate arrays: prediction streams through the weights alone.
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
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse {

struct RowTableShape {
  std::size_t rows = 0;
  std::size_t width = 0;
};

// What training keeps beside the weights.
enum class Moments {
  kNone,     // nothing: the table is for prediction only
  kElement,  // both Adam moments of each weight: three times the memory of the weights
  kBlock,    // the first moment of each weight in bf16, one second moment for 16 of them: half as much again
};

// Bytes of a table of this shape.
[[nodiscard]] std::uint64_t row_table_bytes(RowTableShape shape, Moments moments);

class RowTable {
 public:
  RowTable() = default;
  // All zeros.
  RowTable(RowTableShape shape, Moments moments);

  [[nodiscard]] std::size_t rows() const { return shape_.rows; }
  [[nodiscard]] std::size_t width() const { return shape_.width; }
  [[nodiscard]] std::size_t stride() const { return stride_; }
  [[nodiscard]] Moments moments() const { return moments_; }
  [[nodiscard]] bool has_moments() const { return moments_ != Moments::kNone; }

  [[nodiscard]] float* weights(std::size_t row) { return weights_.data() + row * stride_; }
  [[nodiscard]] const float* weights(std::size_t row) const { return weights_.data() + row * stride_; }
  // Require Moments::kElement. [stride]
  [[nodiscard]] float* moment1(std::size_t row) { return moment1_.data() + row * stride_; }
  [[nodiscard]] float* moment2(std::size_t row) { return moment2_.data() + row * stride_; }
  // Require Moments::kBlock. [stride], [stride / kernels::kMomentBlock].
  [[nodiscard]] kernels::Bf16* block_moment1(std::size_t row) {
    return block_moment1_.data() + row * stride_;
  }
  [[nodiscard]] float* block_moment2(std::size_t row) { return moment2_.data() + row * blocks(); }
  // Requires moments. 1 + the step that last updated the row; 0 = never.
  [[nodiscard]] std::uint32_t& last_step(std::size_t row) { return last_step_[row]; }

  // Whole tensors, for checkpoints and models; all but the weights are empty without moments.
  [[nodiscard]] std::span<float> all_weights() { return weights_.span(); }  // [rows][stride]
  [[nodiscard]] std::span<const float> all_weights() const { return weights_.span(); }
  // [rows][stride] in f32 or bf16.
  [[nodiscard]] std::span<std::byte> all_moment1();
  // [rows][stride], or [rows][stride / kernels::kMomentBlock] of Moments::kBlock.
  [[nodiscard]] std::span<float> all_moment2() { return moment2_.span(); }
  [[nodiscard]] std::span<std::uint32_t> all_last_steps() { return last_step_.span(); }

  // Frees what only training needs.
  void drop_moments();
  // Tells the table that only scattered runs of `run` rows will be used. Asks for small pages
  // (base/small_pages.h) for those arrays in which a run is smaller than a huge page. Call it before any of
  // them is touched.
  void expect_scattered_runs(std::size_t run);
  // Writes to every page that the row's moments reach into. Requires moments, all of them zero.
  void touch_moments(std::size_t row);
  // Brings the row's moments and its last step towards the cache. Requires moments.
  void prefetch_moments(std::size_t row);

  // Bytes of the arrays when every page is in use.
  [[nodiscard]] std::uint64_t bytes() const { return row_table_bytes(shape_, moments_); }

 private:
  [[nodiscard]] std::size_t blocks() const { return stride_ / kernels::kMomentBlock; }

  RowTableShape shape_;
  std::size_t stride_ = 0;
  AlignedArray<float> weights_;
  Moments moments_ = Moments::kNone;
  AlignedArray<float> moment1_;
  AlignedArray<kernels::Bf16> block_moment1_;
  AlignedArray<float> moment2_;
  AlignedArray<std::uint32_t> last_step_;
};

// prefetch_row() brings the weights and moments of a row towards the cache, prefetch_weights() the weights
// alone. The row need not be used afterwards.
void prefetch_weights(const RowTable& table, std::size_t row);
void prefetch_row(RowTable& table, std::size_t row);
// Updates fetch rows that many rows ahead.
inline constexpr std::size_t kUpdateAhead = 4;

struct NormalInit {
  float stddev;
  std::uint64_t seed;
  Purpose purpose;
  std::uint32_t layer = 0;
  // Where the table's first row and column stand in the whole layer, of which it may be a part.
  std::size_t first_row = 0;
  std::size_t first_column = 0;  // even
  // [rows of the table]: the numbers in the names of the rows' streams. Empty where these are r.
  std::span<const std::uint32_t> streams = {};
};
// Fills the weights of these rows with N(0, stddev^2), but for rows that some step has updated. Row r of the
// layer uses the random stream (seed, purpose, r, layer). So the values do not depend on the number of
// workers, nor on which node holds which part.
// Requires moments, if any, that are still zero: their pages are brought into memory. So no step waits for
// one (clearing a huge page costs as much as many rows' updates). And a machine with too little memory stops
// before the first step, not in the middle of a run.
void initialize_normal(RowTable& table, host::Range rows, const NormalInit& init, host::Compute& compute);

}  // namespace gossamer::sparse
