// SPDX-License-Identifier: Apache-2.0
//
// What the members of a view do together, and how it is cut (docs/protocols/collective.md). All members begin
// an operation with the same Operation and the same limits. In an all-to-all their parts must agree pair by
// pair. Thread rule: plain values and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "cluster/collective/sum_numbers.h"

namespace gossamer::cluster {

// The number of an operation within its view. The caller chooses it, for example from step and phase.
using OperationId = StrongId<struct OperationIdTag>;

enum class OperationKind : std::uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll };

struct Operation {
  OperationKind kind = OperationKind::kAllGather;
  // By rank; may be unequal, and 0:
  // - all-gather: bytes of that rank's part
  // - sums: numbers
  // - all-to-all: bytes from us for that rank
  std::vector<std::uint64_t> parts;
  // All-to-all alone, by rank: bytes for us from that rank. Our own entry equals the one in `parts`.
  std::vector<std::uint64_t> from = {};
  SumNumbers numbers = SumNumbers::kF32;  // of sums
};

// Cuts `total` numbers into parts for `ranks` members, in pieces of `multiple`; the last piece may be
// smaller. Parts differ by one piece at most, a small one counted as whole. Requires ranks > 0 and multiple >
// 0.
[[nodiscard]] std::vector<std::uint64_t> equal_parts(std::uint64_t total, std::size_t ranks,
                                                     std::uint64_t multiple = 1);

// The protocol's numbers. Only tests use others, as they must be the same everywhere.
struct CollectiveLimits {
  std::uint64_t chunk_bytes = 1ULL << 20;         // at most, a multiple of the next
  std::uint64_t least_chunk_bytes = 16ULL << 10;  // chunks are a multiple of it; a multiple of 8
  std::uint64_t waiting_bytes = 64ULL << 20;      // for one sum under way, of all members together
  std::uint64_t most_window = 4;                  // chunks, for each member
  std::uint64_t direct_extra_bytes = 1ULL << 20;  // a direct all-reduce may send so much more than two rounds
  // Kept of each peer until operations begin: four windows, with what each message counts. An engine has two
  // groups of operations at most, and no peer may cost a member more than 50 MB.
  std::uint64_t early_bytes = 17ULL << 20;
  // The same of all peers together: four windows of all, and one more for small operations.
  std::uint64_t all_early_bytes = 320ULL << 20;
};

// The size of a chunk among so many members, and how many chunks of a stream may be sent before a GRANT.
// Require ranks > 1.
[[nodiscard]] std::uint64_t chunk_size(const CollectiveLimits& limits, std::size_t ranks);
[[nodiscard]] std::uint64_t window_chunks(const CollectiveLimits& limits, std::size_t ranks);

// A GRANT goes out each time when a sum is so many chunks further.
[[nodiscard]] inline std::uint64_t grant_step(std::uint64_t window) { return window / 2; }

// Whether an all-reduce of so many bytes, as they travel, is done in one round.
[[nodiscard]] bool goes_direct(const CollectiveLimits& limits, std::uint64_t bytes, std::size_t ranks);

// A run of bytes from one member to another, in chunks.
struct StreamShape {
  std::uint64_t bytes = 0;
  std::uint64_t chunk_bytes = 1;

  [[nodiscard]] std::uint64_t chunks() const { return (bytes + chunk_bytes - 1) / chunk_bytes; }
  // Requires number < chunks().
  [[nodiscard]] std::uint64_t size_of(std::uint64_t number) const {
    return number + 1 < chunks() ? chunk_bytes : bytes - number * chunk_bytes;
  }
};

}  // namespace gossamer::cluster
