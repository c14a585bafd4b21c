// SPDX-License-Identifier: Apache-2.0
//
// The fallback of place() where filling members up to a target finds no way. It packs bins by memory alone,
// and tries all arrangements where these are few. Bin packing is NP-hard, so best fit runs first with the
// largest things first. For few things a search within a budget follows.
//
// `probes` counts placings. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "cluster/placement/problem.h"

namespace gossamer::placement {

// pack() searches all arrangements for up to so many things, within so many placings.
inline constexpr std::size_t kExactThings = 64;
inline constexpr std::uint64_t kExactBudget = 200'000;

// Things of `kept` stay if that is possible; otherwise they move, too. The error kFailed names the bytes that
// one more member would have to offer.
[[nodiscard]] Result<Layout> pack(const Problem& problem, const Layout& kept, std::uint64_t& probes);

// A target is searched completely for up to so many arrangements: members^(things that are not fixed).
inline constexpr double kFewArrangements = 4096;
[[nodiscard]] bool few_arrangements(const Problem& problem, const Layout& fixed);

struct Freedom {
  const Layout& fixed;  // things with a place here keep it
  const Layout& liked;  // where the others should be
};
// The arrangement within limits and target that has the fewest bytes elsewhere than liked; nothing if there
// is none. It is exact for few arrangements, otherwise the best within kExactBudget placings.
[[nodiscard]] std::optional<Layout> arrange(const Problem& problem, const Freedom& freedom, double target_s,
                                            std::uint64_t& probes);

}  // namespace gossamer::placement
