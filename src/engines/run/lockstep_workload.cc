// SPDX-License-Identifier: Apache-2.0
#include "engines/run/lockstep_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "engines/run/steps_together.h"

namespace gossamer::engine {

std::string step_text(StepNumber step) { return fmt::format("{}", step.value); }

std::optional<StepNumber> read_step(std::string_view text) {
  StepNumber step;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step.value);
  const bool good = error == std::errc() && end == text.data() + text.size();
  return good ? std::optional(step) : std::nullopt;
}

std::vector<placement::Thing> LockstepWorkload::things() const {
  std::vector<placement::Thing> things;
  for (std::uint64_t i = 0; i < options_.things; ++i)
    things.push_back({.id = placement::ThingId(i), .bytes = options_.thing_bytes, .work = 1});
  return things;
}

std::vector<cluster::TrackId> LockstepWorkload::tracks() const {
  std::vector<cluster::TrackId> tracks;
  for (std::uint64_t i = 0; i < options_.things; ++i) tracks.emplace_back(i);
  return tracks;
}

namespace {

using Reports = std::map<NodeId, membership::Frozen>;

std::uint64_t step_of(const membership::Frozen& report) {
  return read_step(report.report()).value_or(StepNumber()).value;
}

// The step that most of these reports name; of several such steps the lowest.
std::uint64_t told_by_most(const std::map<NodeId, std::uint64_t>& steps) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const auto& [node, step] : steps) ++counts[step];
  return std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
}

// Members that went on with the newest epoch began it at the same step. Those that hold things may have come
// further, together. The others stay there.
std::set<NodeId> odd_of_newest(const Reports& reports, std::uint64_t newest) {
  std::map<NodeId, std::uint64_t> holders;
  std::map<NodeId, std::uint64_t> others;
  for (const auto& [node, report] : reports) {
    if (report.installed() == newest) (report.progress().empty() ? others : holders)[node] = step_of(report);
  }
  std::set<NodeId> odd = not_together(holders);
  std::optional<std::uint64_t> most;
  for (const auto& [node, step] : holders) {
    if (!odd.contains(node)) most = std::max(most.value_or(step), step);
  }
  if (others.empty()) return odd;
  const std::uint64_t begun = told_by_most(others);
  for (const auto& [node, step] : others) {
    if (most ? step > *most : step != begun) odd.insert(node);
  }
  return odd;
}

}  // namespace

// Without an epoch nobody has applied a step. Those that have not heard of the newest one are not ahead of
// it.
std::set<NodeId> LockstepWorkload::contradicting(const Reports& reports) const {
  std::uint64_t newest = 0;
  for (const auto& [node, report] : reports) newest = std::max(newest, report.installed());
  std::set<NodeId> odd = odd_of_newest(reports, newest);
  std::uint64_t most = options_.start.value;
  for (const auto& [node, report] : reports) {
    if (report.installed() == newest && !odd.contains(node)) most = std::max(most, step_of(report));
  }
  for (const auto& [node, report] : reports) {
    const std::uint64_t step = step_of(report);
    const bool none = report.installed() == 0 && step > 0;
    if (none || step > most || (options_.steps && step > *options_.steps)) odd.insert(node);
  }
  return odd;
}

cluster::Decision LockstepWorkload::decide(const cluster::Rest& rest) {
  StepNumber next = std::max(options_.start, rest.committed.value_or(StepNumber()));
  for (const auto& [node, frozen] : rest.reports)
    next = std::max(next, read_step(frozen.report()).value_or(StepNumber()));
  return {.bytes = step_text(next), .committed = next};
}

}  // namespace gossamer::engine
