// SPDX-License-Identifier: Apache-2.0
//
// OrderedSum: the sum of one vector from each rank, chunk by chunk. The order is always ((x0 + x1) + x2)
// + ..., in whatever order the chunks come. Each rank's own chunks come in order. A chunk that must wait for
// a lower rank is kept by reference. The caller bounds the waiting bytes, as it decides how far others may
// send (docs/protocols/collective.md, "Memory").
//
// Cost: one pass over each chunk. Thread rule: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/slice.h"
#include "cluster/collective/operation.h"
#include "cluster/collective/sum_numbers.h"

namespace gossamer::cluster {

class OrderedSum {
 public:
  // `own`: the whole vector of rank `me` as it travels, of shape.bytes bytes. Requires ranks > 1, and chunks
  // of whole numbers.
  OrderedSum(SumNumbers numbers, std::size_t ranks, std::size_t me, Slices own, StreamShape shape);

  // Takes the next chunk of a rank other than `me`. Requires the right size. Returns the chunk of the sum
  // that it completes, or nothing: numbers in one piece of memory, aligned.
  [[nodiscard]] Slices add(std::size_t rank, Slices chunk);

  [[nodiscard]] std::uint64_t finished() const { return finished_; }  // chunks
  [[nodiscard]] std::uint64_t waiting_bytes() const { return waiting_bytes_; }

 private:
  struct Chunk {
    std::size_t added = 0;        // so many of the lowest ranks are in the sum
    std::vector<Slices> waiting;  // by rank
    std::vector<bool> here;       // by rank: in the sum, or waiting
    std::shared_ptr<NumberSum> sum;
  };

  Chunk& chunk_at(std::uint64_t number);
  void advance(Chunk& chunk, std::uint64_t bytes);

  const SumNumbers numbers_;
  const std::size_t ranks_;
  const std::size_t me_;
  const StreamShape shape_;
  SliceReader own_;
  std::vector<std::uint64_t> arrived_;  // by rank: chunks
  std::deque<Chunk> chunks_;            // from finished_ on
  std::uint64_t finished_ = 0;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace gossamer::cluster
