// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_reporter.h"

#include <map>
#include <utility>

#include "cluster/control/view.h"
#include "engines/sparse/fleet/fleet_exchanges.h"

namespace gossamer::sparse_engine {

void FleetReporter::begin_layout(Epoch epoch, const Layout& layout, const RecoveryPlan& plan, Instant now) {
  cluster::Member& member = *process_.member();
  std::map<NodeId, RecoveryWatch::Known> known;
  for (const auto& [node, record] : member.view().members())
    known[node] = {.name = record.name(), .drains = record.state() == membership::DRAINING};
  watch_.installed(epoch, layout, plan, known, now);
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
