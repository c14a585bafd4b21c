// SPDX-License-Identifier: Apache-2.0
//
// What output rows have scored on its way between members, where the job has them give each other all outputs
// (docs/protocols/sparse-step.md, "The exchange of D-SLIDE"): for each sample u32 how many rows it has
// scored, as many u32 row numbers, as many f32 scores; zeros after the last.
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "learn/sparse/batch_state.h"
#include "learn/sparse/network_shape.h"
#include "learn/sparse/row_scores.h"

namespace gossamer::engine {

// Of so many scores of a step's samples.
[[nodiscard]] std::uint64_t output_bytes(const FleetJob& job, std::uint64_t scores);
// Scores that whoever holds the part has in a step at most: all samples score all of its rows.
[[nodiscard]] std::uint64_t most_scores(const FleetJob& job, const sparse::NetworkPart& part);

// What a member says of how many scores it will give, 8 bytes. kBadData for more than it can have.
[[nodiscard]] Result<std::uint64_t> read_score_count(const FleetJob& job, const Slices& bytes,
                                                     const sparse::NetworkPart& part);

// output_bytes(job, most) of them. Requires scores of so many samples, and no more of them than `most`.
[[nodiscard]] Slices write_outputs(const FleetJob& job, std::span<const sparse::RowScores> by_worker,
                                   std::size_t samples, std::uint64_t most);
// Adds to the partition sums, [learner.batch_max], what the rows of whoever holds the part have scored.
// kBadData for more scores than there is room for, or rows that are not in the part.
[[nodiscard]] Result<void> add_outputs(const FleetJob& job, const Slices& bytes,
                                       const sparse::NetworkPart& part,
                                       std::span<sparse::PartitionShare> sums);

}  // namespace gossamer::engine
