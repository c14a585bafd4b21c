// SPDX-License-Identifier: Apache-2.0
//
// The exchanges of a member of a sparse run with the others of its layout (docs/protocols/sparse-step.md).
// Each has a name, the operation that it is, and the messages that it takes.
//
// Thread rule: the loop thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/slice.h"
#include "base/time.h"
#include "cluster/collective/collectives.h"
#include "cluster/collective/view.h"
#include "cluster/control/engine.h"
#include "cluster/control/member_process.h"
#include "cluster/control/view.h"
#include "engines/sparse/fleet/recovery/recovery.h"
#include "engines/sparse/fleet/recovery/recovery_plan.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/fleet/step/layout.h"
#include "host/api/network.h"

namespace gossamer::sparse_engine {

// Recoveries may be large, and go over the bulk lane. Steps are small, or as large as the user wants.
using net::kRecoveryChannel;
using net::kStepChannel;

// What an exchange is for.
struct ExchangeName {
  enum class Kind : std::uint8_t {
    kRound,     // of a step
    kStage,     // of the recovery of this layout; `round` is its stage
    kSnapshot,  // of the state before a step; `round` is below kSnapshotExchanges
    kHalted,    // "I take no further step"
  };
  Kind kind = Kind::kRound;
  StepNumber step = {};
  std::uint64_t round = 0;
  bool operator==(const ExchangeName&) const = default;
};
inline constexpr std::uint64_t kSnapshotExchanges = 3;

// The number of an exchange, and its name again. A step has so many `rounds`.
[[nodiscard]] cluster::OperationId pack(const ExchangeName& name, std::uint64_t rounds);
[[nodiscard]] ExchangeName unpack(cluster::OperationId number, std::uint64_t rounds);

// Whether a member begins the later exchange only with the result of the earlier one, whatever the staleness.
[[nodiscard]] bool follows(const ExchangeName& earlier, const ExchangeName& later);

// What the member of `rank` exchanges in a round that it has computed, and in a stage.
[[nodiscard]] cluster::Operation round_operation(const FleetLearner& learner, StepNumber step,
                                                 FleetRound round, std::size_t rank);
[[nodiscard]] cluster::Operation stage_operation(const FleetJob& job, const RecoveryPlan& plan,
                                                 RecoveryStage stage, std::size_t rank, std::size_t members);

// The lane of the steps' messages in a layout.
[[nodiscard]] host::Lane lane_of_steps(const FleetJob& job, const Layout& layout);
// The members of the layout, of this epoch. Nothing: not all of them are in the view.
[[nodiscard]] std::optional<cluster::ExchangeView> exchange_view(const cluster::View& view,
                                                                 const Layout& layout, Epoch epoch);

class FleetExchanges {
 public:
  using Events = cluster::CollectiveEvents;
  struct Counts {
    // In net::counted_bytes().
    std::uint64_t& step_bytes;
    std::uint64_t& background_bytes;
  };
  // The process and the counts outlive it.
  FleetExchanges(cluster::MemberProcess& process, net::PeerId self, Counts counts)
      : process_(process),
        counts_(counts),
        self_(self),
        steps_(options(kStepChannel)),
        recovery_(options(kRecoveryChannel)) {}
  FleetExchanges(const FleetExchanges&) = delete;
  FleetExchanges& operator=(const FleetExchanges&) = delete;

  // Requires at least one round a step.
  void set_rounds(std::uint64_t rounds) { rounds_ = rounds; }
  // The member comes to rest. Recoveries and snapshots end, and nobody is told. Rounds of steps still take
  // what others have given, until the next layout.
  void rest();
  // Takes over a layout. Messages of steps go over `lane`.
  [[nodiscard]] Events install(const cluster::ExchangeView& view, host::Lane lane);
  [[nodiscard]] Events begin(const ExchangeName& name, const cluster::Operation& operation, Slices given);
  // A message of one of the two channels.
  [[nodiscard]] Events on(const net::Arrived& event);
  [[nodiscard]] Events lost(net::PeerId peer);
  // What is missing to end the exchange under way. A snapshot goes beside steps, until a step waits for it.
  [[nodiscard]] std::optional<cluster::Awaited> awaits() const;
  [[nodiscard]] ExchangeName name_of(cluster::OperationId number) const { return unpack(number, rounds_); }
  // The member of that rank in the last layout that was taken over; nothing: there is none.
  [[nodiscard]] std::optional<net::PeerId> member(std::size_t rank) const;
  // Sends a message of an exchange.
  void send(cluster::Send message, Instant now);

 private:
  [[nodiscard]] cluster::Collectives::Options options(std::uint32_t channel) const;

  cluster::MemberProcess& process_;
  const Counts counts_;
  const net::PeerId self_;
  cluster::Collectives steps_;
  cluster::Collectives recovery_;
  std::vector<net::PeerId> members_;  // by rank
  std::uint64_t rounds_ = 1;
  host::Lane lane_ = host::Lane::kControl;
};

}  // namespace gossamer::sparse_engine
