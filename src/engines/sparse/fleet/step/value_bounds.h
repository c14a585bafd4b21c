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

// The largest number that a member gives. Its square is finite, as are 64 of them together: Adam squares
// gradients.
inline constexpr float kMostGiven = 0x1p60F;
// The largest that a member takes. Codecs round, and a sum that is formed anew ends in other bits.
inline constexpr float kMostTaken = 0x1p61F;

// Whether each number is one, from -most to most.
[[nodiscard]] bool within(std::span<const float> values, float most);
// The same for some columns of a matrix, whose rows are `stride` numbers apart.
[[nodiscard]] bool within(std::span<const float> matrix, std::size_t stride, host::Range columns, float most);
// Whether each is a loss share: a shift within the bound, and a finite sum of exponentials, not below 0.
// Where the sum is 0 the shift says nothing.
[[nodiscard]] bool within(std::span<const sparse::PartitionShare> shares, float most);

// What a member gave beyond the bound. `what`: "a gradient".
[[nodiscard]] Error beyond_bounds(std::string_view what);
// This member would have to give it: the network has diverged.
[[nodiscard]] Error diverged(std::string_view what);

}  // namespace gossamer::sparse_engine
