// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/ordered_sum.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"

namespace gossamer::cluster {
namespace {

// Adds whole elements. The compiler makes vector instructions of the loop, and memory is the limit.
void add_whole(const std::byte* x, std::span<float> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    float value = 0;
    std::memcpy(&value, x + i * sizeof(float), sizeof(float));  // frames align nothing
    sum[i] += value;
  }
}

}  // namespace

void add_floats(const Slices& x, std::span<float> sum) {
  std::array<std::byte, sizeof(float)> torn{};
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
    const std::size_t whole = bytes.size() / sizeof(float);
    CHECK(whole <= sum.size(), whole, sum.size());
    add_whole(bytes.data(), sum.first(whole));
    sum = sum.subspan(whole);
    for (const std::byte rest : bytes.subspan(whole * sizeof(float))) torn[torn_bytes++] = rest;
  }
  CHECK(sum.empty() && torn_bytes == 0, sum.size(), torn_bytes);
}

OrderedSum::OrderedSum(std::size_t ranks, std::size_t me, Slices own, StreamShape shape)
    : ranks_(ranks), me_(me), shape_(shape), own_(std::move(own)), arrived_(ranks, 0) {
  CHECK(ranks > 1 && me < ranks, ranks, me);
  CHECK(own_.left() == shape.bytes, own_.left(), shape.bytes);
  CHECK(shape.chunk_bytes % sizeof(float) == 0 && shape.bytes % sizeof(float) == 0, shape.chunk_bytes,
        shape.bytes);
}

OrderedSum::Chunk& OrderedSum::chunk_at(std::uint64_t number) {
  while (finished_ + chunks_.size() <= number) {
    const std::uint64_t bytes = shape_.size_of(finished_ + chunks_.size());
    Chunk& chunk = chunks_.emplace_back();
    chunk.waiting.resize(ranks_);
    chunk.here.resize(ranks_);
    chunk.waiting[me_] = own_.take(bytes);
    chunk.here[me_] = true;
  }
  return chunks_[number - finished_];
}

void OrderedSum::advance(Chunk& chunk, std::uint64_t bytes) {
  for (; chunk.added < ranks_ && chunk.here[chunk.added]; ++chunk.added) {
    const Slices from = std::exchange(chunk.waiting[chunk.added], {});
    if (chunk.added != me_) waiting_bytes_ -= bytes;
    if (chunk.added == 0) {
      chunk.sum = std::make_shared<AlignedArray<float>>(bytes / sizeof(float));
      copy_front(from, std::as_writable_bytes(chunk.sum->span()));
    } else {
      add_floats(from, chunk.sum->span());
    }
  }
}

Slices OrderedSum::add(std::size_t rank, Slices chunk_bytes) {
  CHECK(rank < ranks_ && rank != me_, rank, me_);
  const std::uint64_t number = arrived_[rank]++;
  const std::uint64_t bytes = shape_.size_of(number);
  CHECK(total_bytes(chunk_bytes) == bytes, total_bytes(chunk_bytes), bytes);
  Chunk& chunk = chunk_at(number);
  chunk.waiting[rank] = std::move(chunk_bytes);
  chunk.here[rank] = true;
  waiting_bytes_ += bytes;
  advance(chunk, bytes);
  if (chunk.added < ranks_) return {};
  // No rank can have given a later chunk completely before all gave this one.
  CHECK(number == finished_, number, finished_);
  const auto sum = std::move(chunk.sum);
  chunks_.pop_front();
  ++finished_;
  return {Slice(sum, std::as_bytes(sum->span()))};
}

}  // namespace gossamer::cluster
