// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/open_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

namespace gossamer::pipeline {
namespace {

using Reports = std::map<NodeId, RestReport>;
using Then = OpenStep::Then;
using Row = RecordsFit::Row;

// The first step that some holder has not applied; nothing: there is no holder.
std::optional<StepNumber> first_open(const Reports& reports) {
  std::optional<StepNumber> open;
  for (const auto& [node, report] : reports) {
    if (report.stage) open = open ? std::min(*open, report.applied) : report.applied;
  }
  return open;
}

// Members of the layout load its checkpoint, and none of them can have taken a step beyond it.
bool goes_back_still(const Reports& reports, const DecidedLayout& last) {
  if (!last.goes_back) return false;
  const auto has_gone_on = [&](const auto& one) {
    return one.second.installed >= last.epoch && one.second.stage && one.second.applied > last.step;
  };
  const auto is_behind = [&](const auto& one) {
    return last.members.contains(one.first) && (one.second.installed < last.epoch || one.second.loads);
  };
  return std::ranges::none_of(reports, has_gone_on) && std::ranges::any_of(reports, is_behind);
}

// The reports, without stages of members to which the layout gives none: others may have gone on without
// them. Nobody goes on without a member that has a stage in the layout. So what that one has counts, also if
// it is another stage, which it had before.
Reports by_layout(const Reports& all, const DecidedLayout& last) {
  Reports reports = all;
  for (auto& [node, report] : reports) {
    const bool gives = last.members.contains(node);
    if (!gives || (report.stage && *report.stage >= last.stages.size())) report.stage.reset();
  }
  return reports;
}

std::size_t holders_of(const Reports& reports, std::uint32_t stage) {
  return static_cast<std::size_t>(
      std::ranges::count_if(reports, [&](const auto& one) { return one.second.stage == stage; }));
}

// Holders of the stage that do not take another one.
std::size_t holders_left(const Reports& reports, std::uint32_t stage, const OpenStep& verdict) {
  std::size_t left = holders_of(reports, stage);
  for (const auto& [taken, node] : verdict.taken) left -= reports.at(node).stage == stage ? 1 : 0;
  return left;
}

// The layers of a stage as of the open step, at all members that have them. The root is the one that records
// of that step have named. If nobody has seen such records, all copies must have the same root.
struct Copies {
  std::map<NodeId, std::uint64_t> roots = {};
  std::set<std::uint64_t> named = {};
  [[nodiscard]] bool may_be_taken(NodeId node) const {
    const auto found = roots.find(node);
    if (found == roots.end()) return false;
    if (!named.empty()) return named.size() == 1 && *named.begin() == found->second;
    return std::ranges::all_of(roots, [&](const auto& one) { return one.second == found->second; });
  }
};

Copies copies_of(const Reports& reports, const DecidedLayout& last, std::uint32_t stage, StepNumber step) {
  Copies copies;
  for (const auto& [node, report] : reports) {
    for (const WholeLayers& whole : report.whole) {
      if (whole.layers == last.stages[stage] && whole.lineage == last.lineage && whole.step == step)
        copies.roots.emplace(node, whole.root);
    }
    if (!report.roots || report.roots->step != step || report.lineage != last.lineage) continue;
    const auto named = report.roots->by_stage.find(stage);
    if (named != report.roots->by_stage.end()) copies.named.insert(named->second);
  }
  return copies;
}

// A member that has the layers as of the step, and takes nothing from others by taking them.
std::optional<NodeId> taker(const Reports& reports, const DecidedLayout& last, std::uint32_t stage,
                            const OpenStep& verdict) {
  const Copies copies = copies_of(reports, last, stage, verdict.step);
  for (const auto& [node, report] : reports) {
    const auto takes = [&](const auto& one) { return one.second == node; };
    if (std::ranges::any_of(verdict.taken, takes)) continue;
    if (report.stage && holders_left(reports, *report.stage, verdict) == 1) continue;
    if (copies.may_be_taken(node)) return node;
  }
  return std::nullopt;
}

// Gives stages without a holder to members that have them. What nobody has is lost.
void give_lost(const Reports& reports, const DecidedLayout& last, OpenStep& verdict) {
  const bool applied = std::ranges::any_of(
      reports, [&](const auto& one) { return one.second.stage && one.second.applied > verdict.step; });
  for (std::uint32_t stage = 0; stage < last.stages.size(); ++stage) {
    if (holders_of(reports, stage) > 0) continue;
    const auto node = applied ? std::nullopt : taker(reports, last, stage, verdict);
    if (node) {
      verdict.taken[stage] = *node;
    } else {
      verdict.lost.insert(stage);
    }
  }
  if (verdict.lost.empty()) return;
  verdict.taken.clear();
  verdict.then = Then::kGoBack;
}

// What the holders have of one step.
struct Sums {
  std::set<NodeId> without = {};  // they have no sum, and have not applied the step
  std::set<NodeId> applied = {};
  std::set<NodeId> givers = {};  // of sums that they hold
  bool refused = false;          // a member has seen records of all, and they did not fit
  std::set<Attempt> attempts = {};
  std::map<NodeId, std::pair<std::uint64_t, bool>> totals = {};  // bits of the total, skipped
  Stages stages = {};
  Records records = {};
};

Sums sums_of(const Reports& reports, StepNumber step) {
  Sums sums;
  const auto has = [&](NodeId node, const Attempt& attempt, const StepRecord& record) {
    sums.attempts.insert(attempt);
    sums.records.emplace(node, record);
  };
  for (const auto& [node, report] : reports) {
    if (!report.stage) continue;
    sums.stages.emplace(node, *report.stage);
    if (report.applied > step) {
      sums.applied.insert(node);
      if (!report.last) continue;
      has(node, report.last->attempt, report.last->record);
      sums.totals.emplace(node,
                          std::pair(std::bit_cast<std::uint64_t>(report.last->total), report.last->skipped));
    } else if (report.sum) {
      sums.givers.insert(node);
      has(node, report.sum->attempt, report.sum->record);
      sums.refused = sums.refused || report.sum->refused;
    } else {
      sums.without.insert(node);
    }
  }
  return sums;
}

void differ(Differing found, OpenStep& verdict) {
  verdict.then = found.from_most.empty() ? Then::kDispute : Then::kDiffer;
  verdict.named = std::move(found.from_most.empty() ? found.disputed : found.from_most);
}

// Row 6, and what fits only because those are gone that it did not fit with.
void begin_without(const Sums& sums, Row row, const DecidedLayout& last, OpenStep& verdict) {
  verdict.attempt.reset();
  if (row != Row::kNotFinite) return;
  const bool was_exact = last.exact || sums.attempts.begin()->tries > 0;
  if (was_exact) {
    verdict.then = Then::kNotFinite;
    verdict.attempt = *sums.attempts.begin();
  } else {
    verdict.tries = 1;
  }
}

// Row 4: some have applied the attempt, so all do. Records that do not fit, or another total, are a lie.
void apply_too(const Sums& sums, RecordsFit fit, OpenStep& verdict) {
  if (Differing found = differing(sums.totals); !found.none()) return differ(std::move(found), verdict);
  if (sums.totals.empty()) {
    verdict.then =
        Then::kGoBack;  // all that have applied it have loaded a state of later: nothing tells which
    return;
  }
  const auto [total, skipped] = sums.totals.begin()->second;
  verdict.skipped = skipped;
  const bool is_that = fit.row == Row::kFit && total == std::bit_cast<std::uint64_t>(verdict.total);
  if (is_that || skipped) {
    verdict.then = Then::kApply;
    ++verdict.step;
    return;
  }
  verdict.then = fit.row == Row::kDiffer ? Then::kDiffer : Then::kDispute;
  verdict.named = std::move(fit.named);
  if (!verdict.named.empty()) return;
  verdict.named = sums.applied;
  verdict.named.insert(sums.givers.begin(), sums.givers.end());
}

// Rows 4 to 8.
void judge_sums(const Sums& sums, const DecidedLayout& last, std::uint64_t tokens, OpenStep& verdict) {
  if (!sums.without.empty() || sums.attempts.size() != 1) {
    if (sums.applied.empty()) return;
    verdict.then = Then::kDispute;
    verdict.named = sums.applied;
    verdict.named.insert(sums.without.begin(), sums.without.end());
    if (sums.without.empty()) verdict.named.insert(sums.givers.begin(), sums.givers.end());
    return;
  }
  const Attempt& attempt = *sums.attempts.begin();
  // Members of an earlier layout are not known. Those of the last one that say nothing are gone.
  const bool of_last = attempt.epoch == last.epoch;
  Stages stages = sums.stages;
  if (of_last) stages.insert(last.members.begin(), last.members.end());
  RecordsFit fit = look_at(sums.records, stages, of_last ? std::optional(tokens) : std::nullopt);
  verdict.attempt = attempt;
  verdict.total = total_norm(sums.records, stages);
  if (!sums.applied.empty()) return apply_too(sums, std::move(fit), verdict);
  if (fit.row == Row::kDiffer || fit.row == Row::kDispute) {
    verdict.attempt.reset();
    verdict.then = fit.row == Row::kDiffer ? Then::kDiffer : Then::kDispute;
    verdict.named = std::move(fit.named);
  } else if (fit.row != Row::kFit || sums.refused) {
    begin_without(sums, fit.row, last, verdict);
  } else {
    verdict.then = Then::kApply;
    ++verdict.step;
  }
}

}  // namespace

OpenStep judge_open_step(const Reports& all, const DecidedLayout& last, std::uint64_t tokens) {
  OpenStep verdict;
  const Reports reports = by_layout(all, last);
  const std::optional<StepNumber> open = first_open(reports);
  if (!open || goes_back_still(reports, last)) {
    verdict.then = Then::kGoBack;
    return verdict;
  }
  verdict.step = *open;
  // Numbers of an attempt at that step were not finite. They would not be again.
  if (verdict.step == last.step) verdict.tries = last.tries;
  give_lost(reports, last, verdict);
  // With a stage that a member takes anew, its sum is gone.
  if (verdict.then == Then::kGoBack || !verdict.taken.empty()) return verdict;
  judge_sums(sums_of(reports, verdict.step), last, tokens, verdict);
  if (verdict.then == Then::kApply) verdict.tries = 0;
  return verdict;
}

namespace {

// Members far from most of the others with the same layout, and members that are not where their layout
// began.
Differing far_away(const Reports& reports, const DecidedLayout& last) {
  std::map<Epoch, std::map<NodeId, std::uint64_t>> lineages;
  std::map<Epoch, std::map<NodeId, StepNumber>> steps;
  for (const auto& [node, report] : reports) {
    lineages[report.installed].emplace(node, report.lineage);
    if (report.stage) steps[report.installed].emplace(node, report.applied);
  }
  Differing found;
  for (const auto& [epoch, words] : lineages) found.add(differing(words));
  for (const auto& [epoch, words] : steps) {
    const auto near = [](StepNumber one, StepNumber other) {
      return one.value <= other.value + 1 && other.value <= one.value + 1;
    };
    for (const auto& [node, step] : words) {
      const auto far = static_cast<std::size_t>(
          std::ranges::count_if(words, [&](const auto& one) { return !near(one.second, step); }));
      if (2 * far > words.size()) found.from_most.insert(node);
      if (2 * far == words.size()) found.disputed.insert(node);
    }
  }
  for (const auto& [node, report] : reports) {
    if (report.stage && report.installed == last.epoch && report.applied < last.step)
      found.from_most.insert(node);
    if (report.stage && report.sum && report.sum->attempt.step != report.applied)
      found.from_most.insert(node);
  }
  return found;
}

// A member has applied a step, and another one has not even its sum: one of the two says what is not true.
Differing without_sum(const Reports& reports, const DecidedLayout& last) {
  const Reports holders = by_layout(reports, last);
  const std::optional<StepNumber> open = first_open(holders);
  if (!open || goes_back_still(holders, last)) return {};
  const Sums sums = sums_of(holders, *open);
  std::map<NodeId, bool> words;
  for (const NodeId node : sums.applied) words.emplace(node, true);
  for (const NodeId node : sums.without) words.emplace(node, false);
  return differing(words);
}

}  // namespace

Differing contradicting(const Reports& reports, const DecidedLayout& last) {
  Differing found = far_away(reports, last);
  found.add(without_sum(reports, last));
  return found;
}

}  // namespace gossamer::pipeline
