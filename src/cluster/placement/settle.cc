// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/settle.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cluster/placement/room_tree.h"

namespace gossamer::placement {
namespace {

// If memory is nearly used up, members with both room for work and memory for a thing are rare. An attempt
// has failed after so many nodes for each thing and member.
constexpr std::uint64_t kProbesEach = 64;

// Members while they are being filled.
class Filling {
 public:
  Filling(const Problem& problem, double target_s)
      : problem_(problem),
        layout_(problem.thing_ids.size(), kNowhere),
        free_(problem.limit),
        tree_(problem.speed.size()) {
    for (Index i = 0; i < free_.size(); ++i) room_.push_back(problem.room(i, target_s));
  }

  [[nodiscard]] bool fits(Index thing, Index member) const {
    return room_[member] >= problem_.work[thing] && free_[member] >= problem_.bytes[thing];
  }

  void hold(Index thing, Index member) {
    layout_[thing] = member;
    room_[member] -= problem_.work[thing];
    free_[member] -= problem_.bytes[thing];
  }

  // Prepares put(), which alone places things from here on: those that are nowhere in `kept`.
  void build_tree(const Layout& kept) {
    smallest_ = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t j = 0; j < kept.size(); ++j) {
      if (kept[j] == kNowhere) smallest_ = std::min(smallest_, problem_.bytes[j]);
    }
    for (Index i = 0; i < room_.size(); ++i) tree_.preset(i, open_room(i), free_[i]);
    tree_.build();
  }

  void put(Index thing, Index member) {
    hold(thing, member);
    tree_.set(member, open_room(member), free_[member]);
  }

  [[nodiscard]] Index most_room(Index thing) {
    if (tree_.probes() > budget_) return kNowhere;
    return tree_.most_room(problem_.work[thing], problem_.bytes[thing]);
  }

  // Like most_room(), but among the members with a copy.
  [[nodiscard]] Index most_room_with_copy(Index thing) const {
    Index best = kNowhere;
    for (const Index i : problem_.copies_of(thing)) {
      if (fits(thing, i) && (best == kNowhere || room_[i] > room_[best])) best = i;
    }
    return best;
  }

  [[nodiscard]] Layout take() { return std::move(layout_); }
  [[nodiscard]] std::uint64_t probes() const { return tree_.probes() + problem_.order.size(); }

 private:
  // The room of a member, without those whose memory is full: they would lead every search astray.
  [[nodiscard]] double open_room(Index member) const {
    return free_[member] >= smallest_ ? room_[member] : -std::numeric_limits<double>::infinity();
  }

  const Problem& problem_;
  Layout layout_;
  std::vector<std::uint64_t> free_;
  std::vector<double> room_;
  std::uint64_t smallest_ = 0;  // bytes of the things to place
  RoomTree tree_;
  std::uint64_t budget_ = kProbesEach * (problem_.thing_ids.size() + problem_.limit.size());
};

bool put_newcomers(const Problem& problem, const Layout& kept, Copies copies, Filling& filling) {
  for (const Index j : problem.order) {
    if (kept[j] != kNowhere) continue;
    Index i = copies == Copies::kPreferred ? filling.most_room_with_copy(j) : kNowhere;
    if (i == kNowhere) i = filling.most_room(j);
    if (i == kNowhere) return false;
    filling.put(j, i);
  }
  return true;
}

bool put_all(const Problem& problem, const Layout& now, Filling& filling) {
  for (const Index j : problem.order) {
    const Index i = now[j] != kNowhere && filling.fits(j, now[j]) ? now[j] : filling.most_room(j);
    if (i == kNowhere) return false;
    filling.put(j, i);
  }
  return true;
}

}  // namespace

Layout stay(const Problem& problem, const Layout& now, double target_s, Keep keep) {
  Filling filling(problem, target_s);
  for (const Index j : keep == Keep::kMostDemanding ? problem.order : problem.dense_first) {
    if (now[j] != kNowhere && filling.fits(j, now[j])) filling.hold(j, now[j]);
  }
  return filling.take();
}

std::optional<Layout> settle(const Problem& problem, const Layout& kept, const Target& target,
                             std::uint64_t& probes) {
  Filling filling(problem, target.seconds);
  for (const Index j : problem.order) {
    if (kept[j] != kNowhere) filling.hold(j, kept[j]);
  }
  filling.build_tree(kept);
  const bool all = put_newcomers(problem, kept, target.copies, filling);
  probes += filling.probes();
  if (!all) return std::nullopt;
  return filling.take();
}

std::optional<Layout> repack(const Problem& problem, const Layout& now, double target_s,
                             std::uint64_t& probes) {
  Filling filling(problem, target_s);
  filling.build_tree(Layout(now.size(), kNowhere));
  const bool all = put_all(problem, now, filling);
  probes += filling.probes();
  if (!all) return std::nullopt;
  return filling.take();
}

}  // namespace gossamer::placement
