// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/placement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/function_ref.h"
#include "cluster/placement/packing.h"
#include "cluster/placement/problem.h"
#include "cluster/placement/settle.h"

namespace gossamer::placement {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
// Times that differ by less than this fraction are not worth another attempt.
constexpr double kPrecision = 1.0 / 256;
constexpr int kAttempts = 10;

using Attempt = FunctionRef<std::optional<Layout>(double target_s)>;

// Searches the shortest target that `attempt` reaches, between `low_s` and the time of `best`, by halving the
// interval in logarithms. The result is never slower than `best`.
Layout lower(const Problem& problem, double low_s, Layout best, Attempt attempt) {
  double high_s = step_seconds(problem, best);
  double target_s = low_s;
  for (int i = 0; i < kAttempts && high_s > low_s * (1 + kPrecision); ++i) {
    std::optional<Layout> found = attempt(target_s);
    const double found_s = found ? step_seconds(problem, *found) : kForever;
    if (found_s < high_s) {
      best = *std::move(found);
      high_s = found_s;
    } else {
      low_s = target_s;
    }
    target_s = std::sqrt(low_s * high_s);
  }
  return best;
}

// Places things without a holder: up to a first target, up to a second, or by memory alone. The first target
// suffices unless memory is short.
Result<Layout> house_somehow(const Problem& problem, const Layout& kept, std::uint64_t& probes) {
  if (problem.all_bytes > problem.all_limits || problem.speed.empty()) return pack(problem, kept, probes);
  const double largest = *std::ranges::max_element(problem.work);
  const double slowest = *std::ranges::min_element(problem.speed);
  const double all = problem.all_work + problem.all_own_work;
  const double others = static_cast<double>(problem.speed.size() - 1);
  const double enough_s = (all + others * largest) / problem.all_speeds;
  for (const double target_s : {std::max(enough_s, step_seconds(problem, kept)), 2 * all / slowest}) {
    std::optional<Layout> housed = settle(problem, kept, {target_s}, probes);
    if (housed) return *std::move(housed);
  }
  return pack(problem, kept, probes);
}

// Finds a place for each thing without a holder. The others stay unless memory leaves no other way.
Result<Layout> house(const Problem& problem, const Layout& kept, double goal_s, std::uint64_t& probes) {
  if (std::ranges::find(kept, kNowhere) == kept.end()) return kept;
  Result<Layout> housed = house_somehow(problem, kept, probes);
  if (!housed.ok()) return housed.error();
  const double low_s = std::max(step_seconds(problem, kept), step_bound(problem));
  const bool few = few_arrangements(problem, kept);
  Layout best = lower(problem, low_s, *std::move(housed), [&](double target_s) {
    if (few) return arrange(problem, {.fixed = kept, .liked = kept}, target_s, probes);
    return settle(problem, kept, {target_s}, probes);
  });
  if (problem.copies.empty()) return best;
  const double good_s = std::max(goal_s, step_seconds(problem, best));
  std::optional<Layout> beside_copies = settle(problem, kept, {good_s, Copies::kPreferred}, probes);
  if (beside_copies) return *std::move(beside_copies);
  return best;
}

// Whether no thing must move, and every member holds something.
bool is_settled(const Problem& problem, const Layout& kept) {
  std::vector<bool> holds(problem.speed.size(), false);
  for (const Index member : kept) {
    if (member == kNowhere) return false;
    holds[member] = true;
  }
  return std::ranges::find(holds, false) == holds.end();
}

bool has_copy(const Problem& problem, Index thing, Index member) {
  return std::ranges::find(problem.copies_of(thing), member) != problem.copies_of(thing).end();
}

// The bytes of a change. Things that go where a copy lies need not be carried.
struct Cost {
  std::uint64_t carried = 0;
  std::uint64_t moved = 0;
  auto operator<=>(const Cost&) const = default;
};
Cost cost_of(const Problem& problem, const Layout& before, const Layout& after) {
  Cost cost;
  for (Index j = 0; j < before.size(); ++j) {
    if (before[j] == after[j]) continue;
    cost.moved += problem.bytes[j];
    if (!has_copy(problem, j, after[j])) cost.carried += problem.bytes[j];
  }
  return cost;
}

// Reaches the target in the one of several ways that carries the fewest bytes.
std::optional<Layout> rebalance(const Problem& problem, const Layout& now, double target_s,
                                std::uint64_t& probes) {
  std::optional<Layout> best;
  const auto consider = [&](std::optional<Layout> found) {
    if (!found) return;
    if (best && cost_of(problem, now, *found) >= cost_of(problem, now, *best)) return;
    best = std::move(found);
  };
  for (const Keep keep : {Keep::kMostBytes, Keep::kMostDemanding}) {
    const Layout kept = stay(problem, now, target_s, keep);
    consider(settle(problem, kept, {target_s}, probes));
    if (!problem.copies.empty()) consider(settle(problem, kept, {target_s, Copies::kPreferred}, probes));
  }
  consider(repack(problem, now, target_s, probes));
  return best;
}

// Moves things to bring the step to the goal, or as near to it as can be found. A second call changes
// nothing.
Layout balance(const Problem& problem, const Layout& housed, double goal_s, std::uint64_t& probes) {
  const Layout nowhere(housed.size(), kNowhere);
  const bool few = few_arrangements(problem, nowhere);
  Layout best = housed;
  for (double best_s = step_seconds(problem, best); best_s > goal_s * (1 + kPrecision);) {
    Layout next = lower(problem, goal_s, best, [&](double target_s) {
      if (few) return arrange(problem, {.fixed = nowhere, .liked = best}, target_s, probes);
      return rebalance(problem, best, target_s, probes);
    });
    const double next_s = step_seconds(problem, next);
    if (next_s >= best_s * (1 - kPrecision)) break;
    best = std::move(next);
    best_s = next_s;
  }
  return best;
}

// How long the change keeps the busiest link, beyond what is needed anyway. Only things count that could have
// stayed and go where no copy of them lies.
double extra_seconds(const Problem& problem, const Layout& kept, const Layout& housed, const Layout& balanced,
                     double bandwidth) {
  std::vector<double> sent(problem.limit.size(), 0);
  std::vector<double> received(problem.limit.size(), 0);
  for (Index j = 0; j < kept.size(); ++j) {
    if (kept[j] == kNowhere || housed[j] != kept[j] || balanced[j] == kept[j]) continue;
    if (has_copy(problem, j, balanced[j])) continue;
    sent[kept[j]] += static_cast<double>(problem.bytes[j]);
    received[balanced[j]] += static_cast<double>(problem.bytes[j]);
  }
  double most = 0;
  for (const double bytes : sent) most = std::max(most, bytes);
  for (const double bytes : received) most = std::max(most, bytes);
  return most / bandwidth;
}

Placement named(const Problem& problem, const Layout& layout) {
  Placement placement;
  placement.holdings.reserve(layout.size());
  for (std::size_t j = 0; j < layout.size(); ++j) {
    placement.holdings.push_back({problem.thing_ids[j], problem.member_ids[layout[j]]});
  }
  placement.speeds.reserve(problem.speed.size());
  for (std::size_t i = 0; i < problem.speed.size(); ++i) {
    placement.speeds.push_back({problem.member_ids[i], problem.speed[i], problem.own_work[i]});
  }
  return placement;
}

}  // namespace

Result<Decision> place(std::span<const Thing> things, std::span<const Member> members,
                       const Placement& current, const Options& options) {
  CHECK(options.tolerance >= 0 && options.settled_tolerance >= 0 && options.dead_band >= 0 &&
        options.horizon_s >= 0 && options.bandwidth > 0);
  CHECK(options.step_s >= 0, options.step_s);
  const Problem problem = make_problem(things, members, current.speeds, options.dead_band);
  Decision decision;
  if (!things.empty() && !problem.speed.empty()) decision.bound_s = step_bound(problem);

  const double goal_s = decision.bound_s * (1 + options.tolerance);
  const Layout held = layout_of(problem, current.holdings);
  const Layout kept = stay(problem, held, kForever, Keep::kMostBytes);
  // The part of the step that is not the largest member's time.
  const double waits_s = std::max(0.0, options.step_s - step_seconds(problem, kept));
  Result<Layout> housed = house(problem, kept, goal_s, decision.probes);
  if (!housed.ok()) return housed.error();
  const double housed_s = step_seconds(problem, *housed);
  const double tolerance =
      is_settled(problem, kept) ? std::max(options.tolerance, options.settled_tolerance) : options.tolerance;
  // If things move at all, they move for the short step.
  const bool good = housed_s <= decision.bound_s + tolerance * (decision.bound_s + waits_s);
  const Layout balanced = good ? *housed : balance(problem, *housed, goal_s, decision.probes);

  const double balanced_s = step_seconds(problem, balanced);
  const bool pays =
      balanced_s < housed_s && options.horizon_s * (housed_s - balanced_s) / (housed_s + waits_s) >=
                                   extra_seconds(problem, kept, *housed, balanced, options.bandwidth);
  const Layout& chosen = pays ? balanced : *housed;
  for (std::size_t j = 0; j < chosen.size(); ++j) {
    if (chosen[j] == held[j]) continue;
    decision.moved_bytes += problem.bytes[j];
    const bool needed = kept[j] == kNowhere || (*housed)[j] != kept[j];
    decision.change = std::max(decision.change, needed ? Change::kNeeded : Change::kRebalancing);
  }
  decision.step_s = pays ? balanced_s : housed_s;
  decision.placement = named(problem, chosen);
  return decision;
}

}  // namespace gossamer::placement
