// SPDX-License-Identifier: Apache-2.0
//
// OrderedSum: the sum of one vector from each rank, chunk by chunk. The order is always ((x0 + x1) + x2)
// + ..., in whatever order the chunks come. Each rank's own chunks come in order. A chunk that must wait for
// a lower rank is kept by reference. The caller bounds the waiting bytes, as it decides how far others may
// send (docs/protocols/collective.md, "Memory").
//
// A sum is formed here as its terms come (kAtOnce), or by the caller elsewhere when all are here (kAside).
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

enum class SumsFormed : std::uint8_t { kAtOnce, kAside };

class OrderedSum {
 public:
  // A chunk that all ranks have given; both are empty where there is none.
  struct Chunk {
    Slices sum = {};                 // kAtOnce: numbers in one piece of memory, aligned
    std::vector<Slices> terms = {};  // kAside: by rank, as they travel
  };

  // `own`: the whole vector of rank `me` as it travels, of shape.bytes bytes. Requires ranks > 1, and chunks
  // of whole numbers.
  OrderedSum(SumNumbers numbers, std::size_t ranks, std::size_t me, Slices own, StreamShape shape,
             SumsFormed formed = SumsFormed::kAtOnce);

  // Takes the next chunk of a rank other than `me`. Requires the right size. Returns the chunk that it
  // completes, or nothing.
  [[nodiscard]] Chunk add(std::size_t rank, Slices chunk);
  // kAside: the sum of the first chunk that was returned is formed, of those of which this was not said yet.
  void worked();

  [[nodiscard]] std::uint64_t finished() const { return finished_; }  // chunks whose sum is formed
  [[nodiscard]] std::uint64_t waiting_bytes() const { return waiting_bytes_; }

 private:
  struct Open {
    std::size_t added = 0;        // so many of the lowest ranks are in the sum
    std::vector<Slices> waiting;  // by rank
    std::vector<bool> here;       // by rank: in the sum, or waiting
    std::shared_ptr<NumberSum> sum;
  };

  Open& chunk_at(std::uint64_t number);
  void advance(Open& chunk, std::uint64_t bytes);

  const SumNumbers numbers_;
  const std::size_t ranks_;
  const std::size_t me_;
  const StreamShape shape_;
  const SumsFormed formed_;
  SliceReader own_;
  std::vector<std::uint64_t> arrived_;  // by rank: chunks
  std::deque<Open> chunks_;             // those that not all ranks have given yet
  std::uint64_t given_ = 0;             // chunks that all ranks have given
  std::uint64_t finished_ = 0;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace gossamer::cluster
