// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/boundary_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"
#include "kernels/kernels.h"

namespace gossamer::pipeline {
namespace {

// The largest number that bf16 does not round to infinity.
constexpr float kLargestBf16 = 3.3895313892515355e38F;

net::MatrixCodec matrix_codec(net::Codec codec) { return {codec, kernels::kernels_for(kernels::best_isa())}; }

net::MatrixShape matrix_shape(const BoundaryShape& shape) {
  return {.rows = shape.tokens, .columns = shape.width};
}

Slice owned(std::shared_ptr<AlignedArray<std::byte>> array) {
  const std::span<const std::byte> bytes = std::as_const(*array).span();
  return {std::move(array), bytes};
}

void encode(const BoundaryShape& shape, ConstNumbers numbers, std::span<std::byte> out) {
  if (shape.is_f64) {
    std::ranges::copy(std::as_bytes(std::get<std::span<const double>>(numbers)), out.begin());
    return;
  }
  const auto floats = std::get<std::span<const float>>(numbers);
  matrix_codec(shape.codec)
      .encode({.data = floats.data(), .shape = matrix_shape(shape), .stride = shape.width}, out);
}

}  // namespace

std::uint64_t boundary_bytes(const BoundaryShape& shape) {
  if (shape.is_f64) return shape.numbers() * sizeof(double);
  return net::encoded_bytes(shape.codec, matrix_shape(shape));
}

bool are_finite(ConstNumbers numbers, net::Codec codec) {
  const float most = codec == net::Codec::kBf16 ? kLargestBf16 : std::numeric_limits<float>::max();
  return std::visit(
      [most]<class T>(std::span<const T> all) {
        const T largest = std::is_same_v<T, float> ? static_cast<T>(most) : std::numeric_limits<T>::max();
        return std::ranges::all_of(all, [largest](T one) { return std::abs(one) <= largest; });
      },
      numbers);
}

WrittenBoundary write_boundary(const BoundaryShape& shape, ConstNumbers numbers) {
  CHECK(std::visit([](auto all) { return all.size(); }, numbers) == shape.numbers(), shape.numbers());
  auto out = std::make_shared<AlignedArray<std::byte>>(boundary_bytes(shape));
  const bool zeros = !are_finite(numbers, shape.codec);
  if (!zeros) {
    encode(shape, numbers, out->span());
  } else if (shape.is_f64) {
    const AlignedArray<double> none(shape.numbers());
    encode(shape, none.span(), out->span());
  } else {
    const AlignedArray<float> none(shape.numbers());
    encode(shape, none.span(), out->span());
  }
  return {.bytes = owned(std::move(out)), .zeros = zeros};
}

std::optional<ReadBoundary> ReadBoundary::read(const BoundaryShape& shape, const Slices& bytes) {
  if (total_bytes(bytes) != boundary_bytes(shape)) return std::nullopt;
  ReadBoundary boundary;
  if (shape.is_f64) {
    AlignedArray<double> numbers(shape.numbers());
    copy_front(bytes, std::as_writable_bytes(numbers.span()));
    boundary.numbers_ = std::move(numbers);
  } else {
    AlignedArray<float> numbers(shape.numbers());
    AlignedArray<std::byte> whole(boundary_bytes(shape));
    copy_front(bytes, whole.span());
    const auto decoded =
        matrix_codec(shape.codec)
            .decode(whole.span(),
                    {.data = numbers.data(), .shape = matrix_shape(shape), .stride = shape.width});
    if (!decoded.ok()) return std::nullopt;
    boundary.numbers_ = std::move(numbers);
  }
  if (!are_finite(boundary.numbers())) return std::nullopt;
  return boundary;
}

ConstNumbers ReadBoundary::numbers() const {
  return std::visit([](const auto& all) -> ConstNumbers { return all.span(); }, numbers_);
}

}  // namespace gossamer::pipeline
