// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/move_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "cluster/placement/problem.h"

namespace gossamer::placement {
namespace {

struct Step {
  Index thing;
  Index holder;  // has the thing in memory until it has arrived; kNowhere if it is lost
  Index to;
};

// The state of memory while things move: the free bytes of each member, and the steps still to be made.
struct Board {
  std::vector<std::uint64_t> bytes;     // of things
  std::vector<std::int64_t> free = {};  // of members; below 0 where they hold more than the limit
  std::vector<Step> steps = {};         // smallest first

  [[nodiscard]] bool fits(const Step& step) const { return free[step.to] >= size(step); }
  [[nodiscard]] std::int64_t size(const Step& step) const {
    return static_cast<std::int64_t>(bytes[step.thing]);
  }
  void make(const Step& step) {
    free[step.to] -= size(step);
    if (step.holder != kNowhere) free[step.holder] += size(step);
  }
  void take_back(const Step& step) {
    free[step.to] += size(step);
    if (step.holder != kNowhere) free[step.holder] -= size(step);
  }
};

// The problem with all members as serving ones, as members that drain still give.
Problem with_all_members(std::span<const Thing> things, std::span<const Member> members) {
  std::vector<Member> all(members.begin(), members.end());
  for (Member& member : all) member = {.id = member.id, .limit_bytes = member.limit_bytes};
  return make_problem(things, all, {}, 0);
}

Board make_board(const Problem& problem, const Layout& from, const Layout& to) {
  Board board{.bytes = problem.bytes};
  for (const std::uint64_t limit : problem.limit) {
    board.free.push_back(static_cast<std::int64_t>(std::min(limit, ~std::uint64_t{0} >> 1)));
  }
  std::vector<std::int64_t> free_at_end = board.free;
  for (Index j = 0; j < to.size(); ++j) {
    CHECK(to[j] != kNowhere, problem.thing_ids[j].value);
    const Step step{j, from[j], to[j]};
    free_at_end[to[j]] -= board.size(step);
    if (from[j] != kNowhere) board.free[from[j]] -= board.size(step);
    if (from[j] != to[j]) board.steps.push_back(step);
  }
  for (std::size_t i = 0; i < free_at_end.size(); ++i) {
    CHECK(free_at_end[i] >= 0, problem.member_ids[i].value, free_at_end[i]);
  }
  std::ranges::sort(board.steps, {},
                    [&](const Step& step) { return std::pair(board.bytes[step.thing], step.thing); });
  return board;
}

// Makes steps that fit until none does; the others stay in board.steps. A member is looked at again when it
// has given something away.
std::vector<Step> make_fitting(Board& board) {
  std::vector<Step> made;
  std::vector<std::vector<Step>> waiting(board.free.size());  // by destination, largest first
  for (auto step = board.steps.rbegin(); step != board.steps.rend(); ++step)
    waiting[step->to].push_back(*step);
  std::set<Index> to_look_at;
  for (const Step& step : board.steps) to_look_at.insert(step.to);
  while (!to_look_at.empty()) {
    const Index i = *to_look_at.begin();
    to_look_at.erase(to_look_at.begin());
    while (!waiting[i].empty() && board.fits(waiting[i].back())) {
      const Step step = waiting[i].back();
      waiting[i].pop_back();
      board.make(step);
      made.push_back(step);
      if (step.holder != kNowhere && !waiting[step.holder].empty()) to_look_at.insert(step.holder);
    }
  }
  board.steps.clear();
  for (const std::vector<Step>& steps : waiting)
    board.steps.insert(board.steps.end(), steps.rbegin(), steps.rend());
  return made;
}

// Makes fitting steps of lost things first, because a step of the run waits for them. They free no memory
// elsewhere, so they wait for no other member.
std::vector<Step> make_lost_first(Board& board) {
  std::vector<Step> others;
  std::vector<Step> made;
  for (const Step& step : board.steps) {
    if (step.holder != kNowhere || !board.fits(step)) {
      others.push_back(step);
      continue;
    }
    board.make(step);
    made.push_back(step);
  }
  board.steps = std::move(others);
  const std::vector<Step> rest = make_fitting(board);
  made.insert(made.end(), rest.begin(), rest.end());
  return made;
}

// Searches all orders, depth first over the sets of steps made. Memory depends on the set, not on its order.
class AllOrders {
 public:
  explicit AllOrders(Board board) : board_(std::move(board)), dead_(std::size_t{1} << board_.steps.size()) {}

  [[nodiscard]] bool search(std::uint32_t made = 0) {
    if (made + 1 == dead_.size()) return true;
    if (dead_[made]) return false;
    for (std::size_t k = 0; k < board_.steps.size(); ++k) {
      const std::uint32_t with = made | (std::uint32_t{1} << k);
      const Step& step = board_.steps[k];
      if (with == made || !board_.fits(step)) continue;
      board_.make(step);
      order_.push_back(step);
      if (search(with)) return true;
      order_.pop_back();
      board_.take_back(step);
    }
    dead_[made] = true;
    return false;
  }
  [[nodiscard]] const std::vector<Step>& order() const { return order_; }

 private:
  Board board_;
  std::vector<bool> dead_;
  std::vector<Step> order_;
};

// Names a circle of moves that wait for one another. Every member that a step waits for has a waiting thing
// to give away, as its end is within its limit. So a walk from member to member runs into a circle.
Error blocked(const Problem& problem, const Board& board) {
  std::vector<Index> leaving(board.free.size(), kNowhere);  // by member: its smallest step that waits
  for (std::size_t k = board.steps.size(); k-- > 0;) {
    if (board.steps[k].holder != kNowhere) leaving[board.steps[k].holder] = static_cast<Index>(k);
  }
  std::vector<bool> seen(board.free.size(), false);
  Index member = board.steps.front().to;
  for (; !seen[member]; member = board.steps[leaving[member]].to) {
    seen[member] = true;
    CHECK(leaving[member] != kNowhere, problem.member_ids[member].value);
  }
  std::string circle;
  const Index first = member;
  const Step* easiest = nullptr;
  const auto short_of = [&](const Step& step) { return board.size(step) - board.free[step.to]; };
  do {
    const Step& step = board.steps[leaving[member]];
    circle += fmt::format("{}thing {} from member {} to {}", circle.empty() ? "" : ", ",
                          problem.thing_ids[step.thing].value, problem.member_ids[member].value,
                          problem.member_ids[step.to].value);
    if (easiest == nullptr || short_of(step) < short_of(*easiest)) easiest = &step;
    member = step.to;
  } while (member != first);
  return {.where = "placement",
          .what = "moves wait for one another",
          .got = circle,
          .fix = fmt::format("{} bytes more on member {} would open this circle", short_of(*easiest),
                             problem.member_ids[easiest->to].value)};
}

std::vector<Move> with_donors(const Problem& problem, const std::vector<Step>& steps) {
  std::vector<Move> moves;
  moves.reserve(steps.size());
  std::vector<std::uint64_t> given(problem.limit.size(), 0);
  for (const Step& step : steps) {
    Index donor = step.holder;
    if (donor == kNowhere) {
      for (const Index i : problem.copies_of(step.thing)) {
        if (i == step.to || (donor != step.to && (donor == kNowhere || given[i] < given[donor]))) donor = i;
      }
    }
    Move move{.thing = problem.thing_ids[step.thing],
              .from = std::nullopt,
              .to = problem.member_ids[step.to],
              .bytes = problem.bytes[step.thing]};
    if (donor != kNowhere) {
      move.from = problem.member_ids[donor];
      if (donor != step.to) given[donor] += move.bytes;
    }
    moves.push_back(move);
  }
  return moves;
}

}  // namespace

Result<std::vector<Move>> plan_moves(std::span<const Thing> things, std::span<const Member> members,
                                     const Placement& from, const Placement& to) {
  const Problem problem = with_all_members(things, members);
  const Board start = make_board(problem, layout_of(problem, from.holdings), layout_of(problem, to.holdings));
  Board board = start;
  std::vector<Step> made = make_lost_first(board);
  if (board.steps.empty()) return with_donors(problem, made);
  board = start;
  made = make_fitting(board);
  if (board.steps.empty()) return with_donors(problem, made);
  if (start.steps.size() <= kExactMoves) {
    AllOrders orders(start);
    if (orders.search()) return with_donors(problem, orders.order());
  }
  return blocked(problem, board);
}

}  // namespace gossamer::placement
