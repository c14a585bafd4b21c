// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_workload.h"

#include <fmt/format.h>
#include <gossamer/check.pb.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace gossamer::check {
namespace {

constexpr std::uint64_t kThingBytes = 64;

struct Contradiction {
  NodeId node;
  std::string got;
  std::string expected;
};

Error error_of(Contradiction found) {
  return {
      .where = fmt::format("node {}", found.node.value),
      .what = "the fleet check has failed: a step was lost, or taken twice",
      .got = std::move(found.got),
      .expected = std::move(found.expected),
      .fix = "keep the coordinator's directory: it is a defect of this program, or of a machine's memory"};
}

using Reports = std::map<NodeId, check::Report>;

std::optional<Contradiction> wrong_chain(const Reports& reports, const CheckNumbers& numbers) {
  for (const auto& [node, report] : reports) {
    for (const check::Report::Held& held : report.held()) {
      const std::uint64_t right = numbers.chain(held.thing(), StepNumber(report.step()));
      if (held.chain() == right) continue;
      return Contradiction{
          node,
          fmt::format("chain {:016x} of thing {} after {} steps", held.chain(), held.thing(), report.step()),
          fmt::format("{:016x}", right)};
    }
  }
  return std::nullopt;
}

// The reports of members that went on with the newest epoch and hold things. These members work together.
std::vector<Reports::const_pointer> company(const Reports& reports) {
  std::uint64_t newest = 0;
  for (const auto& [node, report] : reports) newest = std::max(newest, report.installed());
  std::vector<Reports::const_pointer> company;
  for (const auto& one : reports) {
    if (one.second.installed() == newest && !one.second.held().empty()) company.push_back(&one);
  }
  return company;
}

std::optional<Contradiction> wrong_company(const Reports& reports) {
  const auto members = company(reports);
  if (members.empty()) return std::nullopt;
  std::map<std::uint64_t, NodeId> holders;
  for (const auto* const member : members) {
    for (const check::Report::Held& held : member->second.held()) {
      const auto [other, alone] = holders.emplace(held.thing(), member->first);
      if (alone) continue;
      return Contradiction{member->first, fmt::format("thing {}", held.thing()),
                           fmt::format("that node {} alone holds it", other->second.value)};
    }
  }
  // A member applies a step only when all have begun it, and they begin it after the step before.
  const auto [slowest, fastest] =
      std::ranges::minmax(members, {}, [](const auto* member) { return member->second.step(); });
  if (fastest->second.step() - slowest->second.step() <= 1) return std::nullopt;
  return Contradiction{
      fastest->first, fmt::format("{} steps applied", fastest->second.step()),
      fmt::format("at most one more than node {}'s {}", slowest->first.value, slowest->second.step())};
}

}  // namespace

std::vector<placement::Thing> CheckWorkload::things() const {
  std::vector<placement::Thing> things;
  for (std::uint64_t i = 0; i < config_.things; ++i)
    things.push_back({.id = placement::ThingId(i), .bytes = kThingBytes, .work = 1});
  return things;
}

std::vector<cluster::TrackId> CheckWorkload::tracks() const {
  std::vector<cluster::TrackId> tracks;
  for (std::uint64_t i = 0; i < config_.things; ++i) tracks.emplace_back(i);
  return tracks;
}

bool CheckWorkload::readable(const std::string& report) const {
  check::Report read;
  if (!read.ParseFromString(report)) return false;
  if (config_.steps > 0 && read.step() > config_.steps) return false;
  const auto& held = read.held();
  const auto falls = [](const auto& a, const auto& b) { return a.thing() >= b.thing(); };
  return std::ranges::adjacent_find(held, falls) == held.end() &&
         std::ranges::all_of(held, [&](const auto& one) { return one.thing() < config_.things; });
}

// A member that names an epoch of its own would be compared with nobody. Any other contradiction is what a
// check looks for: it ends the run.
std::set<NodeId> CheckWorkload::contradicting(const std::map<NodeId, membership::Frozen>& reports) const {
  std::set<NodeId> odd;
  for (const auto& [node, frozen] : reports) {
    check::Report report;
    CHECK(report.ParseFromString(frozen.report()), node.value);
    if (report.installed() > frozen.installed()) odd.insert(node);
  }
  return odd;
}

cluster::Decision CheckWorkload::decide(const cluster::Rest& rest) {
  Reports reports;
  StepNumber resume = rest.committed.value_or(StepNumber());
  for (const auto& [node, frozen] : rest.reports) {
    check::Report& report = reports[node];
    CHECK(report.ParseFromString(frozen.report()), node.value);
    resume = std::max(resume, StepNumber(report.step()));
  }
  auto wrong = wrong_chain(reports, numbers_);
  if (!wrong) wrong = wrong_company(reports);

  check::Decision decision;
  decision.set_resume(resume.value);
  if (wrong) {
    Error failure = error_of(std::move(*wrong));
    decision.set_fault(failure.message());
    return {.bytes = decision.SerializeAsString(), .failure = std::move(failure)};
  }
  // Survivors reported the same chains, or they would contradict them.
  for (std::uint64_t thing = 0; thing < config_.things; ++thing)
    decision.add_chains(numbers_.chain(thing, resume));
  return {.bytes = decision.SerializeAsString(), .committed = resume};
}

}  // namespace gossamer::check
