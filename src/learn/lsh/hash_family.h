// SPDX-License-Identifier: Apache-2.0
//
// HashFamily: locality-sensitive hash functions. Vectors that are alike get equal codes more often than
// others do. How often is each family's theorem (collisions.md). That is why a table of codes finds
// neighbours without looking at all rows (Indyk and Motwani, "Approximate nearest neighbors", STOC 1998).
//
// A family joins K functions to one code and gives L codes to a vector, one for each table (tables.h).
// Vectors are hashed in two forms. Dense ones go in blocks of up to kCodeRows, with the kernels of learn's
// layers. Single ones are dense or sparse. All forms of the same vector have the same codes, on every
// instruction set.
//
// Owner: the builder of the tables; a family must outlive them. Thread rule: immutable after construction;
// each thread brings its own HashWorkspace. Hashing allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_array.h"
#include "kernels/kernels.h"
#include "learn/data/rows.h"

namespace gossamer::lsh {

struct HashShape {
  std::size_t dimension = 0;  // coordinates of a vector, >= 1
  std::size_t functions = 0;  // K: functions joined to a code, >= 1
  std::size_t tables = 0;     // L: codes of a vector, >= 1
};

// One thread's memory for hashing: all that a family of this shape needs. Pages that a family does not use
// are never touched.
struct HashWorkspace {
  explicit HashWorkspace(const HashShape& shape);

  std::size_t stride = 0;                       // of rows: the dimension, padded
  AlignedArray<float> rows;                     // [kCodeRows][stride]
  AlignedArray<float> columns;                  // [stride][kCodeRows]
  AlignedArray<float> function_value;           // [K L, padded]
  AlignedArray<std::uint32_t> function_winner;  // [K L]
  AlignedArray<std::uint32_t> codes;            // [L]
  AlignedArray<std::uint32_t> index;            // [dimension]: the coordinates that are not 0
  AlignedArray<float> value;                    // beside index
};

// Where the codes of a block of vectors go.
struct BlockCodes {
  std::uint32_t* codes;  // [L][kCodeRows]: code t of vector r at t * kCodeRows + r
  // [kCodeRows]: the Euclidean distance by which vector r may move and keep all its codes, whatever the
  // direction. >= 0, infinite where no change matters. Each family derives its bound (collisions.md).
  float* slack;
};

class HashFamily {
 public:
  HashFamily(const HashFamily&) = delete;
  HashFamily& operator=(const HashFamily&) = delete;
  virtual ~HashFamily() = default;

  [[nodiscard]] const HashShape& shape() const { return shape_; }
  // Codes are below 2^code_bits(), 1..32. Different combinations of the functions' answers have different
  // codes.
  [[nodiscard]] unsigned code_bits() const { return code_bits_; }

  // Codes and slack of up to kCodeRows vectors; vector r is the `dimension` floats at rows[r].
  virtual void hash_block(std::span<const float* const> rows, HashWorkspace& workspace,
                          const BlockCodes& out) const = 0;
  // Codes [L] of one sparse vector with indices below `dimension`, strictly increasing.
  virtual void hash(const data::SparseRow& vector, HashWorkspace& workspace,
                    std::span<std::uint32_t> codes) const = 0;
  // Codes [L] of one dense vector of `dimension` values.
  void hash_dense(std::span<const float> vector, HashWorkspace& workspace,
                  std::span<std::uint32_t> codes) const;

 protected:
  // Requires 1 <= code_bits <= 32 and a shape without zeros.
  HashFamily(const HashShape& shape, std::size_t code_bits);

 private:
  HashShape shape_;
  unsigned code_bits_;
};

// The coordinates that are not 0, in workspace.index and workspace.value.
[[nodiscard]] data::SparseRow nonzeros(std::span<const float> vector, HashWorkspace& workspace);

// Copies the vectors into workspace.rows, zeros behind them, and transposes them into workspace.columns.
void transpose_block(const kernels::Kernels& kernels, const HashShape& shape,
                     std::span<const float* const> rows, HashWorkspace& workspace);

}  // namespace gossamer::lsh
