// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/pipeline_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "engines/pipeline/step/dealing.h"

namespace gossamer::pipeline {
namespace {

using Then = OpenStep::Then;
using Reports = std::map<NodeId, RestReport>;

Reports reports_of(const std::map<NodeId, membership::Frozen>& at_rest) {
  Reports reports;
  for (const auto& [node, frozen] : at_rest) {
    auto report = read_report(frozen.report(), Epoch(frozen.installed()));
    CHECK(report.has_value(), node.value);
    reports[node] = *std::move(report);
  }
  return reports;
}

// The words of two members differ, and nobody knows which is right: the younger one goes.
NodeId loser_of(const std::set<NodeId>& disputed) { return *disputed.rbegin(); }

std::size_t holders_of(const Stages& members, std::uint32_t stage) {
  return static_cast<std::size_t>(
      std::ranges::count_if(members, [&](const auto& one) { return one.second == stage; }));
}

std::vector<double> work_of(const std::vector<double>& work,
                            const std::vector<DecidedLayout::Stage>& stages) {
  std::vector<double> sums;
  for (const DecidedLayout::Stage& stage : stages) {
    double sum = 0;
    for (std::uint32_t layer = stage.first; layer < stage.last; ++layer) sum += work[layer];
    sums.push_back(sum);
  }
  return sums;
}

// The stage that the next member gets: each gets a first holder, then a second one, then those with the most
// work for each holder. Among equals the one with more work.
std::uint32_t neediest(const Stages& members, const std::vector<double>& work) {
  std::uint32_t best = 0;
  const auto need = [&](std::uint32_t stage) {
    const std::size_t holders = holders_of(members, stage);
    const std::size_t rounds = std::min<std::size_t>(holders, 2);
    return std::tuple(-static_cast<int>(rounds),
                      work[stage] / static_cast<double>(std::max<std::size_t>(1, holders)));
  };
  for (std::uint32_t stage = 1; stage < work.size(); ++stage) {
    if (need(stage) > need(best)) best = stage;
  }
  return best;
}

Error lost_layers(const OpenStep& verdict, const DecidedLayout& last) {
  std::string layers;
  for (const std::uint32_t stage : verdict.lost) {
    const DecidedLayout::Stage& one = last.stages[stage];
    layers += fmt::format("{}{} to {}", layers.empty() ? "" : ", ", one.first, one.last - 1);
  }
  return {.where = fmt::format("step {}", verdict.step.value),
          .what = "a part of what the run has learnt is lost: all members that had it are gone",
          .got = layers.empty() ? std::string("no member that has a part") : "nobody with layers " + layers,
          .expected = "a member for each layer",
          .fix = "resume the run from its newest checkpoint"};
}

}  // namespace

std::vector<DecidedLayout::Stage> cut_layers(const std::vector<double>& work, std::uint32_t stages) {
  const std::size_t layers = work.size();
  CHECK(stages >= 1 && stages <= layers, stages, layers);
  // least[s][n]: the largest share if the first n layers are cut into s + 1 stages; from[s][n]: the last cut.
  std::vector<std::vector<double>> least(stages, std::vector<double>(layers + 1, 0));
  std::vector<std::vector<std::size_t>> from(stages, std::vector<std::size_t>(layers + 1, 0));
  std::vector<double> sums(layers + 1, 0);
  for (std::size_t n = 1; n <= layers; ++n) sums[n] = least[0][n] = sums[n - 1] + work[n - 1];
  for (std::uint32_t s = 1; s < stages; ++s) {
    for (std::size_t n = s + 1; n <= layers; ++n) {
      for (std::size_t cut = s; cut < n; ++cut) {
        const double share = std::max(least[s - 1][cut], sums[n] - sums[cut]);
        if (from[s][n] != 0 && share >= least[s][n]) continue;
        least[s][n] = share;
        from[s][n] = cut;
      }
    }
  }
  std::vector<DecidedLayout::Stage> cuts(stages);
  std::size_t end = layers;
  for (std::uint32_t s = stages; s-- > 0;) {
    cuts[s] = {.first = static_cast<std::uint32_t>(from[s][end]), .last = static_cast<std::uint32_t>(end)};
    end = from[s][end];
  }
  return cuts;
}

bool PipelineWorkload::readable(const std::string& report) const {
  return read_report(report, {}).has_value();
}

std::set<NodeId> PipelineWorkload::contradicting_by(
    std::string_view last, const std::map<NodeId, membership::Frozen>& at_rest) const {
  const auto decision = read_decision(std::string(last));
  if (!decision) return {};
  const Reports reports = reports_of(at_rest);
  const Differing differing = pipeline::contradicting(reports, decision->layout);
  if (!differing.from_most.empty()) return differing.from_most;
  if (!differing.disputed.empty()) return {loser_of(differing.disputed)};
  const OpenStep verdict = judge_open_step(reports, decision->layout, options_.tokens);
  if (verdict.then == Then::kDiffer) return verdict.named;
  if (verdict.then == Then::kDispute) return {loser_of(verdict.named)};
  return {};
}

void PipelineWorkload::deal_to_first_stage(PipelineDecision& decision) const {
  decision.dealt.clear();
  std::vector<NodeId> nodes;
  for (const auto& [node, stage] : decision.layout.members) {
    if (stage == 0) nodes.push_back(node);
  }
  if (nodes.empty()) return;
  const std::vector<std::uint64_t> counts = deal(options_.microbatches, std::vector<double>(nodes.size(), 1));
  for (std::size_t i = 0; i < nodes.size(); ++i)
    decision.dealt[nodes[i]] = static_cast<std::uint32_t>(counts[i]);
}

PipelineDecision PipelineWorkload::first_layout(const std::vector<NodeId>& nodes) const {
  const auto half = std::max<std::size_t>(1, nodes.size() / 2);
  const std::size_t most = std::min(nodes.size(), options_.work.size());
  const auto stages = static_cast<std::uint32_t>(std::min<std::size_t>(options_.stages.value_or(half), most));
  PipelineDecision decision;
  decision.layout.stages = cut_layers(options_.work, std::max(1U, stages));
  const std::vector<double> work = work_of(options_.work, decision.layout.stages);
  for (const NodeId node : nodes) decision.layout.members[node] = neediest(decision.layout.members, work);
  return decision;
}

cluster::Decision PipelineWorkload::decide(const cluster::Rest& rest) {
  const Reports reports = reports_of(rest.reports);
  const auto last = read_decision(std::string(rest.last));
  std::vector<NodeId> serving;
  for (const auto& [node, record] : rest.view.members()) {
    if (reports.contains(node) && record.state() != membership::DRAINING) serving.push_back(node);
  }
  PipelineDecision next;
  if (!last) {
    if (serving.empty()) return {.failure = Error{.what = "no member can hold a part of the model"}};
    next = first_layout(serving);
    next.layout.step = options_.start;
  } else {
    const OpenStep verdict = judge_open_step(reports, last->layout, options_.tokens);
    if (verdict.then == Then::kGoBack) return {.failure = lost_layers(verdict, last->layout), .lost = true};
    if (verdict.then == Then::kNotFinite && !options_.skips_bad) {
      return {.failure = Error{.where = fmt::format("step {}", verdict.step.value),
                               .what = "numbers are not finite, also without a codec",
                               .fix = "lower train.lr, or leave such steps out with train.skip_bad=true"}};
    }
    next.layout = last->layout;
    next.layout.goes_back = false;
    next.layout.members.clear();
    for (const auto& [node, stage] : last->layout.members) {
      if (reports.contains(node)) next.layout.members[node] = stage;
    }
    for (const auto& [stage, node] : verdict.taken) next.layout.members[node] = stage;
    // A member that drains is let go where another one has its stage.
    for (const auto& [node, stage] : last->layout.members) {
      const bool leaves =
          next.layout.members.contains(node) && std::ranges::find(serving, node) == serving.end();
      if (leaves && holders_of(next.layout.members, next.layout.members.at(node)) > 1)
        next.layout.members.erase(node);
    }
    next.layout.step = verdict.step;
    next.layout.tries = verdict.tries;
    if (verdict.attempt) {
      const bool skipped = verdict.skipped || verdict.then == Then::kNotFinite;
      next.apply = {.attempt = *verdict.attempt, .total = verdict.total, .skipped = skipped};
      if (verdict.then == Then::kNotFinite) {
        ++next.layout.step;
        next.layout.tries = 0;
      }
    }
  }
  next.layout.epoch = rest.view.epoch();
  next.layout.exact = options_.exact;
  deal_to_first_stage(next);
  return {.bytes = write_decision(next), .committed = next.layout.step};
}

}  // namespace gossamer::pipeline
