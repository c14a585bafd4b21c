// SPDX-License-Identifier: Apache-2.0
//
// What place() falls back on where filling members up to a target finds no way: bin packing by memory alone,
// and trying all arrangements where these are few. Bin packing is NP-hard: best fit with the largest things
// first, then, for few things, a search within a budget.
//
// `probes` counts placings. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "cluster/placement/problem.h"

namespace gossamer::placement {

// Up to so many things pack() searches all arrangements, and tries up to so many placings.
inline constexpr std::size_t kExactThings = 64;
inline constexpr std::uint64_t kExactBudget = 200'000;

// Things of `kept` stay if that is possible, otherwise they move too. kFailed names the bytes that one more
// member would have to offer.
[[nodiscard]] Result<Layout> pack(const Problem& problem, const Layout& kept, std::uint64_t& probes);

// members^(things that are not fixed): so many arrangements are searched for a target.
inline constexpr double kFewArrangements = 4096;
[[nodiscard]] bool few_arrangements(const Problem& problem, const Layout& fixed);

struct Freedom {
  const Layout& fixed;  // what has a place here keeps it
  const Layout& liked;  // where the others should be
};
// Of the arrangements within limits and target one with the fewest bytes elsewhere than liked; nothing if
// there is none. Exact if there are few, otherwise the best within kExactBudget placings.
[[nodiscard]] std::optional<Layout> arrange(const Problem& problem, const Freedom& freedom, double target_s,
                                            std::uint64_t& probes);

}  // namespace gossamer::placement
