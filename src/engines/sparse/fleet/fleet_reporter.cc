// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_reporter.h"

#include <algorithm>
#include <utility>

#include "cluster/control/view.h"
#include "engines/sparse/fleet/fleet_exchanges.h"

namespace gossamer::sparse_engine {
namespace {

// A layout and its recovery as a change that loses or moves something.
engine::RecoveryWatch::Change change_of(Epoch epoch, const Layout& layout, const RecoveryPlan& plan) {
  engine::RecoveryWatch::Change change{
      .epoch = epoch, .members = {}, .changes = !plan.lost.empty() || !plan.moves.empty()};
  for (const LayoutMember& member : layout.members) {
    change.members[member.node] = {.before = member.before && !holds_nothing(*member.before),
                                   .after = !holds_nothing(member.after)};
  }
  change.steps_replayed = std::ranges::count(plan.behind, true) > 0 ? 1 : 0;
  if (!plan.lost.empty()) change.steps_replayed = plan.resume.value - plan.base.value;
  return change;
}

// Whether a stage brings data that are somewhere else. The others compute lost pieces anew.
bool brings(RecoveryStage::Kind stage) {
  using Kind = RecoveryStage::Kind;
  return stage == Kind::kLogs || stage == Kind::kCopies || stage == Kind::kDone;
}

}  // namespace

void FleetReporter::computes(RecoveryStage::Kind stage, Instant now) {
  brings(stage) ? watch_.loads(now) : watch_.replays(now);
}

// Exchanges sums of dh as part of computing anew. All other exchanges bring data that is somewhere else.
void FleetReporter::exchanges(RecoveryStage::Kind stage, Instant now) {
  stage == RecoveryStage::Kind::kGradients ? watch_.replays(now) : watch_.loads(now);
}

void FleetReporter::begin_layout(Epoch epoch, const Layout& layout, const RecoveryPlan& plan, Instant now) {
  cluster::Member& member = *process_.member();
  watch_.installed(change_of(epoch, layout, plan), engine::known_members(member.view()), now);
  recent_.clear();
  member.tell_steps(std::nullopt);
}

void FleetReporter::measure(FleetLearner& learner, const sparse::NetworkPart& part, Beside beside,
                            Instant now) {
  const ComputeTime own = learner.take_part_time();
  if (clock_ == nullptr || learner.job().one_machine) return;
  const Duration cpu = clock_->process_cpu();
  const Duration all_cpu = cpu - std::exchange(cpu_before_, cpu);
  const Duration whole = now - std::exchange(measured_at_, now);
  if (beside == Beside::kSnapshot) return;
  process_.member()->measured({.work = static_cast<double>(shards_of(part).size()),
                               .took = own.took,
                               .cpu = own.cpu,
                               .process_cpu = own.process_cpu,
                               .all_cpu = all_cpu,
                               .whole = whole},
                              now);
}

std::optional<engine::FleetRecovery> FleetReporter::stepped(StepNumber step, double loss, Instant now) {
  recent_.add(loss, sent());
  process_.member()->tell_steps(recent_.figures());
  return watch_.stepped(step, now);
}

engine::SentBytes FleetReporter::sent() const {
  const net::Links& links = *process_.links();
  const std::uint64_t steps = links.sent_bytes(kStepChannel);
  return {.steps = steps, .background = links.sent_bytes() - steps};
}

}  // namespace gossamer::sparse_engine
