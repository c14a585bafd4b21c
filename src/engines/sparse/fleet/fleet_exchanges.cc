// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_exchanges.h"

#include <utility>

namespace gossamer::sparse_engine {
namespace {

// Rounds of steps have the numbers below.
constexpr std::uint64_t kStages = 1ULL << 62;
constexpr std::uint64_t kSnapshots = 1ULL << 63;
constexpr std::uint64_t kHalted = kSnapshots - 1;

}  // namespace

cluster::OperationId pack(const ExchangeName& name, std::uint64_t rounds) {
  switch (name.kind) {
    case ExchangeName::Kind::kRound: break;
    case ExchangeName::Kind::kStage: return cluster::OperationId(kStages + name.round);
    case ExchangeName::Kind::kSnapshot:
      return cluster::OperationId(kSnapshots + name.step.value * kSnapshotExchanges + name.round);
    case ExchangeName::Kind::kHalted: return cluster::OperationId(kHalted);
  }
  return cluster::OperationId(name.step.value * rounds + name.round);
}

ExchangeName unpack(cluster::OperationId number, std::uint64_t rounds) {
  const std::uint64_t value = number.value;
  if (value >= kSnapshots) {
    return {.kind = ExchangeName::Kind::kSnapshot,
            .step = StepNumber((value - kSnapshots) / kSnapshotExchanges),
            .round = (value - kSnapshots) % kSnapshotExchanges};
  }
  if (value == kHalted) return {.kind = ExchangeName::Kind::kHalted};
  if (value >= kStages) return {.kind = ExchangeName::Kind::kStage, .round = value - kStages};
  return {.kind = ExchangeName::Kind::kRound, .step = StepNumber(value / rounds), .round = value % rounds};
}

// The rounds of two steps in flight go beside each other. So do a snapshot and all that is none.
bool follows(const ExchangeName& earlier, const ExchangeName& later) {
  constexpr std::uint64_t kMostInFlight = 2;
  const bool of_one = earlier.step == later.step && earlier.round < later.round;
  if (earlier.kind != later.kind) return false;
  switch (earlier.kind) {
    case ExchangeName::Kind::kRound: return of_one || earlier.step.value + kMostInFlight <= later.step.value;
    case ExchangeName::Kind::kStage: return of_one;
    case ExchangeName::Kind::kSnapshot: return of_one || earlier.step < later.step;
    case ExchangeName::Kind::kHalted: break;
  }
  return false;
}

cluster::Operation round_operation(const FleetLearner& learner, StepNumber step, FleetRound round,
                                   std::size_t rank) {
  const bool gradient = round.kind == FleetRound::Kind::kGradient;
  cluster::Operation operation{
      .kind = gradient ? cluster::OperationKind::kAllToAll : cluster::OperationKind::kAllGather,
      .parts = learner.round_bytes(step, round),
      .from = {}};
  if (gradient) operation.from.assign(operation.parts.size(), operation.parts[rank]);
  return operation;
}

cluster::Operation stage_operation(const FleetJob& job, const RecoveryPlan& plan, RecoveryStage stage,
                                   std::size_t rank, std::size_t members) {
  cluster::Operation operation{.kind = cluster::OperationKind::kAllToAll, .parts = {}, .from = {}};
  for (std::size_t other = 0; other < members; ++other) {
    operation.parts.push_back(stage_bytes(job, plan, stage, rank, other));
    operation.from.push_back(stage_bytes(job, plan, stage, other, rank));
  }
  return operation;
}

host::Lane lane_of_steps(const FleetJob& job, const Layout& layout) {
  for (const FleetRound& round : step_rounds(job.shape.layers())) {
    for (const LayoutMember& one : layout.members) {
      if (FleetLearner::most_round_bytes(job, round, one.after) > host::kBulkBytes) return host::Lane::kBulk;
    }
  }
  return host::Lane::kControl;
}

std::optional<cluster::ExchangeView> exchange_view(const cluster::View& view, const Layout& layout,
                                                   Epoch epoch) {
  cluster::ExchangeView exchange{.epoch = epoch, .members = {}};
  for (const LayoutMember& one : layout.members) {
    const auto record = view.members().find(one.node);
    if (record == view.members().end()) return std::nullopt;
    exchange.members.push_back(cluster::peer_of(record->second));
  }
  return exchange;
}

cluster::Collectives::Options FleetExchanges::options(std::uint32_t channel) const {
  return {
      .self = self_,
      .channel = channel,
      .follows = [this](cluster::OperationId earlier,
                        cluster::OperationId later) { return follows(name_of(earlier), name_of(later)); },
      .gone = [&process = process_](
                  net::PeerId peer) { return process.member()->view().fenced().contains(peer.incarnation); }};
}

void FleetExchanges::rest() {
  Events nobody_asks;
  recovery_.lost(self_, nobody_asks);
}

FleetExchanges::Events FleetExchanges::install(const cluster::ExchangeView& view, host::Lane lane) {
  Events nobody_asks;
  steps_.lost(self_, nobody_asks);
  recovery_.lost(self_, nobody_asks);
  Events events;
  steps_.install(view, {}, events);
  recovery_.install(view, {}, events);
  members_ = view.members;
  lane_ = lane;
  return events;
}

std::optional<net::PeerId> FleetExchanges::member(std::size_t rank) const {
  return rank < members_.size() ? std::optional(members_[rank]) : std::nullopt;
}

FleetExchanges::Events FleetExchanges::begin(const ExchangeName& name, const cluster::Operation& operation,
                                             Slices given) {
  Events events;
  (name.kind == ExchangeName::Kind::kRound ? steps_ : recovery_)
      .begin(pack(name, rounds_), operation, std::move(given), events);
  return events;
}

FleetExchanges::Events FleetExchanges::on(const net::Arrived& event) {
  Events events;
  (event.message.channel == kStepChannel ? steps_ : recovery_).on(event.from, event.message, events);
  return events;
}

FleetExchanges::Events FleetExchanges::lost(net::PeerId peer) {
  Events events;
  steps_.lost(peer, events);
  recovery_.lost(peer, events);
  return events;
}

std::optional<cluster::Awaited> FleetExchanges::awaits() const {
  auto missing = steps_.missing();
  if (!missing) missing = recovery_.missing();
  if (!missing) return std::nullopt;
  cluster::Awaited awaited{.exchange = missing->id.value, .messages = missing->chunks};
  for (const net::PeerId peer : missing->members) awaited.nodes.insert(peer.node);
  return awaited;
}

void FleetExchanges::send(cluster::Send send, Instant now) {
  const bool of_steps = send.message.channel == kStepChannel;
  (of_steps ? counts_.step_bytes : counts_.background_bytes) += net::counted_bytes(send.message);
  // False for a peer that is no longer a member. Then the view is changing.
  static_cast<void>(
      process_.member()->send(send.to, of_steps ? lane_ : host::Lane::kBulk, std::move(send.message), now));
}

}  // namespace gossamer::sparse_engine
