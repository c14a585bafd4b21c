// SPDX-License-Identifier: Apache-2.0
//
// The rows that samples find by hash tables (learn/sparse/negatives/found_rows.h), on their way between
// members (docs/protocols/sparse-step.md, "The active set"). For each asking sample there are a u32 count and
// as many u32 row numbers as the sample may find at most. After the last row the numbers are zeros.
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "learn/sparse/negatives/found_rows.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse_engine {

// The most rows that a sample finds on the holder of `part`: its fraction of the rows that the run wants,
// rounded up. 0 without hash tables.
[[nodiscard]] std::size_t found_limit(const FleetJob& job, const sparse::NetworkPart& part);
// The most rows that a sample finds on all members together, in any layout.
[[nodiscard]] std::size_t most_found(const FleetJob& job);
// Options of hash tables over the part. Requires a job with hash tables, and a part with rows.
[[nodiscard]] sparse::HashNegativeOptions hash_options(const FleetJob& job, const sparse::NetworkPart& part);

// The rows of samples that all ask and find nothing.
[[nodiscard]] sparse::FoundRows nothing_found(const FleetJob& job);
// Bytes of write_found(). 0 if the limit is 0.
[[nodiscard]] std::uint64_t found_bytes(const FleetJob& job, std::size_t limit);
// Requires that no sample has found more than `limit` rows.
[[nodiscard]] Slices write_found(const sparse::FoundRows& found, std::size_t limit);
// The member that has found rows: the most that it finds for a sample, and those that it holds.
struct RowFinder {
  std::size_t limit;
  const sparse::HeldRows& held;
};
// Adds the rows that another member has found to `found`, which has room for them. Requires found_bytes()
// bytes. kBadData for more rows than the limit, or for numbers that are no rows of that member.
[[nodiscard]] Result<void> add_found(const FleetJob& job, const Slices& bytes, const RowFinder& by,
                                     sparse::FoundRows& found);

}  // namespace gossamer::sparse_engine
