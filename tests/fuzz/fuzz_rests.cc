// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, mostly half right, as reports of members at rest, before the workloads of a fleet check and of
// an engine that goes in lockstep. Nothing crashes. Those that contradict the others are among those that
// report, and when they are gone nobody contradicts. The decision on the rest is no step that nobody has
// reached.
#include <gossamer/check.pb.h>
#include <gossamer/membership.pb.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "base/check.h"
#include "choices.h"
#include "engines/check/check_workload.h"
#include "engines/run/lockstep_workload.h"

namespace {

using namespace gossamer;
using Reports = std::map<NodeId, membership::Frozen>;

constexpr std::uint64_t kSteps = 12;
constexpr std::uint64_t kThings = 3;

std::string check_report(fuzz::Choices& choices, const check::CheckNumbers& numbers) {
  if (choices.below(8) == 0) return choices.text();
  check::Report report;
  report.set_installed(choices.number());
  report.set_step(choices.number());
  for (std::uint64_t thing = 0; thing < kThings; ++thing) {
    if (choices.flip()) continue;
    check::Report::Held& held = *report.add_held();
    held.set_thing(choices.below(8) == 0 ? choices.number() : thing);
    held.set_chain(choices.below(8) == 0 ? choices.number()
                                         : numbers.chain(thing, StepNumber(report.step())));
  }
  return report.SerializeAsString();
}

std::string lockstep_report(fuzz::Choices& choices) {
  return choices.below(8) == 0 ? choices.text() : engine::step_text(StepNumber(choices.number()));
}

// Decides on all reports that can be read, as a coordinator does. Returns those that counted.
template <class Report>
Reports decide(cluster::Workload& workload, fuzz::Choices& choices, const Report& report) {
  Reports reports;
  for (std::size_t i = 1 + choices.below(4); i > 0; --i) {
    membership::Frozen said;
    said.set_report(report());
    if (!workload.readable(said.report())) continue;
    said.set_installed(choices.number());
    if (choices.flip()) said.add_progress();
    reports[NodeId(2 + i)] = said;
  }
  for (auto odd = workload.contradicting(reports); !odd.empty(); odd = workload.contradicting(reports)) {
    for (const NodeId node : odd) CHECK(reports.erase(node) == 1, node.value);
  }
  return reports;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices choices(data, size);
  const cluster::View view;
  const cluster::HoldingMap none;
  if (choices.flip()) {
    const check::CheckConfig config{.things = kThings, .elements = 4, .steps = kSteps};
    const check::CheckNumbers numbers(config);
    check::CheckWorkload workload(config);
    const Reports reports = decide(workload, choices, [&] { return check_report(choices, numbers); });
    const auto decision = workload.decide({.view = view, .reports = reports, .before = none, .after = none});
    check::Decision read;
    CHECK(read.ParseFromString(decision.bytes) && (read.resume() <= kSteps || !read.fault().empty()));
    return 0;
  }
  engine::LockstepWorkload workload({.things = kThings, .steps = kSteps});
  const Reports reports = decide(workload, choices, [&] { return lockstep_report(choices); });
  const auto decision = workload.decide({.view = view, .reports = reports, .before = none, .after = none});
  const auto next = engine::read_step(decision.bytes);
  const auto reached = [&](const auto& one) { return engine::read_step(one.second.report()) == next; };
  CHECK(next && *next <= StepNumber(kSteps) &&
        (*next == StepNumber() || std::ranges::any_of(reports, reached)));
  return 0;
}
