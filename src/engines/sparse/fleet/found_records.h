// SPDX-License-Identifier: Apache-2.0
//
// What samples find by hash tables (learn/sparse/found_rows.h) on its way between members
// (docs/protocols/sparse-step.md, "The active set"): for each asking sample u32 how many rows, then as many
// u32 row numbers as it may find at most, zeros after the last.
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "learn/sparse/found_rows.h"
#include "learn/sparse/hash_negatives.h"
#include "learn/sparse/network_shape.h"

namespace gossamer::engine {

// Rows that a sample finds at most on whoever holds the part: its share of what the run wants, at least one
// where it holds any. 0 without hash tables.
[[nodiscard]] std::size_t found_limit(const FleetJob& job, const sparse::NetworkPart& part);
// On all members together, whatever the layout is.
[[nodiscard]] std::size_t most_found(const FleetJob& job);
// Of hash tables over the part. Requires a job with some, and that the part has rows.
[[nodiscard]] sparse::HashNegativeOptions hash_options(const FleetJob& job, const sparse::NetworkPart& part);

// Nothing, of all samples that ask.
[[nodiscard]] sparse::FoundRows nothing_found(const FleetJob& job);
// 0 where the limit is.
[[nodiscard]] std::uint64_t found_bytes(const FleetJob& job, std::size_t limit);
// Requires that no sample has found more.
[[nodiscard]] Slices write_found(const sparse::FoundRows& found, std::size_t limit);
// Adds what another member has found to `found`, which has room for it. Requires found_bytes() of them.
// kBadData for more rows than the limit, or rows that are none.
[[nodiscard]] Result<void> add_found(const FleetJob& job, const Slices& bytes, std::size_t limit,
                                     sparse::FoundRows& found);

}  // namespace gossamer::engine
