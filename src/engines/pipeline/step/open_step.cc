// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/open_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

namespace gossamer::pipeline {
namespace {

using Reports = std::map<NodeId, RestReport>;
using Then = OpenStep::Then;
// Norms are compared by their bits: NaN equals nothing, not even itself.
using Bits = std::uint64_t;

Bits bits_of(double number) { return std::bit_cast<Bits>(number); }

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

// The reports, without stages that the layout gives to nobody or takes from a member.
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

// A member that has the layers as of the step, and takes nothing from others by taking them.
std::optional<NodeId> taker(const Reports& reports, const DecidedLayout& last, std::uint32_t stage,
                            const OpenStep& verdict) {
  for (const auto& [node, report] : reports) {
    const auto takes = [&](const auto& one) { return one.second == node; };
    if (std::ranges::any_of(verdict.taken, takes)) continue;
    if (report.stage && holders_left(reports, *report.stage, verdict) == 1) continue;
    const auto has = [&](const WholeLayers& whole) {
      return whole.first == last.stages[stage].first && whole.last == last.stages[stage].last &&
             whole.lineage == last.lineage && whole.step == verdict.step;
    };
    if (std::ranges::any_of(report.whole, has)) return node;
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
  bool all_have = true;  // a sum, or it is applied
  bool nobody_applied = true;
  std::set<Attempt> attempts = {};
  std::set<std::pair<Bits, bool>> applied = {};  // total, skipped
  std::map<std::uint32_t, double> norms = {};    // by stage, of the holder with the lowest node
  std::set<std::tuple<std::uint32_t, std::uint64_t, Bits>> sums = {};  // stage, hash, norm
};

Sums sums_of(const Reports& reports, StepNumber step) {
  Sums sums;
  for (const auto& [node, report] : reports) {
    if (!report.stage) continue;
    const bool applied = report.applied > step;
    if (applied) {
      sums.nobody_applied = false;
      if (report.last) sums.applied.emplace(bits_of(report.last->total), report.last->skipped);
    }
    const std::optional<HeldSum> sum = !applied      ? report.sum
                                       : report.last ? std::optional(report.last->sum)
                                                     : std::nullopt;
    if (!sum) {
      sums.all_have = false;
      continue;
    }
    sums.attempts.insert(sum->attempt);
    sums.norms.try_emplace(*report.stage, sum->squared_norm);
    sums.sums.emplace(*report.stage, sum->hash, bits_of(sum->squared_norm));
  }
  return sums;
}

// Rows 4 to 8.
void judge_sums(const Sums& sums, OpenStep& verdict) {
  if (!sums.all_have || sums.attempts.size() != 1) {
    if (!sums.nobody_applied) verdict.then = Then::kGoBack;
    return;
  }
  verdict.attempt = *sums.attempts.begin();
  for (const auto& [stage, norm] : sums.norms) verdict.total += norm;
  const bool finite = std::isfinite(verdict.total);
  if (sums.sums.size() != sums.norms.size()) {
    verdict.then = Then::kStop;
  } else if (sums.nobody_applied) {
    verdict.then = finite ? Then::kApply : Then::kNotFinite;
  } else if (sums.applied.size() == 1 &&
             (sums.applied.begin()->second || sums.applied.begin()->first == bits_of(verdict.total))) {
    verdict.then = Then::kApply;
    verdict.skipped = sums.applied.begin()->second;
  } else {
    verdict.then = Then::kGoBack;  // some have applied what does not follow from the sums
  }
  if (verdict.then == Then::kApply) ++verdict.step;
}

}  // namespace

OpenStep judge_open_step(const Reports& all, const DecidedLayout& last) {
  OpenStep verdict;
  const Reports reports = by_layout(all, last);
  const std::optional<StepNumber> open = first_open(reports);
  if (!open || goes_back_still(reports, last)) {
    verdict.then = Then::kGoBack;
    return verdict;
  }
  verdict.step = *open;
  give_lost(reports, last, verdict);
  // With a stage that a member takes anew, its sum is gone.
  if (verdict.then == Then::kGoBack || !verdict.taken.empty()) return verdict;
  judge_sums(sums_of(reports, verdict.step), verdict);
  return verdict;
}

std::set<NodeId> contradicting(const Reports& reports) {
  using Sum = std::tuple<std::uint64_t, Bits>;
  std::map<Epoch, std::vector<std::uint64_t>> lineages;
  std::map<Epoch, std::vector<StepNumber>> steps;
  std::map<std::pair<std::uint32_t, Attempt>, std::vector<Sum>> sums;
  const auto each_sum = [](const RestReport& report, auto&& see) {
    if (report.sum) see(*report.sum);
    if (report.last) see(report.last->sum);
  };
  for (const auto& [node, report] : reports) {
    lineages[report.installed].push_back(report.lineage);
    if (!report.stage) continue;
    steps[report.installed].push_back(report.applied);
    each_sum(report, [&](const HeldSum& sum) {
      sums[{*report.stage, sum.attempt}].emplace_back(sum.hash, bits_of(sum.squared_norm));
    });
  }
  std::set<NodeId> wrong;
  for (const auto& [node, report] : reports) {
    const auto lineage = majority(lineages.at(report.installed));
    bool is_wrong = lineage && report.lineage != *lineage;
    if (report.stage) {
      const auto step = majority(steps.at(report.installed));
      is_wrong = is_wrong ||
                 (step && (report.applied.value > step->value + 1 || report.applied.value + 1 < step->value));
      is_wrong = is_wrong || (report.sum && report.sum->attempt.step != report.applied);
      each_sum(report, [&](const HeldSum& sum) {
        const auto most = majority(sums.at({*report.stage, sum.attempt}));
        is_wrong = is_wrong || (most && *most != Sum(sum.hash, bits_of(sum.squared_norm)));
      });
    }
    if (is_wrong) wrong.insert(node);
  }
  return wrong;
}

}  // namespace gossamer::pipeline
