// SPDX-License-Identifier: Apache-2.0
//
// The numbers between two stages as bytes and back. Numbers of f64 travel as they are; for f32 there is a
// codec (docs/protocols/codec.md). A number that is not finite, or would not be after the codec, is never
// written: then all numbers are zeros, and the writer is told.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "base/aligned_array.h"
#include "base/slice.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "net/codec/codec.h"

namespace gossamer::pipeline {

struct BoundaryShape {
  bool is_f64 = false;
  net::Codec codec = net::Codec::kF32;  // of f32
  std::uint64_t tokens = 0;
  std::uint32_t width = 1;

  [[nodiscard]] std::uint64_t numbers() const { return tokens * width; }
};

[[nodiscard]] std::uint64_t boundary_bytes(const BoundaryShape& shape);

// Whether all numbers are finite, and stay so in the codec.
[[nodiscard]] bool are_finite(ConstNumbers numbers, net::Codec codec = net::Codec::kF32);

struct WrittenBoundary {
  Slice bytes;
  bool zeros = false;  // in place of numbers that are not finite
};
// Requires shape.numbers() numbers of its type.
[[nodiscard]] WrittenBoundary write_boundary(const BoundaryShape& shape, ConstNumbers numbers);

class ReadBoundary {
 public:
  // Nothing: not boundary_bytes(), or a number is not finite.
  [[nodiscard]] static std::optional<ReadBoundary> read(const BoundaryShape& shape, const Slices& bytes);
  [[nodiscard]] ConstNumbers numbers() const;

 private:
  std::variant<AlignedArray<float>, AlignedArray<double>> numbers_;
};

}  // namespace gossamer::pipeline
