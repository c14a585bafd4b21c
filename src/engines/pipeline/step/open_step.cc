// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/open_step.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gossamer::pipeline {
namespace {

using Reports = std::map<NodeId, RestReport>;

// What more than half of the values are; nothing: no value is.
template <class T>
std::optional<T> majority(const std::vector<T>& values) {
  std::map<T, std::size_t> counts;
  for (const T& value : values) ++counts[value];
  for (const auto& [value, count] : counts) {
    if (2 * count > values.size()) return value;
  }
  return std::nullopt;
}

// The first step that not every member has applied, or else the next one.
StepNumber open_step(const Reports& reports) {
  std::optional<StepNumber> open;
  for (const auto& [node, report] : reports) {
    if (report.stage) open = std::min(open.value_or(report.applied), report.applied);
  }
  CHECK(open.has_value());
  return *open;
}

bool anybody_applied(const Reports& reports, StepNumber step) {
  return std::ranges::any_of(
      reports, [&](const auto& one) { return one.second.stage && one.second.applied > step; });
}

// Gives lost stages to members that have them as they were before `step`. What has none is lost.
void give_lost(const Reports& reports, std::uint32_t stages, OpenStep& verdict) {
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    const auto holds = [&](const auto& one) { return one.second.stage == stage; };
    if (std::ranges::any_of(reports, holds)) continue;
    const auto has = [&](const auto& one) {
      return std::ranges::count(one.second.whole, WholeStage{stage, verdict.step}) > 0;
    };
    const auto found = std::ranges::find_if(reports, has);
    if (found == reports.end() || anybody_applied(reports, verdict.step)) {
      verdict.lost.insert(stage);
    } else {
      verdict.taken[stage] = found->first;
    }
  }
}

// The totals of the step, if all members hold its sum of one attempt, or have applied that.
std::optional<StepTotals> totals_of(const Reports& reports, StepNumber step) {
  std::set<Attempt> attempts;
  std::optional<StepTotals> applied;
  std::map<std::uint32_t, HeldSum> sums;  // of one member for each stage
  for (const auto& [node, report] : reports) {
    if (!report.stage) continue;
    if (report.applied > step) {
      if (!report.last) return std::nullopt;
      attempts.insert(report.last->attempt);
      applied = report.last;
    } else if (report.sum) {
      attempts.insert(report.sum->attempt);
      sums.try_emplace(*report.stage, *report.sum);
    } else {
      return std::nullopt;
    }
  }
  if (attempts.size() != 1) return std::nullopt;
  if (applied) return applied;
  StepTotals totals{.attempt = *attempts.begin(), .tokens = sums.begin()->second.tokens};
  for (const auto& [stage, sum] : sums) totals.squared_norm += sum.squared_norm;
  return totals;
}

}  // namespace

OpenStep judge_open_step(const Reports& reports, std::uint32_t stages) {
  OpenStep verdict{.step = open_step(reports)};
  give_lost(reports, stages, verdict);
  if (!verdict.lost.empty()) {
    verdict.then = OpenStep::Then::kGoBack;
    verdict.taken.clear();
    return verdict;
  }
  // With a stage that somebody takes anew, its sum is gone.
  if (!verdict.taken.empty()) return verdict;
  if (auto totals = totals_of(reports, verdict.step)) {
    verdict.then = OpenStep::Then::kApply;
    verdict.totals = totals;
    ++verdict.step;
  }
  return verdict;
}

std::set<NodeId> contradicting(const Reports& reports) {
  std::vector<std::uint64_t> lineages;
  std::vector<StepNumber> steps;
  std::map<std::pair<std::uint32_t, Attempt>, std::vector<std::uint64_t>> hashes;
  for (const auto& [node, report] : reports) {
    if (!report.stage) continue;
    lineages.push_back(report.lineage);
    steps.push_back(report.applied);
    if (report.sum) hashes[{*report.stage, report.sum->attempt}].push_back(report.sum->hash);
  }
  const auto lineage = majority(lineages);
  const auto step = majority(steps);
  std::set<NodeId> wrong;
  for (const auto& [node, report] : reports) {
    if (!report.stage) continue;
    const bool other_lineage = lineage && report.lineage != *lineage;
    const bool far = step && (report.applied.value > step->value + 1 || report.applied.value + 1 < step->value);
    bool other_sum = false;
    if (report.sum) {
      const auto hash = majority(hashes.at({*report.stage, report.sum->attempt}));
      other_sum = report.sum->attempt.step != report.applied || (hash && report.sum->hash != *hash);
    }
    if (other_lineage || far || other_sum) wrong.insert(node);
  }
  return wrong;
}

}  // namespace gossamer::pipeline
