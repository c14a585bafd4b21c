// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/sum_numbers.h"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "net/codec/codec.h"

namespace gossamer::cluster {
namespace {

const net::MatrixCodec& bf16() {
  static const net::MatrixCodec codec(net::Codec::kBf16, kernels::kernels_for(kernels::best_isa()));
  return codec;
}

// Adds whole numbers. The compiler makes vector instructions of the loop, and memory is the limit.
template <class T>
void add_whole(const std::byte* x, std::span<T> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    T value = 0;
    std::memcpy(&value, x + i * sizeof(T), sizeof(T));  // frames align nothing
    sum[i] += value;
  }
}

template <class T>
void add_numbers(const Slices& x, std::span<T> sum) {
  std::array<std::byte, sizeof(T)> torn{};
  std::size_t torn_bytes = 0;
  for (const Slice& slice : x) {
    std::span<const std::byte> bytes = slice.bytes();
    while (torn_bytes > 0 && !bytes.empty()) {
      torn[torn_bytes++] = bytes.front();
      bytes = bytes.subspan(1);
      if (torn_bytes < torn.size()) continue;
      add_whole(torn.data(), sum.first(1));
      sum = sum.subspan(1);
      torn_bytes = 0;
    }
    const std::size_t whole = bytes.size() / sizeof(T);
    CHECK(whole <= sum.size(), whole, sum.size());
    add_whole(bytes.data(), sum.first(whole));
    sum = sum.subspan(whole);
    for (const std::byte rest : bytes.subspan(whole * sizeof(T))) torn[torn_bytes++] = rest;
  }
  CHECK(sum.empty() && torn_bytes == 0, sum.size(), torn_bytes);
}

// Calls `use` with all bytes in one piece of memory.
template <class Use>
void in_one_piece(const Slices& slices, Use&& use) {
  if (slices.size() == 1) return use(slices.front().bytes());
  std::vector<std::byte> bytes(total_bytes(slices));
  copy_front(slices, bytes);
  use(std::span<const std::byte>(bytes));
}

template <class T>
std::span<T> numbers_in(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

net::MutableMatrixView row_of(std::span<float> numbers) {
  return {.data = numbers.data(), .shape = {.rows = 1, .columns = numbers.size()}, .stride = numbers.size()};
}

}  // namespace

Slices as_sent(SumNumbers numbers, Slices in_memory) {
  if (numbers != SumNumbers::kBf16 || in_memory.empty()) return in_memory;
  const std::size_t count = total_bytes(in_memory) / sizeof(float);
  // The slices need not be aligned.
  AlignedArray<float> aligned(count);
  copy_front(in_memory, std::as_writable_bytes(aligned.span()));
  std::vector<std::byte> sent(count * travel_bytes(numbers));
  bf16().encode({.data = aligned.data(), .shape = {.rows = 1, .columns = count}, .stride = count}, sent);
  return {Slice::of(std::move(sent))};
}

Slices as_received(SumNumbers numbers, Slices sent) {
  if (numbers != SumNumbers::kBf16 || sent.empty()) return sent;
  const auto sum = std::make_shared<NumberSum>(numbers, total_bytes(sent) / travel_bytes(numbers));
  sum->begin(sent);
  return {Slice(sum, sum->bytes())};
}

NumberSum::NumberSum(SumNumbers numbers, std::size_t count)
    : numbers_(numbers), count_(count), sum_(count * number_bytes(numbers)) {}

void NumberSum::begin(const Slices& sent) {
  CHECK(total_bytes(sent) == count_ * travel_bytes(numbers_), total_bytes(sent), count_);
  if (numbers_ != SumNumbers::kBf16) return copy_front(sent, sum_.span());
  in_one_piece(sent, [&](std::span<const std::byte> bytes) {
    CHECK(bf16().decode(bytes, row_of(numbers_in<float>(sum_.span()))).ok());
  });
}

void NumberSum::add(const Slices& sent) {
  CHECK(total_bytes(sent) == count_ * travel_bytes(numbers_), total_bytes(sent), count_);
  switch (numbers_) {
    case SumNumbers::kF32: return add_numbers(sent, numbers_in<float>(sum_.span()));
    case SumNumbers::kF64: return add_numbers(sent, numbers_in<double>(sum_.span()));
    case SumNumbers::kBf16: break;
  }
  in_one_piece(sent, [&](std::span<const std::byte> bytes) {
    CHECK(bf16().decode_add(bytes, row_of(numbers_in<float>(sum_.span()))).ok());
  });
}

void SumWork::run() {
  const std::size_t count = total_bytes(terms.front()) / travel_bytes(numbers);
  const auto added = std::make_shared<NumberSum>(numbers, count);
  added->begin(terms.front());
  for (std::size_t rank = 1; rank < terms.size(); ++rank) added->add(terms[rank]);
  terms.clear();
  sum = {Slice(added, added->bytes())};
  round();
}

void SumWork::round() {
  if (!goes_on) return;
  sent = as_sent(numbers, sum);
  sum = as_received(numbers, sent);
}

}  // namespace gossamer::cluster
