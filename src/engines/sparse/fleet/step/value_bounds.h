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

#include "base/result.h"
#include "host/api/compute.h"
#include "learn/sparse/network/batch_state.h"

namespace gossamer::sparse_engine {

// The largest number of any kind that a member gives. Its square is finite, as are 64 of them together: Adam
// squares gradients.
inline constexpr float kMostGiven = 0x1p60F;
// What a member computes of numbers at the bound is larger than these. It would take itself for diverged. So
// what others compute with has bounds of its own, far below, which rise in the order of computing.
inline constexpr float kMostWeight = 0x1p20F;
// h of a hidden layer, counted from the one that the embedding gives.
[[nodiscard]] float most_hidden(std::size_t layer);
// What one member adds to dh of the layer, of so many hidden layers.
[[nodiscard]] float most_gradient(std::size_t layer, std::size_t layers);

// The largest that a member takes, where a member gives `most`. Codecs round, and a sum that is formed anew
// ends in other bits.
[[nodiscard]] constexpr float taken(float most) { return 2 * most; }
inline constexpr float kMostTaken = taken(kMostGiven);

// Whether each number is one, from -most to most.
[[nodiscard]] bool within(std::span<const float> values, float most);
// The same for some columns of a matrix, whose rows are `stride` numbers apart.
[[nodiscard]] bool within(std::span<const float> matrix, std::size_t stride, host::Range columns, float most);
// Whether each is a loss share: a shift within the bound, and a sum of exponentials from 0 to kMostSum. Where
// the sum is 0 the shift says nothing.
[[nodiscard]] bool within(std::span<const sparse::PartitionShare> shares, float most);
// An exponential is at most e^60, so 2^26 rows have no more. The sums of 2^14 members together are finite.
inline constexpr float kMostSum = 0x1p113F;

// The same for partition sums: loss shares of several members, added up.
[[nodiscard]] bool are_sums(std::span<const sparse::PartitionShare> sums);

// A member gave what is beyond `most`. `what`: "a gradient".
[[nodiscard]] Error beyond_bounds(std::string_view what, float most);
// This member would have to give it: the network has diverged.
[[nodiscard]] Error diverged(std::string_view what, float most);

}  // namespace gossamer::sparse_engine
