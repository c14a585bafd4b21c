// SPDX-License-Identifier: Apache-2.0
#include "simulation/cluster_chaos.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulation/fleet.h"

namespace gossamer::simulation {
namespace {

constexpr Duration kLookEvery{50'000'000};
constexpr Duration kAnswerTime{5'000'000'000};
constexpr Duration kChangeTime{5'000'000'000};
constexpr Instant kFirstFault{5'000'000'000};

std::vector<Fault> faults_of(const ChaosOptions& options) {
  if (!options.script.empty()) return options.script;
  std::vector<FaultKind> kinds = options.kinds;
  const Instant last = kFirstFault + options.trouble;
  if (kinds.empty()) {
    for (const FaultName& one : kFaults) {
      if (one.kind != FaultKind::kStop) kinds.push_back(one.kind);
    }
    // There is one leader to four members, and its faults matter to all. So its kinds are drawn more often.
    kinds.insert(kinds.end(), {FaultKind::kKillCoordinator, FaultKind::kPauseCoordinator,
                               FaultKind::kPauseCoordinator, FaultKind::kPauseCoordinator});
  }
  std::vector<Fault> faults = draw_faults(options.seed, kinds, options.faults, kFirstFault, last);
  // Little else can happen after a Stop. So it comes to one run of thirty, beside the other faults.
  if (options.kinds.empty() && options.faults > 0 && options.seed % 30 == 7) {
    const auto stop = draw_faults(options.seed + 1, {FaultKind::kStop}, 1, kFirstFault, last);
    faults.insert(faults.end(), stop.begin(), stop.end());
  }
  return faults;
}

// Runs a fleet and watches it from outside.
class Watch {
 public:
  explicit Watch(const ChaosOptions& options)
      : options_(options), fleet_(options), faults_(faults_of(options)) {}

  ChaosReport run();

 private:
  void look();
  void look_at_steps();
  void judge_the_end();
  void judge_expectations();
  void expect(bool come_true, const std::string& what);

  const ChaosOptions& options_;
  Fleet fleet_;
  std::vector<Fault> faults_;
  Instant first_fault_ = kFirstFault;
  Instant last_fault_end_ = kFirstFault;
  StepNumber applied_;
  std::optional<Instant> last_step_;
  std::optional<StepNumber> at_first_fault_;
  std::optional<StepNumber> at_last_fault_end_;
  std::optional<Calm> settled_;  // the state after which nothing should happen any more
  StepNumber steps_in_calm_;
  StepNumber committed_in_calm_;
  std::uint64_t claimed_in_calm_ = 0;
  ChaosReport report_;
};

// Looks, every kLookEvery, at facts that only an outside view has.
void Watch::look() {
  fleet_.replace_done();
  look_at_steps();
  fleet_.timeline().after(kLookEvery, [this] { look(); });
}

void Watch::look_at_steps() {
  const Instant now = fleet_.timeline().now();
  const StepNumber applied = fleet_.steps();
  if (now >= first_fault_ && !at_first_fault_) at_first_fault_ = applied;
  if (now >= last_fault_end_ && !at_last_fault_end_) at_last_fault_end_ = applied;
  if (last_step_) report_.standstill = std::max(report_.standstill, now - *last_step_);
  if (applied > applied_) last_step_ = now;
  applied_ = applied;
  if (at_last_fault_end_ && !report_.recovery && applied > *at_last_fault_end_ && !fleet_.unsettled())
    report_.recovery = now - last_fault_end_;
}

void Watch::judge_the_end() {
  Invariants& invariants = fleet_.invariants();
  if (const auto who = fleet_.harboured()) return invariants.broke("at the end " + *who);
  if (const auto why = fleet_.wronged()) return invariants.broke("at the end " + *why);
  if (fleet_.durable().stopping()) {
    if (const auto who = fleet_.lingering()) invariants.broke("long after the run was told to end " + *who);
    return;
  }
  if (const auto why = fleet_.unsettled()) return invariants.broke("at the end " + *why);
  if (fleet_.steps() <= steps_in_calm_)
    invariants.broke(
        fmt::format("no step was taken after {}, long after the last fault", steps_in_calm_.value));
  if (fleet_.lockstep() && invariants.committed_step() <= committed_in_calm_) {
    invariants.broke(fmt::format("nothing was committed after step {}, long after the last fault",
                                 committed_in_calm_.value));
  }
  if (fleet_.durable().claimed_steps() <= claimed_in_calm_)
    invariants.broke("no step was committed by claims, long after the last fault");
  if (const auto who = fleet_.unanswered(kAnswerTime)) invariants.broke("at the end " + *who);
  if (const auto what = disturbance(*settled_, fleet_.calm()))
    invariants.broke("long after the last fault " + *what);
}

void Watch::expect(bool come_true, const std::string& what) {
  if (!come_true) fleet_.invariants().broke(what);
}

void Watch::judge_expectations() {
  const ChaosExpectations& expected = options_.expect;
  const Duration recovery = report_.recovery.value_or(options_.calm);
  expect(report_.lives <= expected.most_lives,
         fmt::format("members had {} lives, expected were at most {}", report_.lives, expected.most_lives));
  expect(report_.steps_committed >= expected.least_steps,
         fmt::format("{} steps were committed, expected were at least {}", report_.steps_committed,
                     expected.least_steps));
  expect(report_.steps_under_faults >= expected.least_steps_under_faults,
         fmt::format("{} steps were applied under faults, expected were at least {}",
                     report_.steps_under_faults, expected.least_steps_under_faults));
  expect(recovery <= expected.recovered_within,
         fmt::format("all were back to work {:.2f} s after the last fault's end, expected was {:.2f} s",
                     recovery.seconds(), expected.recovered_within.seconds()));
  expect(report_.standstill <= expected.longest_standstill,
         fmt::format("no step was applied for {:.2f} s, expected were at most {:.2f} s",
                     report_.standstill.seconds(), expected.longest_standstill.seconds()));
}

ChaosReport Watch::run() {
  if (!faults_.empty()) first_fault_ = faults_.front().at;
  for (const Fault& fault : faults_) {
    first_fault_ = std::min(first_fault_, fault.at);
    last_fault_end_ = std::max(last_fault_end_, fault.at + fault.lasts);
    fleet_.timeline().at(fault.at, [this, fault] { fleet_.inject(fault); });
  }
  fleet_.start();
  look();
  host::Timeline& timeline = fleet_.timeline();
  Invariants& invariants = fleet_.invariants();
  const Instant end = last_fault_end_ + options_.calm;
  const Instant late{end.ns - options_.calm.ns / 3};
  while (timeline.now() < end && !invariants.violation()) {
    if (timeline.now() < late) {
      steps_in_calm_ = fleet_.steps();
      committed_in_calm_ = invariants.committed_step();
      claimed_in_calm_ = fleet_.durable().claimed_steps();
      settled_ = fleet_.calm();
    }
    timeline.run_until(std::min(end, timeline.now() + from_seconds(1)));
  }
  // A change for speed, which the calm allows, may be under way.
  const Instant longest = end + kChangeTime;
  while (timeline.now() < longest && !invariants.violation() && fleet_.unsettled() &&
         !fleet_.durable().stopping())
    timeline.run_until(timeline.now() + from_milliseconds(100));
  report_.state_hash = invariants.hash();
  report_.frames_hash = fleet_.internet().frames_hash();
  report_.events = timeline.events_run();
  report_.faults_injected = fleet_.faults_injected();
  report_.steps_committed = (fleet_.lockstep() ? invariants.committed_step() : fleet_.steps()).value;
  report_.steps_under_faults = at_last_fault_end_ ? at_last_fault_end_->value - at_first_fault_->value : 0;
  report_.lives = fleet_.lives();
  report_.virtual_seconds = (timeline.now() - Instant{}).seconds();
  report_.probes = fleet_.probes();
  if (!invariants.violation()) judge_the_end();
  if (!invariants.violation()) judge_expectations();
  report_.violation = invariants.violation();
  if (report_.violation && options_.trace) fleet_.describe();
  return report_;
}

}  // namespace

ChaosReport run_cluster_chaos(const ChaosOptions& options) { return Watch(options).run(); }

}  // namespace gossamer::simulation
