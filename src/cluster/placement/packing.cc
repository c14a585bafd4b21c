// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/human_bytes.h"

namespace gossamer::placement {
namespace {

std::vector<Index> largest_first(const Problem& problem) {
  std::vector<Index> order(problem.thing_ids.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::sort(order, [&](Index a, Index b) {
    return problem.bytes[a] > problem.bytes[b] || (problem.bytes[a] == problem.bytes[b] && a < b);
  });
  return order;
}

// The layout that best fit found, and the things left over.
struct Fit {
  Layout layout;
  std::uint64_t left_bytes = 0;
  Index largest_left = kNowhere;
  std::uint64_t largest_free = 0;

  [[nodiscard]] bool complete() const { return largest_left == kNowhere; }
};

// Best fit. Things in `fixed` do not move. The others, largest first, go where `liked` says if they fit. Else
// they go to the member with the least free memory that suffices.
Fit best_fit(const Problem& problem, const Layout& fixed, const Layout& liked, std::uint64_t& probes) {
  Fit fit{.layout = fixed};
  std::vector<std::uint64_t> free = problem.limit;
  for (std::size_t j = 0; j < fixed.size(); ++j) {
    if (fixed[j] != kNowhere) free[fixed[j]] -= problem.bytes[j];
  }
  std::set<std::pair<std::uint64_t, Index>> by_free;
  for (Index i = 0; i < free.size(); ++i) by_free.emplace(free[i], i);
  for (const Index j : largest_first(problem)) {
    if (fixed[j] != kNowhere) continue;
    ++probes;
    const std::uint64_t bytes = problem.bytes[j];
    Index i = liked[j] != kNowhere && free[liked[j]] >= bytes ? liked[j] : kNowhere;
    if (i == kNowhere) {
      const auto tightest = by_free.lower_bound({bytes, 0});
      if (tightest != by_free.end()) i = tightest->second;
    }
    if (i == kNowhere) {
      fit.left_bytes += bytes;
      if (fit.largest_left == kNowhere) fit.largest_left = j;
      continue;
    }
    fit.layout[j] = i;
    by_free.erase({free[i], i});
    free[i] -= bytes;
    by_free.emplace(free[i], i);
  }
  if (!by_free.empty()) fit.largest_free = by_free.rbegin()->first;
  return fit;
}

// The best of three tries, by the bytes left over: moving nothing that is kept, moving it where need be, and
// placing all from nothing.
Fit best_of_fits(const Problem& problem, const Layout& kept, std::uint64_t& probes) {
  const Layout nowhere(kept.size(), kNowhere);
  Fit fit = best_fit(problem, kept, nowhere, probes);
  for (const Layout& liked : {kept, nowhere}) {
    if (fit.complete()) break;
    Fit again = best_fit(problem, nowhere, liked, probes);
    if (again.complete() || again.left_bytes < fit.left_bytes) fit = std::move(again);
  }
  return fit;
}

// Finds the arrangement that moves the fewest bytes away from where they are liked. It tries all, largest
// things first, each where it is liked and then from the tightest fit on.
class Exhaustive {
 public:
  Exhaustive(const Problem& problem, const Freedom& freedom, double target_s)
      : problem_(problem), liked_(freedom.liked), layout_(freedom.fixed), free_(problem.limit) {
    for (Index i = 0; i < free_.size(); ++i) room_.push_back(problem.room(i, target_s));
    for (const Index j : largest_first(problem)) {
      if (layout_[j] == kNowhere) {
        order_.push_back(j);
      } else {
        take_from(layout_[j], j);
      }
    }
  }

  [[nodiscard]] std::optional<Layout> search() {
    place_from(0, 0);
    return std::move(best_);
  }
  [[nodiscard]] std::uint64_t placings() const { return placings_; }

 private:
  void take_from(Index member, Index thing) {
    free_[member] -= problem_.bytes[thing];
    room_[member] -= problem_.work[thing];
  }

  [[nodiscard]] std::vector<Index> candidates(Index thing) const {
    std::vector<Index> fitting;
    for (Index i = 0; i < free_.size(); ++i) {
      if (free_[i] >= problem_.bytes[thing] && room_[i] >= problem_.work[thing]) fitting.push_back(i);
    }
    const Index liked = liked_[thing];
    std::ranges::sort(fitting, {}, [&](Index i) { return std::tuple(i != liked, free_[i], room_[i], i); });
    return fitting;
  }

  void place_from(std::size_t k, std::uint64_t moved) {
    if (moved >= fewest_moved_) return;
    if (k == order_.size()) {
      fewest_moved_ = moved;
      best_ = layout_;
      return;
    }
    const Index thing = order_[k];
    const Index liked = liked_[thing];
    for (const Index i : candidates(thing)) {
      if (++placings_ > kExactBudget) return;
      const std::uint64_t free = free_[i];
      const double room = room_[i];
      take_from(i, thing);
      layout_[thing] = i;
      place_from(k + 1, moved + (liked == kNowhere || liked == i ? 0 : problem_.bytes[thing]));
      free_[i] = free;
      room_[i] = room;
    }
  }

  const Problem& problem_;
  const Layout& liked_;
  Layout layout_;
  std::vector<std::uint64_t> free_;
  std::vector<double> room_;
  std::vector<Index> order_;
  std::optional<Layout> best_;
  std::uint64_t fewest_moved_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t placings_ = 0;
};

// The bytes that one more member must offer. Best fit with such a member may spread things differently and
// fail again, so the number is tried out.
std::uint64_t enough_bytes(const Problem& problem, const Layout& kept, const Fit& fit,
                           std::uint64_t& probes) {
  Problem wider = problem;
  wider.limit.push_back(fit.left_bytes);
  while (!best_of_fits(wider, kept, probes).complete()) {
    wider.limit.back() += wider.limit.back() / 8 + problem.bytes[fit.largest_left];
  }
  return wider.limit.back();
}

Error shortage(const Problem& problem, const Fit& fit, std::uint64_t enough) {
  Error error{.where = "placement", .what = "the things do not fit into the members' memory"};
  const std::string offer = fmt::format("members offer {}", human_bytes(problem.all_limits));
  if (problem.all_bytes > problem.all_limits) {
    error.got = fmt::format("{} needed, {} {}", human_bytes(problem.all_bytes), problem.limit.size(), offer);
  } else {
    error.got = fmt::format("thing {} of {}, at most {} free on one member ({} needed in all, {} {})",
                            problem.thing_ids[fit.largest_left].value,
                            human_bytes(problem.bytes[fit.largest_left]), human_bytes(fit.largest_free),
                            human_bytes(problem.all_bytes), problem.limit.size(), offer);
  }
  error.fix = fmt::format("add one member with {} ({} bytes)", human_bytes(enough), enough);
  return error;
}

}  // namespace

Result<Layout> pack(const Problem& problem, const Layout& kept, std::uint64_t& probes) {
  Fit fit = best_of_fits(problem, kept, probes);
  if (fit.complete()) return std::move(fit.layout);
  if (kept.size() <= kExactThings && problem.all_bytes <= problem.all_limits) {
    const Layout nowhere(kept.size(), kNowhere);
    Exhaustive exhaustive(problem, {nowhere, kept}, std::numeric_limits<double>::infinity());
    std::optional<Layout> found = exhaustive.search();
    probes += exhaustive.placings();
    if (found) return *std::move(found);
  }
  return shortage(problem, fit, enough_bytes(problem, kept, fit, probes));
}

bool few_arrangements(const Problem& problem, const Layout& fixed) {
  const auto open = static_cast<double>(std::ranges::count(fixed, kNowhere));
  return std::pow(static_cast<double>(problem.limit.size()), open) <= kFewArrangements;
}

std::optional<Layout> arrange(const Problem& problem, const Freedom& freedom, double target_s,
                              std::uint64_t& probes) {
  Exhaustive exhaustive(problem, freedom, target_s);
  std::optional<Layout> found = exhaustive.search();
  probes += exhaustive.placings();
  return found;
}

}  // namespace gossamer::placement
