// SPDX-License-Identifier: Apache-2.0
#include "simulation/cluster_chaos.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "cluster/membership/doubts.h"
#include "cluster/membership/life_budget.h"
#include "simulation/counting_engine.h"
#include "simulation/fleet.h"
#include "simulation/misconduct.h"
#include "simulation/shape.h"

namespace gossamer::simulation {
namespace {

constexpr Duration kWatchEvery{50'000'000};
constexpr Duration kAnswerTime{5'000'000'000};
constexpr Duration kChangeTime{5'000'000'000};
constexpr Instant kFirstFault{5'000'000'000};

// Coordinators that come back at once, and are killed again while members dial them. Drawn one by one, two
// kills are hardly ever so near to each other. So they come to one run of thirty, beside the other faults.
std::vector<Fault> killed_twice(std::uint64_t seed, Instant last) {
  constexpr std::size_t kPairs = 6;
  std::vector<Fault> faults = draw_faults(seed, {FaultKind::kKillCoordinator}, kPairs, kFirstFault, last);
  for (std::size_t i = 0; i < kPairs; ++i) {
    faults[i].lasts = from_milliseconds(150);
    faults[i].other = 0;  // the store is there
    Fault again = faults[i];
    again.at = again.at + from_milliseconds(250 + 50 * static_cast<double>(i));
    faults.push_back(again);
  }
  return faults;
}

std::vector<Fault> faults_of(const ChaosOptions& options) {
  if (!options.script.empty()) return options.script;
  std::vector<FaultKind> kinds = options.kinds;
  const Instant last = kFirstFault + options.trouble;
  if (kinds.empty()) {
    for (const FaultName& one : kFaults) {
      if (one.kind != FaultKind::kStop && one.kind != FaultKind::kLoseCoordinator) kinds.push_back(one.kind);
    }
    // There is one leader to four members, and its faults matter to all. So its kinds are drawn more often.
    kinds.insert(kinds.end(), {FaultKind::kKillCoordinator, FaultKind::kPauseCoordinator,
                               FaultKind::kPauseCoordinator, FaultKind::kPauseCoordinator});
  }
  std::vector<Fault> faults =
      draw_faults(options.seed, kinds, options.faults, kFirstFault, last, Longest::kLong);
  if (options.kinds.empty()) lose_some_coordinators(faults);
  if (options.kinds.empty() && options.faults > 0 && options.seed % 30 == 22) {
    const auto twice = killed_twice(options.seed + 1, last);
    faults.insert(faults.end(), twice.begin(), twice.end());
  }
  // Little else can happen after a Stop. So it comes to one run of thirty, beside the other faults.
  if (options.kinds.empty() && options.faults > 0 && options.seed % 30 == 7) {
    const auto stop = draw_faults(options.seed + 1, {FaultKind::kStop}, 1, kFirstFault, last);
    faults.insert(faults.end(), stop.begin(), stop.end());
  }
  return faults;
}

// Runs a fleet of counting engines and watches it from outside.
class Run {
 public:
  explicit Run(const ChaosOptions& options)
      : options_(options),
        shape_(shape_of(options)),
        rng_(options.seed, Purpose::kFault, 10),
        workload_(options.things, options.steps),
        fleet_(fleet_options()),
        misconduct_(fleet_, options.seed, options.things),
        faults_(faults_of(options)) {
    for (std::size_t i = 0; i < options.members; ++i) fleet_.start_new_member();
  }

  ChaosReport run();

 private:
  [[nodiscard]] Fleet::Options fleet_options();
  [[nodiscard]] SimMember::Options new_member();
  static const CountingEngine& engine_of(SimMember& member) {
    return static_cast<const CountingEngine&>(member.engine());
  }
  [[nodiscard]] bool believes(Incarnation incarnation, const cluster::LeaseKeys& keys);
  // All members take the same steps at the same time.
  [[nodiscard]] bool lockstep() const { return shape_.view_change == cluster::ViewChange::kFrozen; }
  // Steps that all members have taken together. Without common steps: those that were claimed and committed.
  [[nodiscard]] StepNumber steps();
  // Whether a member has come to the open step of a track, so that it can claim samples.
  [[nodiscard]] bool somebody_claims();
  // Why the run has failed, if it has without a lie.
  [[nodiscard]] std::optional<std::string> wronged();
  // A process that is still there though the run was told to end.
  [[nodiscard]] std::optional<std::string> lingering();
  // A member that has waited too long for an answer.
  [[nodiscard]] std::optional<std::string> unanswered();
  void look();
  void look_at_steps();
  void judge_the_end();
  void judge_expectations();
  void expect(bool come_true, const std::string& what);
  // Traces the state of all members, for people.
  void describe();

  const ChaosOptions& options_;
  const Shape shape_;
  Rng rng_;
  CountingWorkload workload_;
  ChaosProbes probes_;
  std::uint64_t joined_ = 0;
  Fleet fleet_;
  Misconduct misconduct_;
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
  bool claims_in_calm_ = false;  // a member has come to the open step of a track
  ChaosReport report_;
};

Fleet::Options Run::fleet_options() {
  return {.workload = workload_,
          .tracks = workload_.tracks(),
          .batch = kBatch,
          .first_members = options_.first_members,
          .view_change = shape_.view_change,
          .seed = options_.seed,
          .store = shape_.store,
          .identity = shape_.identity,
          .path = options_.path,
          .scatter = shape_.scatter,
          .machines_again = true,
          .clock_error = options_.clock_error,
          .freeze_time = shape_.freeze_time,
          .defect = options_.defect,
          .trace = options_.trace,
          .probes = &probes_.control,
          .link_probes = &probes_.link,
          .new_member = [this] { return new_member(); },
          .misbehave = [this](SimMember& member, const Fault& fault) { misconduct_.begin(member, fault); },
          .resume_of = resume_of};
}

SimMember::Options Run::new_member() {
  const bool hidden = static_cast<double>(rng_.uniform()) < shape_.hidden;
  const double slowness = 0.7 + 0.6 * static_cast<double>(rng_.uniform());
  const std::uint64_t number = ++joined_;
  return {.memory_bytes = shape_.memory,  // each thing has one byte
          .hidden = hidden && number > options_.local_members,
          .local = number <= options_.local_members,
          .make_engine = [this, slowness, number](cluster::MemberProcess& process) {
            return std::make_unique<CountingEngine>(
                CountingEngine::World{
                    .invariants = fleet_.invariants(),
                    .believes = [this](Incarnation one,
                                       const cluster::LeaseKeys& keys) { return believes(one, keys); },
                    .things = options_.things,
                    .view_change = shape_.view_change,
                    .cut_short = [this](StepNumber) { ++report_.cut_short; }},
                process, options_.seed + number, slowness);
          }};
}

bool Run::believes(Incarnation incarnation, const cluster::LeaseKeys& keys) {
  return std::ranges::any_of(fleet_.members(), [&](const auto& one) {
    SimMember& member = *one.second;
    return member.member() != nullptr && member.member()->self().incarnation == incarnation &&
           engine_of(member).believes(keys, member.now());
  });
}

StepNumber Run::steps() {
  return lockstep() ? fleet_.invariants().applied_steps() : StepNumber(fleet_.durable().claimed_steps());
}

// Looks, every kWatchEvery, at facts that only an outside view has.
void Run::look() {
  fleet_.replace_done();
  look_at_steps();
  fleet_.timeline().after(kWatchEvery, [this] { look(); });
}

void Run::look_at_steps() {
  const Instant now = fleet_.timeline().now();
  const StepNumber applied = steps();
  if (now >= first_fault_ && !at_first_fault_) at_first_fault_ = applied;
  if (now >= last_fault_end_ && !at_last_fault_end_) at_last_fault_end_ = applied;
  if (last_step_ && !fleet_.durable().stopping())
    report_.standstill = std::max(report_.standstill, now - *last_step_);
  if (applied > applied_) last_step_ = now;
  applied_ = applied;
  if (at_last_fault_end_ && !report_.recovery && applied > *at_last_fault_end_ && !fleet_.unsettled())
    report_.recovery = now - last_fault_end_;
}

bool Run::somebody_claims() {
  return std::ranges::any_of(fleet_.members(), [this](const auto& one) {
    return engine_of(*one.second).claims_open_step(fleet_.durable());
  });
}

std::optional<std::string> Run::wronged() {
  const cluster::Coordinator* const leader = fleet_.leader();
  if (leader == nullptr || !leader->failure() || misconduct_.contradicted()) return std::nullopt;
  return "the run failed, though nobody lied: " + leader->failure()->message();
}

std::optional<std::string> Run::lingering() {
  for (const auto& [machine, member] : fleet_.members()) return fmt::format("{} has not left", machine);
  if (fleet_.leader() == nullptr) return "nobody leads, to say that all have left";
  if (!fleet_.leader()->stopped()) return "the coordinator waits for somebody";
  return std::nullopt;
}

std::optional<std::string> Run::unanswered() {
  for (const auto& [machine, member] : fleet_.members()) {
    const Duration waits = engine_of(*member).waits(member->now());
    if (waits > kAnswerTime) return fmt::format("{} waits {:.1f} s for an answer", machine, waits.seconds());
  }
  return std::nullopt;
}

void Run::judge_the_end() {
  Invariants& invariants = fleet_.invariants();
  if (const auto who = misconduct_.harboured()) return invariants.broke("at the end " + *who);
  if (const auto why = wronged()) return invariants.broke("at the end " + *why);
  if (fleet_.durable().stopping()) {
    if (const auto who = lingering()) invariants.broke("long after the run was told to end " + *who);
    return;
  }
  if (const auto why = fleet_.unsettled()) return invariants.broke("at the end " + *why);
  if (steps() <= steps_in_calm_)
    invariants.broke(
        fmt::format("no step was taken after {}, long after the last fault", steps_in_calm_.value));
  if (lockstep() && invariants.committed_step() <= committed_in_calm_) {
    invariants.broke(fmt::format("nothing was committed after step {}, long after the last fault",
                                 committed_in_calm_.value));
  }
  if (claims_in_calm_ && fleet_.durable().claimed_steps() <= claimed_in_calm_)
    invariants.broke("no step was committed by claims, long after the last fault");
  if (const auto who = unanswered()) invariants.broke("at the end " + *who);
  if (const auto what = disturbance(*settled_, fleet_.calm()))
    invariants.broke("long after the last fault " + *what);
}

void Run::expect(bool come_true, const std::string& what) {
  if (!come_true) fleet_.invariants().broke(what);
}

void Run::judge_expectations() {
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

ChaosReport Run::run() {
  if (!faults_.empty()) first_fault_ = faults_.front().at;
  for (const Fault& fault : faults_) {
    first_fault_ = std::min(first_fault_, fault.at);
    last_fault_end_ = std::max(last_fault_end_, fault.at + fault.lasts);
    fleet_.timeline().at(fault.at, [this, fault] { fleet_.inject(fault); });
  }
  look();
  host::Timeline& timeline = fleet_.timeline();
  Invariants& invariants = fleet_.invariants();
  Instant end = last_fault_end_ + options_.calm;
  bool waits = false;       // for the dead
  std::uint64_t times = 0;  // no more than there were faults: else members end by themselves
  bool comes = false;
  bool waited = false;
  while (timeline.now() < end && !invariants.violation()) {
    const bool before = waits;
    if (fleet_.leader() != nullptr) waits = fleet_.abandoned() || fleet_.waits_for_dead();
    if (waits && !before && ++times <= fleet_.faults_injected()) end = end + kSurelyGivenUp;
    if (before && !waits) {  // sooner than they might have
      const Duration calm = options_.calm + (waited ? cluster::LifeBudget::kShortLife : Duration{});
      end = std::min(end, std::max(last_fault_end_, timeline.now()) + calm);
    }
    if (const Instant late{end.ns - options_.calm.ns / 3}; timeline.now() < late) {
      steps_in_calm_ = steps();
      committed_in_calm_ = invariants.committed_step();
      claimed_in_calm_ = fleet_.durable().claimed_steps();
      claims_in_calm_ = somebody_claims();
      settled_ = fleet_.calm();
      comes = fleet_.somebody_comes() || misconduct_.quarrels();
    } else if (comes && !waited) {
      waited = true;
      end = end + cluster::LifeBudget::kShortLife;
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
  report_.steps_committed = (lockstep() ? invariants.committed_step() : steps()).value;
  if (at_last_fault_end_ && *at_last_fault_end_ > *at_first_fault_)  // the run may have gone back
    report_.steps_under_faults = at_last_fault_end_->value - at_first_fault_->value;
  report_.lives = fleet_.lives();
  report_.virtual_seconds = (timeline.now() - Instant{}).seconds();
  report_.probes = probes_;
  if (!invariants.violation()) judge_the_end();
  if (!invariants.violation()) judge_expectations();
  report_.violation = invariants.violation();
  if (report_.violation && options_.trace) describe();
  return report_;
}

void Run::describe() {
  for (const auto& [machine, member] : fleet_.members()) {
    if (member->member() == nullptr) continue;
    const cluster::Member& one = *member->member();
    std::string links;
    for (const auto& [node, record] : one.view().members()) {
      const net::LinkStatistics link = member->links()->statistics(node);
      links += fmt::format(" {}:{}/{}q", node.value, link.up ? "up" : "down", link.queued_bytes);
    }
    fleet_.trace()(machine,
                   fmt::format("node {} incarnation {}, view {}, installed {}, step {}, links{}",
                               one.self().node.value, one.self().incarnation.value, one.view().epoch().value,
                               one.installed().epoch(), engine_of(*member).step().value, links));
  }
}

}  // namespace

ChaosReport run_cluster_chaos(const ChaosOptions& options) { return Run(options).run(); }

}  // namespace gossamer::simulation
