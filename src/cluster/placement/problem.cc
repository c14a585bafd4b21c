// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/problem.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace gossamer::placement {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

// Positions of `values` in the order of their ids, which must differ.
template <class Value>
std::vector<Index> by_id(std::span<const Value> values) {
  CHECK(values.size() < kNowhere, values.size());
  std::vector<Index> order(values.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::sort(order, {}, [&](Index i) { return values[i].id; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    CHECK(values[order[i - 1]].id != values[order[i]].id, values[order[i]].id.value);
  }
  return order;
}

// The position of `id` among sorted ids, or kNowhere.
template <class Id>
Index position(std::span<const Id> sorted, Id id) {
  const auto found = std::ranges::lower_bound(sorted, id);
  return found != sorted.end() && *found == id ? static_cast<Index>(found - sorted.begin()) : kNowhere;
}

void add_members(Problem& problem, std::span<const Member> members) {
  for (const Index i : by_id(members)) {
    const Member& member = members[i];
    if (member.service == Service::kDraining) continue;
    CHECK(std::isfinite(member.speed) && member.speed > 0, member.id.value, member.speed);
    CHECK(std::isfinite(member.own_work) && member.own_work >= 0, member.id.value, member.own_work);
    problem.member_ids.push_back(member.id);
    problem.limit.push_back(member.limit_bytes);
    problem.speed.push_back(member.speed);
    problem.own_work.push_back(member.own_work);
    problem.all_limits += std::min(member.limit_bytes, ~std::uint64_t{0} - problem.all_limits);
  }
}

void believe(Problem& problem, std::span<const BelievedSpeed> before, double dead_band) {
  const auto near = [&](double measured, double old, double whole) {
    return std::fabs(measured - old) <= dead_band * whole;
  };
  // The work of things in a step, for each member. Own work alone may be so little that noise is a large part
  // of it; such noise changes nothing.
  const double share = problem.all_work / static_cast<double>(std::max<std::size_t>(problem.speed.size(), 1));
  std::vector<double> speed = problem.speed;
  std::vector<double> own_work = problem.own_work;
  bool noise = true;
  for (const BelievedSpeed& old : before) {
    const Index i = position<MemberId>(problem.member_ids, old.member);
    if (i == kNowhere) continue;
    noise = noise && near(speed[i], old.speed, old.speed) &&
            near(own_work[i], old.own_work, old.own_work + share);
    speed[i] = old.speed;
    own_work[i] = old.own_work;
  }
  if (noise) {
    problem.speed = std::move(speed);
    problem.own_work = std::move(own_work);
  }
  problem.all_speeds = std::accumulate(problem.speed.begin(), problem.speed.end(), 0.0);
  problem.all_own_work = std::accumulate(problem.own_work.begin(), problem.own_work.end(), 0.0);
}

void add_things(Problem& problem, std::span<const Thing> things) {
  const std::vector<Index> sorted = by_id(things);
  problem.thing_ids.reserve(things.size());
  problem.bytes.reserve(things.size());
  problem.work.reserve(things.size());
  problem.copy_end.reserve(things.size());
  for (const Index j : sorted) {
    const Thing& thing = things[j];
    CHECK(std::isfinite(thing.work) && thing.work >= 0, thing.id.value, thing.work);
    CHECK(thing.bytes <= kMostBytes - problem.all_bytes, thing.id.value, thing.bytes);
    problem.thing_ids.push_back(thing.id);
    problem.bytes.push_back(thing.bytes);
    problem.work.push_back(thing.work);
    problem.all_bytes += thing.bytes;
    problem.all_work += thing.work;
    const auto first = static_cast<std::ptrdiff_t>(problem.copies.size());
    for (const MemberId copy : thing.copies) {
      const Index i = position<MemberId>(problem.member_ids, copy);
      if (i != kNowhere) problem.copies.push_back(i);
    }
    std::sort(problem.copies.begin() + first, problem.copies.end());
    problem.copy_end.push_back(static_cast<Index>(problem.copies.size()));
  }
}

// Positions of `key`, largest first.
std::vector<Index> falling(const std::vector<double>& key) {
  std::vector<Index> order(key.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::sort(order, [&](Index a, Index b) { return key[a] > key[b] || (key[a] == key[b] && a < b); });
  return order;
}

void rank_things(Problem& problem) {
  const std::size_t n = problem.thing_ids.size();
  const double per_work = problem.all_work > 0 ? 1 / problem.all_work : 0;
  const double per_byte = problem.all_limits > 0 ? 1 / static_cast<double>(problem.all_limits) : 0;
  std::vector<double> demand(n);
  std::vector<double> density(n);
  for (std::size_t j = 0; j < n; ++j) {
    const auto bytes = static_cast<double>(problem.bytes[j]);
    demand[j] = std::max(problem.work[j] * per_work, bytes * per_byte);
    density[j] = problem.work[j] > 0 ? bytes / problem.work[j] : std::numeric_limits<double>::infinity();
  }
  problem.order = falling(demand);
  problem.dense_first = falling(density);
}

// The bound by the k largest things on the k fastest members, for each k, and by all work on all members.
double bound_of_speeds(const Problem& problem) {
  std::vector<double> work = problem.work;
  std::vector<double> speed = problem.speed;
  const std::size_t k_end = std::min(work.size(), speed.size());
  std::ranges::partial_sort(work, work.begin() + static_cast<std::ptrdiff_t>(k_end), std::greater<>());
  std::ranges::sort(speed, std::greater<>());
  double bound = problem.all_work / problem.all_speeds;
  double work_sum = 0;
  double speed_sum = 0;
  for (std::size_t k = 0; k < k_end; ++k) {
    work_sum += work[k];
    speed_sum += speed[k];
    bound = std::max(bound, work_sum / speed_sum);
  }
  return bound;
}

// The least T for which the rooms of all members hold all work. It is (work + own work) / speed, summed over
// the members that can do more than their own work by then. Any other set of members gives no less.
double bound_of_rooms(const Problem& problem) {
  std::vector<Index> soonest_free(problem.speed.size());
  std::iota(soonest_free.begin(), soonest_free.end(), Index{0});
  std::ranges::sort(soonest_free, {},
                    [&](Index i) { return std::pair(problem.own_work[i] / problem.speed[i], i); });
  double bound = std::numeric_limits<double>::infinity();
  double work = problem.all_work;
  double speed = 0;
  for (const Index i : soonest_free) {
    work += problem.own_work[i];
    speed += problem.speed[i];
    bound = std::min(bound, work / speed);
  }
  return bound;
}

// The bound by memory. No byte carries more than `densest` work, so member i never does more than most_i =
// densest * limit_i. The bound is the least T for which min(T * speed_i, most_i) sum to all work; 0 if they
// never do.
double bound_of_limits(const Problem& problem) {
  double densest = 0;
  for (std::size_t j = 0; j < problem.work.size(); ++j) {
    if (problem.work[j] == 0) continue;
    if (problem.bytes[j] == 0) return 0;
    densest = std::max(densest, problem.work[j] / static_cast<double>(problem.bytes[j]));
  }
  const auto most = [&](Index i) { return densest * static_cast<double>(problem.limit[i]); };
  std::vector<Index> soonest_full(problem.speed.size());
  std::iota(soonest_full.begin(), soonest_full.end(), Index{0});
  std::ranges::sort(soonest_full, {}, [&](Index i) { return std::pair(most(i) / problem.speed[i], i); });
  double work = problem.all_work;  // left for members that are not full
  double speed = problem.all_speeds;
  for (const Index i : soonest_full) {
    if (work <= speed * (most(i) / problem.speed[i])) return work / speed;
    work -= most(i);
    speed -= problem.speed[i];
  }
  return 0;
}

}  // namespace

std::span<const Index> Problem::copies_of(Index thing) const {
  const Index begin = thing == 0 ? 0 : copy_end[thing - 1];
  return std::span(copies).subspan(begin, copy_end[thing] - begin);
}

Problem make_problem(std::span<const Thing> things, std::span<const Member> members,
                     std::span<const BelievedSpeed> before, double dead_band) {
  Problem problem;
  add_members(problem, members);
  add_things(problem, things);
  believe(problem, before, dead_band);
  rank_things(problem);
  return problem;
}

Layout layout_of(const Problem& problem, std::span<const Holding> holdings) {
  Layout layout(problem.thing_ids.size(), kNowhere);
  std::vector<bool> named(layout.size(), false);
  for (const Holding& holding : holdings) {
    const Index j = position<ThingId>(problem.thing_ids, holding.thing);
    if (j == kNowhere) continue;
    CHECK(!named[j], holding.thing.value);
    named[j] = true;
    layout[j] = position<MemberId>(problem.member_ids, holding.member);
  }
  return layout;
}

double step_seconds(const Problem& problem, const Layout& layout) {
  std::vector<double> load(problem.member_ids.size(), 0);
  std::vector<bool> holds(load.size(), false);
  for (std::size_t j = 0; j < layout.size(); ++j) {
    if (layout[j] == kNowhere) continue;
    load[layout[j]] += problem.work[j];
    holds[layout[j]] = true;
  }
  double longest = 0;
  for (std::size_t i = 0; i < load.size(); ++i) {
    if (holds[i]) longest = std::max(longest, (problem.own_work[i] + load[i]) / problem.speed[i]);
  }
  return longest;
}

double step_bound(const Problem& problem) {
  return std::max({bound_of_speeds(problem), bound_of_rooms(problem), bound_of_limits(problem)});
}

}  // namespace gossamer::placement
