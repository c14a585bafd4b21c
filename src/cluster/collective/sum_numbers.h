// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a sum: what they are in memory, and how they travel (docs/protocols/collective.md, "Sums").
// bf16 rounds each contribution, the giver's own too, and in two rounds the sum once more. Sums are formed in
// f32, or in f64.
//
// Thread rule: plain values and functions. A SumWork belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "base/slice.h"
#include "net/codec/codec.h"

namespace gossamer::cluster {

enum class SumNumbers : std::uint8_t {
  kF32,   // as they are
  kBf16,  // f32 in memory, two bytes on the way
  kF64,   // as they are
};

// The codec in which they travel.
[[nodiscard]] constexpr net::Codec codec_of(SumNumbers numbers) {
  switch (numbers) {
    case SumNumbers::kF32: return net::Codec::kF32;
    case SumNumbers::kBf16: return net::Codec::kBf16;
    case SumNumbers::kF64: break;
  }
  return net::Codec::kF64;
}
// Bytes of one number in memory, and on the way.
[[nodiscard]] constexpr std::size_t number_bytes(SumNumbers numbers) {
  return net::memory_bytes(codec_of(numbers));
}
[[nodiscard]] constexpr std::size_t travel_bytes(SumNumbers numbers) {
  return net::column_bytes(codec_of(numbers));
}
[[nodiscard]] constexpr bool is_rounded(SumNumbers numbers) { return numbers == SumNumbers::kBf16; }

// Numbers as they travel, and back. Without rounding these are the same slices. Require whole numbers.
[[nodiscard]] Slices as_sent(SumNumbers numbers, Slices in_memory);
[[nodiscard]] Slices as_received(SumNumbers numbers, Slices sent);

// The sum of some numbers, one contribution after the other.
class NumberSum {
 public:
  NumberSum(SumNumbers numbers, std::size_t count);

  // The first contribution, and each further one, as they travel: sum[i] = x[i], sum[i] += x[i]. Slices may
  // be cut within a number. Require `count` numbers.
  void begin(const Slices& sent);
  void add(const Slices& sent);

  // In memory, aligned for the numbers.
  [[nodiscard]] std::span<const std::byte> bytes() const { return sum_.span(); }

 private:
  SumNumbers numbers_;
  std::size_t count_;
  AlignedArray<std::byte> sum_;
};

// What is done with numbers of an exchange, on whatever thread: it adds terms, or reads numbers as they
// travel.
struct SumWork {
  SumNumbers numbers = SumNumbers::kF32;
  std::vector<Slices> terms = {};  // by rank, as they travel; one alone is read
  bool goes_on = false;            // the sum goes to others; what they get is rounded, so it is here, too
  // After run():
  Slices sum = {};   // in memory, in one piece, aligned
  Slices sent = {};  // as it travels, where it goes on

  // Once.
  void run();
  // The part of it behind the sum: what goes on is rounded.
  void round();
};

}  // namespace gossamer::cluster
