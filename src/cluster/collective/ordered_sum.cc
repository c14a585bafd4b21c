// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/ordered_sum.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"

namespace gossamer::cluster {

OrderedSum::OrderedSum(SumNumbers numbers, std::size_t ranks, std::size_t me, Slices own, StreamShape shape,
                       SumsFormed formed)
    : numbers_(numbers),
      ranks_(ranks),
      me_(me),
      shape_(shape),
      formed_(formed),
      own_(std::move(own)),
      arrived_(ranks, 0) {
  CHECK(ranks > 1 && me < ranks, ranks, me);
  CHECK(own_.left() == shape.bytes, own_.left(), shape.bytes);
  const std::size_t unit = travel_bytes(numbers);
  CHECK(shape.chunk_bytes % unit == 0 && shape.bytes % unit == 0, shape.chunk_bytes, shape.bytes);
}

OrderedSum::Open& OrderedSum::chunk_at(std::uint64_t number) {
  while (given_ + chunks_.size() <= number) {
    const std::uint64_t bytes = shape_.size_of(given_ + chunks_.size());
    Open& chunk = chunks_.emplace_back();
    chunk.waiting.resize(ranks_);
    chunk.here.resize(ranks_);
    chunk.waiting[me_] = own_.take(bytes);
    chunk.here[me_] = true;
  }
  return chunks_[number - given_];
}

void OrderedSum::advance(Open& chunk, std::uint64_t bytes) {
  for (; chunk.added < ranks_ && chunk.here[chunk.added]; ++chunk.added) {
    const Slices from = std::exchange(chunk.waiting[chunk.added], {});
    if (chunk.added != me_) waiting_bytes_ -= bytes;
    if (chunk.added == 0) {
      chunk.sum = std::make_shared<NumberSum>(numbers_, bytes / travel_bytes(numbers_));
      chunk.sum->begin(from);
    } else {
      chunk.sum->add(from);
    }
  }
}

OrderedSum::Chunk OrderedSum::add(std::size_t rank, Slices chunk_bytes) {
  CHECK(rank < ranks_ && rank != me_, rank, me_);
  const std::uint64_t number = arrived_[rank]++;
  const std::uint64_t bytes = shape_.size_of(number);
  CHECK(total_bytes(chunk_bytes) == bytes, total_bytes(chunk_bytes), bytes);
  Open& chunk = chunk_at(number);
  chunk.waiting[rank] = std::move(chunk_bytes);
  chunk.here[rank] = true;
  waiting_bytes_ += bytes;
  if (formed_ == SumsFormed::kAtOnce) advance(chunk, bytes);
  if (!std::ranges::all_of(chunk.here, std::identity{})) return {};
  // No rank can have given a later chunk completely before all gave this one.
  CHECK(number == given_, number, given_);
  const Open given = std::move(chunk);
  chunks_.pop_front();
  ++given_;
  if (formed_ == SumsFormed::kAside) return {.terms = given.waiting};
  ++finished_;
  return {.sum = {Slice(given.sum, given.sum->bytes())}};
}

void OrderedSum::worked() {
  CHECK(formed_ == SumsFormed::kAside && finished_ < given_, finished_, given_);
  waiting_bytes_ -= (ranks_ - 1) * shape_.size_of(finished_);
  ++finished_;
}

}  // namespace gossamer::cluster
