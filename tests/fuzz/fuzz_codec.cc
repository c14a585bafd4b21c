// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as any matrix in any codec. They are decoded if and only if they are as many as codec and shape
// ask for. Decoding writes within the matrix alone, and the kernels of every instruction set give the same
// numbers. A decoded matrix can be encoded in every codec, to the same bytes everywhere. A matrix without
// infinities and NaN comes back without NaN. The same bytes as a matrix of f64 come back as they are.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "net/codec/codec.h"

namespace {

using namespace gossamer;
using net::Codec;
using net::MatrixCodec;
using net::MatrixShape;

constexpr float kUntouched = 1234.5F;

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) { return same(x, y); });
}

struct Shape {
  MatrixShape matrix;
  std::size_t stride;

  [[nodiscard]] std::size_t floats() const { return matrix.rows * stride; }
};

// Decodes with one set of kernels; empty if it was refused.
std::vector<float> decode(const MatrixCodec& codec, std::span<const std::byte> bytes, const Shape& shape) {
  std::vector<float> numbers(shape.floats(), kUntouched);
  std::vector<float> sum(shape.floats(), 0);
  const net::MutableMatrixView view{.data = numbers.data(), .shape = shape.matrix, .stride = shape.stride};
  const bool ok = codec.decode(bytes, view).ok();
  CHECK(ok == (bytes.size() == net::encoded_bytes(codec.codec(), shape.matrix)), bytes.size());
  CHECK(ok ==
        codec.decode_add(bytes, {.data = sum.data(), .shape = shape.matrix, .stride = shape.stride}).ok());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool written = ok && i % shape.stride < shape.matrix.columns;
    CHECK(written || (numbers[i] == kUntouched && sum[i] == 0), i);
    CHECK(!written || same(sum[i], 0.0F + numbers[i]), i);
  }
  return ok ? numbers : std::vector<float>();
}

std::vector<std::byte> encode(const MatrixCodec& codec, const std::vector<float>& numbers,
                              const Shape& shape) {
  std::vector<std::byte> bytes(net::encoded_bytes(codec.codec(), shape.matrix));
  codec.encode({.data = numbers.data(), .shape = shape.matrix, .stride = shape.stride}, bytes);
  return bytes;
}

void look(Codec which, std::span<const std::byte> bytes, const Shape& shape) {
  const kernels::Kernels& scalar = kernels::kernels_for(kernels::Isa::kScalar);
  const std::vector<float> numbers = decode({which, scalar}, bytes, shape);
  const bool finite = std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::supported(isa)) continue;
    const kernels::Kernels& vector = kernels::kernels_for(isa);
    CHECK(same(decode({which, vector}, bytes, shape), numbers), kernels::name(isa));
    if (numbers.empty()) continue;
    for (const Codec other : {Codec::kF32, Codec::kBf16, Codec::kInt8}) {
      const std::vector<std::byte> encoded = encode({other, vector}, numbers, shape);
      CHECK(encoded == encode({other, scalar}, numbers, shape), kernels::name(isa), net::name(other));
      const std::vector<float> back = decode({other, vector}, encoded, shape);
      if (finite) CHECK(std::none_of(back.begin(), back.end(), [](float x) { return std::isnan(x); }));
      if (other == Codec::kF32) CHECK(same(back, numbers));
    }
  }
}

// Every bit comes back, and nothing is written between the rows.
void look_at_f64(std::span<const std::byte> bytes, const Shape& shape) {
  const MatrixCodec codec(Codec::kF64, kernels::kernels_for(kernels::Isa::kScalar));
  std::vector<double> numbers(shape.floats(), kUntouched);
  const bool ok = codec
                      .decode(bytes,
                              net::MutableF64MatrixView{
                                  .data = numbers.data(), .shape = shape.matrix, .stride = shape.stride})
                      .ok();
  CHECK(ok == (bytes.size() == net::encoded_bytes(Codec::kF64, shape.matrix)), bytes.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool written = ok && i % shape.stride < shape.matrix.columns;
    CHECK(written || numbers[i] == double{kUntouched}, i);
  }
  if (!ok) return;
  std::vector<std::byte> back(bytes.size());
  codec.encode(net::F64MatrixView{.data = numbers.data(), .shape = shape.matrix, .stride = shape.stride},
               back);
  CHECK(std::ranges::equal(back, bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices choices(data, size);
  const auto which = static_cast<Codec>(choices.below(3));
  const MatrixShape matrix{.rows = choices.below(4), .columns = choices.below(3 * net::kCodecBlock)};
  const Shape shape{.matrix = matrix, .stride = matrix.columns + choices.below(3)};
  const bool right_size = choices.below(8) != 0;
  std::string text = choices.rest();
  // Few inputs have the right size by themselves.
  if (right_size) text.resize(net::encoded_bytes(which, matrix), '\x7f');
  look(which, std::as_bytes(std::span(text)), shape);
  if (right_size) text.resize(net::encoded_bytes(Codec::kF64, matrix), '\x7f');
  look_at_f64(std::as_bytes(std::span(text)), shape);
  return 0;
}
