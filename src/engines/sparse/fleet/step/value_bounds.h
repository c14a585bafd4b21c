// SPDX-License-Identifier: Apache-2.0
//
// Bounds of the numbers that members give each other in a step (docs/protocols/sparse-step.md, "Values"). One
// NaN would be in every weight two steps later. So each member looks at what it gives and at what it gets.
// What a member computes beyond the bound is a network that has diverged. It says so, and gives nothing. So
// what comes beyond the bound is its sender's fault.
//
// Cost: one pass over the numbers, two operations each. Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "host/api/compute.h"
#include "learn/sparse/network/batch_state.h"
#include "learn/sparse/network/network_pieces.h"

namespace gossamer::sparse_engine {

// The largest numbers that a member gives. What a member computes of numbers at a bound is larger than these.
// It would take itself for diverged because of another member. So the bounds rise in the order of computing.
// Forward these are weights, h of one layer after the other, scores. Then come dh of one layer after the
// other, and first moments.
inline constexpr float kMostWeight = 0x1p20F;
// A network has so many hidden layers at most: model.hidden and up to 8 of model.dense.
inline constexpr std::size_t kMostLayers = 9;
// h of a hidden layer, counted from the one that the embedding gives.
[[nodiscard]] float most_hidden(std::size_t layer);
// What one member adds to dh of the layer, of so many hidden layers.
[[nodiscard]] float most_gradient(std::size_t layer, std::size_t layers);
// A score, and the shift of a loss share.
inline constexpr float kMostScore = 0x1p104F;
// A first moment is at most the largest gradient, a sum of products of h and dh. The square of a gradient may
// be infinite: then its weight stays as it is.
inline constexpr float kMostMoment = 0x1p120F;

// The largest that a member takes, where a member gives `most`. Codecs round, and a sum that is formed anew
// ends in other bits.
[[nodiscard]] constexpr float taken(float most) { return 2 * most; }

// Whether each number is one, from -most to most.
[[nodiscard]] bool within(std::span<const float> values, float most);
// The same for some columns of a matrix, whose rows are `stride` numbers apart.
[[nodiscard]] bool within(std::span<const float> matrix, std::size_t stride, host::Range columns, float most);
// Whether each is a loss share: a shift from -most to most, and a sum of exponentials from 0 to kMostSum.
// Where the sum is 0 the shift says nothing.
[[nodiscard]] bool within(std::span<const sparse::PartitionShare> shares, float most);
// An exponential is at most e^60, so 2^26 rows have no more. The sums of 2^14 members together are finite.
inline constexpr float kMostSum = 0x1p113F;

// The same for partition sums: loss shares of several members, added up.
[[nodiscard]] bool are_sums(std::span<const sparse::PartitionShare> sums);

// A member gave what is beyond `most`. `what`: "a gradient".
[[nodiscard]] Error beyond_bounds(std::string_view what, float most);
// This member would have to give it: the network has diverged.
[[nodiscard]] Error diverged(std::string_view what, float most);
// The same for a row of a copy.
[[nodiscard]] Error beyond_bounds(sparse::RowFault fault);
[[nodiscard]] Error diverged(sparse::RowFault fault);
// Looks at rows of a copy of a piece. A member gives them, or takes them. Their updates are of steps below
// `step`.
enum class RowsAre { kGiven, kTaken };
[[nodiscard]] sparse::PieceRowCheck row_check(const FleetJob& job, const sparse::NetworkPiece& piece,
                                              RowsAre rows, StepNumber step);

}  // namespace gossamer::sparse_engine
