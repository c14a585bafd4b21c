// SPDX-License-Identifier: Apache-2.0
//
// The scores of output rows on their way between members, if the job has members give each other all outputs
// (docs/protocols/sparse-step.md, "The exchange of D-SLIDE"). For each sample there are a u32 number of
// scored rows, as many u32 row numbers, and as many f32 scores. After the last sample there are zeros.
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "learn/sparse/network/batch_state.h"
#include "learn/sparse/network/network_shape.h"
#include "learn/sparse/row_scores.h"

namespace gossamer::sparse_engine {

// Bytes for so many scores of a step's samples.
[[nodiscard]] std::uint64_t output_bytes(const FleetJob& job, std::uint64_t scores);
// The most scores that the holder of `part` has in a step: all samples score all of its rows.
[[nodiscard]] std::uint64_t most_scores(const FleetJob& job, const sparse::NetworkPart& part);

// Reads how many scores a member says it will give, 8 bytes. kBadData for more than it can have.
[[nodiscard]] Result<std::uint64_t> read_score_count(const FleetJob& job, const Slices& bytes,
                                                     const sparse::NetworkPart& part);

// Writes output_bytes(job, most) bytes. Requires scores of so many samples, and not more than `most` of them.
[[nodiscard]] Slices write_outputs(const FleetJob& job, std::span<const sparse::RowScores> by_worker,
                                   std::size_t samples, std::uint64_t most);
// Adds the scores of the rows of `part` to the partition sums, [learner.batch_max]. kBadData for more scores
// than there is room for, or for rows that are not in the part.
[[nodiscard]] Result<void> add_outputs(const FleetJob& job, const Slices& bytes,
                                       const sparse::NetworkPart& part,
                                       std::span<sparse::PartitionShare> sums);

}  // namespace gossamer::sparse_engine
