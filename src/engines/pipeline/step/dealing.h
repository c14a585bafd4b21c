// SPDX-License-Identifier: Apache-2.0
//
// deal(): which microbatches of a step each member of the first stage reads (docs/protocols/pipeline-step.md,
// "Layout").
//
// Thread rule: a pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gossamer::pipeline {

// How many of `count` things each member gets, in proportion to its pace, rounded by largest remainders; of
// equal remainders the first member's goes first. A member without a pace, or with one that is not finite,
// counts as slow as the slowest other one. Requires a member. Equal bits on every CPU: the decision of one
// coordinator must be that of the next.
[[nodiscard]] std::vector<std::uint64_t> deal(std::uint64_t count, std::span<const double> paces);

}  // namespace gossamer::pipeline
