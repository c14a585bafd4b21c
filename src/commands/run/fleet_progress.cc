// SPDX-License-Identifier: Apache-2.0
#include "commands/run/fleet_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "commands/run/step_watch.h"
#include "run/run_directory.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kLossWindow = 100;

// The cause of a recovery, if a member can have told it: what has become of which member. Anything else is no
// member's to say on the lead's console.
std::string known_cause(std::string cause, const OwnerBook* owners) {
  if (owners == nullptr || cause == "parts were dealt anew") return cause;
  constexpr std::array<std::string_view, 3> kEnds{" was lost", " joined", " left"};
  for (std::string_view left = cause; !left.empty();) {
    const std::size_t comma = std::min(left.find(", "), left.size());
    std::string_view one = left.substr(0, comma);
    left.remove_prefix(std::min(comma + 2, left.size()));
    const auto end = std::ranges::find_if(kEnds, [&](std::string_view word) { return one.ends_with(word); });
    if (end == kEnds.end()) return "the members changed";
    one.remove_suffix(end->size());
    if (!owners->knows_name(one)) return "the members changed";
  }
  return cause;
}

}  // namespace

FleetProgress::FleetProgress(const run::NodeHost& host, const std::string& run, const LedTraining& training,
                             const engine::TrainHooks& hooks, tensors::CheckpointInfo from)
    : host_(host),
      training_(training),
      facts_(training.led_facts()),
      hooks_(hooks),
      paths_(run),
      journal_(host.disk, paths_.reports()),
      inbox_([this](const node::ReportBatch& batch) { return take(batch); }),
      tally_(from.next_step),
      from_(std::move(from)),
      steps_(from_.next_step.value),
      losses_(from_.losses.begin(), from_.losses.end()) {
  // If this fails, the use of the directory will fail with the reason.
  static_cast<void>(host.disk.make_directories(paths_.parts()));
}

// A report that is none, or that cannot be, costs no room. It keeps its number.
Result<std::string> FleetProgress::take(node::ReportBatch batch) {
  std::vector<MemberReport> reports;
  std::string blame;
  for (std::string& bytes : batch.reports) {
    auto read = read_report(bytes);
    if (read.ok() && *read) {
      std::string why = objection(batch.node, **read);
      if (auto* const recovery = std::get_if<engine::FleetRecovery>(&**read)) {
        recovery->cause = known_cause(std::move(recovery->cause), owners_);
        bytes = report_bytes(**read);
      }
      if (why.empty()) {
        reports.push_back(**std::move(read));
        continue;
      }
      blame = std::move(why);
    } else if (!read.ok()) {
      blame = read.error().what;
    }
    bytes.clear();
  }
  if (auto kept = journal_.append(batch); !kept.ok()) return kept.error();
  for (MemberReport& report : reports) add(batch.node, std::move(report));
  return blame;
}

// Why the sender of a report is to be blamed; empty if it is not. A member that has only begun may tell of
// files that it could not read.
std::string FleetProgress::objection(NodeId from, const MemberReport& report) const {
  std::optional<StepNumber> step;  // the first that is not done by it
  if (const auto* const one = std::get_if<engine::MemberStep>(&report))
    step = StepNumber(one->step.value + 1);
  if (const auto* const one = std::get_if<engine::FleetRecovery>(&report)) step = one->step;
  if (step && (*step == StepNumber() || step->value > facts_.steps))
    return fmt::format("it tells of {} steps, and the run has {}", step->value, facts_.steps);
  if (step && owners_ != nullptr && owners_->never_owned(from))
    return "it tells of steps, and owns no part of the run";
  return {};
}

Result<void> FleetProgress::read() {
  const auto cut = journal_.open([this](node::ReportBatch batch) {
    const auto fresh = inbox_.written_before(std::move(batch));
    if (!fresh) return;
    for (const std::string& bytes : fresh->reports) {
      if (auto report = read_report(bytes); report.ok() && *report) add(fresh->node, **std::move(report));
    }
  });
  if (!cut.ok()) return cut.error();
  if (*cut > 0) {
    host_.warn(
        fmt::format("{} bytes at the end of {} were no reports, and are cut off", *cut, paths_.reports()));
  }
  read_end_ = tally_.told_end();
  know_told();
  if (owners_ != nullptr) return {};
  for (const StepLoss& one : tally_.take()) tell(one, false);
  return {};
}

// An earlier lead has told of these. What came in its last moment may be told by nobody.
void FleetProgress::know_told() {
  if (!failed_.empty()) not_written_ = failed_.back().second.error;
  failed_.clear();
  damaged_.clear();
  recoveries_ = recovery_tally_.take(read_end_ > StepNumber() ? StepNumber(read_end_.value - 1) : read_end_);
}

void FleetProgress::sync_reports(Instant now) {
  if (!sync_.aside || sync_.under_way || now < sync_.next) return;
  auto work = journal_.sync_work();
  if (!work) return;
  sync_.under_way = true;
  sync_.next = now + kSyncEvery;
  auto done = std::make_shared<Result<void>>();
  sync_.aside([work = std::move(work), done] { *done = work(); },
              [this, done](Instant) {
                sync_.under_way = false;
                if (!done->ok()) journal_.not_synced();  // it is tried again
              });
}

void FleetProgress::add(NodeId from, MemberReport report) {
  if (const engine::MemberStep* const step = step_in(report)) {
    tally_.add(from, *step);
  } else if (auto* const recovery = std::get_if<engine::FleetRecovery>(&report)) {
    recovery_tally_.add(std::move(*recovery));
  } else if (auto* const failed = std::get_if<FailedCheckpoint>(&report)) {
    failed_.emplace_back(from, std::move(*failed));
  } else if (auto* const damaged = std::get_if<DamagedFile>(&report)) {
    damaged_.push_back(std::move(*damaged));
  }
}

const engine::MemberStep* FleetProgress::step_in(const MemberReport& report) const {
  const auto* const step = std::get_if<engine::MemberStep>(&report);
  return step != nullptr && step->step.value < facts_.steps ? step : nullptr;
}

void FleetProgress::tell_steps(std::optional<StepNumber> limit) {
  for (const StepLoss& one : tally_.take(limit)) tell(one, one.step >= read_end_);
  for (const auto& [node, one] : std::exchange(failed_, {})) {
    hooks_.events("checkpoint_failed",
                  {{"step", one.step.value}, {"node", node.value}, {"error", one.error}});
    not_written_ = one.error;
  }
  for (const DamagedFile& one : std::exchange(damaged_, {}))
    hooks_.events("checkpoint_damaged", {{"file", one.file}, {"error", one.error}});
}

void FleetProgress::tell(const StepLoss& one, bool just_done) {
  keep(one);
  const std::uint64_t samples = steps_ * facts_.batch;
  hooks_.on_step({.steps_done = steps_,
                  .steps_total = facts_.steps,
                  .samples_done = samples,
                  .epoch = static_cast<double>(samples) / static_cast<double>(facts_.samples),
                  .loss = one.loss,
                  .learning_rate = training_.learning_rate(one.step),
                  .active_rows = facts_.active_rows,
                  .just_done = just_done});
}

void FleetProgress::keep(const StepLoss& one) {
  steps_ = one.step.value + 1;
  losses_.push_back(one.loss);
  if (losses_.size() > kLossWindow) losses_.pop_front();
}

void FleetProgress::tell_late_steps(std::optional<StepNumber> limit) {
  const auto late = tally_.late();
  if (!late) return;
  StepTally all(from_.next_step);
  node::ReportInbox fresh([](const node::ReportBatch&) -> Result<std::string> { return std::string(); });
  const auto read = journal_.read_again([&](node::ReportBatch batch) {
    const auto reports = fresh.written_before(std::move(batch));
    if (!reports) return;
    for (const std::string& bytes : reports->reports) {
      const auto report = read_report(bytes);
      const engine::MemberStep* const step = report.ok() && *report ? step_in(**report) : nullptr;
      if (step != nullptr) all.add(reports->node, *step);
    }
  });
  if (!read.ok()) return host_.warn("metrics.jsonl lacks steps: " + read.error().message());
  const StepNumber first = StepWatch::first_of_line(*late, facts_.steps);
  const std::vector<StepLoss> steps = all.take(limit);
  // A journal that was shortened lacks steps that have their lines already.
  if (steps.empty() || (steps.front().step > first && steps.front().step > from_.next_step)) return;
  tally_ = std::move(all);
  losses_ = {from_.losses.begin(), from_.losses.end()};
  for (const StepLoss& one : steps) {
    if (one.step < first) {
      keep(one);
    } else {
      tell(one, false);
    }
  }
}

void FleetProgress::tell_recoveries(Until until) {
  if (until == Until::kNow && !stepping()) return;
  const StepNumber before(until == Until::kEnd ? std::numeric_limits<std::uint64_t>::max() : steps_ - 1);
  for (engine::FleetRecovery& one : recovery_tally_.take(before)) {
    if (name_) one.cause = name_(std::move(one.cause));
    host_.say(fmt::format("{}: it cost {:.2f} s{}", one.cause, one.total.seconds(),
                          one.steps_replayed == 0 ? ""
                                                  : fmt::format(", and {} {} computed anew",
                                                                run::counted(one.steps_replayed, "step"),
                                                                one.steps_replayed == 1 ? "was" : "were")));
    std::apply([this](const auto&... field) { hooks_.events("recovery", {field...}); },
               engine::fields_of(one));
    recoveries_.push_back(std::move(one));
  }
}

void FleetProgress::add_to(StepsCost& cost) const {
  const auto [steps, background] = tally_.bytes_of_step();
  cost.step_bytes = steps;
  cost.background_bytes = background;
  cost.recoveries = recoveries_;
}

tensors::CheckpointInfo FleetProgress::info(const tensors::RunCost& cost) const {
  tensors::RunCost all = cost;
  all += from_.cost;
  return {.next_step = StepNumber(steps_),
          .run_id = facts_.run_id,
          .config_fingerprint = {},
          .workers = host_.compute.workers(),
          .cost = all,
          .losses = {losses_.begin(), losses_.end()}};
}

Error FleetProgress::not_saved(StepNumber newest) const {
  return {.where = paths_.checkpoints(),
          .what = fmt::format("the nodes have ended without a checkpoint of step {}", steps_),
          .got = not_written_.empty() ? "nodes that did not write one in time" : not_written_,
          .expected = "files of all nodes",
          .fix = fmt::format("--resume goes on from step {}, or from a later one that nodes bring when they "
                             "come back",
                             newest.value)};
}

DoneSteps FleetProgress::done() const {
  DoneSteps done{.steps = steps_, .cost_before = from_.cost};
  done.final_loss = std::accumulate(losses_.begin(), losses_.end(), 0.0) /
                    static_cast<double>(std::max<std::size_t>(1, losses_.size()));
  if (from_.next_step > StepNumber()) done.resumed_at = from_.next_step;
  return done;
}

void tell_start(const tensors::CheckpointInfo& from, const engine::TrainHooks& hooks) {
  if (from.next_step == StepNumber()) return;
  hooks.events("resumed", {{"step", from.next_step.value}, {"from_run", from.run_id}});
}

}  // namespace gossamer::commands
