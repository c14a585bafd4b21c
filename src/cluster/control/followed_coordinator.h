// SPDX-License-Identifier: Apache-2.0
//
// FollowedCoordinator: the coordinator that a member follows from life to life. It opens the link to the one
// with the highest generation, hears its signs of life, and asks all addresses `Lead` while it is silent.
//
// Thread rule: one owner, the member's.
#pragma once

#include <gossamer/membership.pb.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"
#include "cluster/control/control_probe.h"
#include "cluster/control/defect.h"
#include "cluster/control/view.h"
#include "cluster/membership/failure_detector.h"
#include "net/link/links.h"

namespace gossamer::cluster {

class FollowedCoordinator {
 public:
  struct Options {
    std::string run;
    std::uint64_t seed = 0;
    Defect defect = Defect::kNone;
    ProbeCounts<ControlProbe>* probes = nullptr;
  };
  // Asks a coordinator `Lead`; the answer comes to answered().
  using AskLead = std::function<void(const host::Endpoint& control, std::string bytes)>;
  // From one question to the next, on average; doubling.
  static constexpr Duration kSearchFirst{250'000'000};
  static constexpr Duration kSearchAtMost{2'000'000'000};

  // `links` outlives this. Call follow() before all others.
  FollowedCoordinator(Options options, net::Links& links, AskLead ask_lead, Instant now);

  // Follows this coordinator, unless its generation is a lower one.
  void follow(const membership::LeadAnswer& lead, Instant now);
  // An answer to `Lead`. What cannot be read names no coordinator.
  void answered(const std::string& answer, Instant now);
  // The coordinator said something. False: it may not say anything any more.
  [[nodiscard]] bool heard(Generation generation, Instant now);

  // Events of the link. False: it was up already.
  bool up();
  void broken(Instant now);
  void ended() { linked_ = connected_ = bulk_up_ = false; }
  void bulk(bool up) { bulk_up_ = up; }

  // Asks the next address.
  void search(Instant now);
  // Searches from now on, unless it does already.
  void search_soon(Instant now);
  // Searches from now on, whatever was planned.
  void search_now(Instant now) { next_search_ = now; }
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const { return next_search_; }

  [[nodiscard]] net::PeerId peer() const { return {kCoordinatorNode, incarnation_}; }
  [[nodiscard]] Generation generation() const { return generation_; }
  // The link was up, and has not ended.
  [[nodiscard]] bool linked() const { return linked_; }
  // The control connection is up.
  [[nodiscard]] bool connected() const { return connected_; }
  // The bulk connection is up.
  [[nodiscard]] bool bulk_up() const { return bulk_up_; }
  // The coordinator said something in this life of the link.
  [[nodiscard]] bool was_heard() const { return heard_; }
  [[nodiscard]] Duration silence(Instant now) const { return now - last_heard_; }
  // This process stood still for so long, until now. That was not the coordinator's silence.
  void excuse(Duration stood_still, Instant now) { last_heard_ = std::min(now, last_heard_ + stood_still); }

 private:
  [[nodiscard]] bool guarded(Defect without) const { return options_.defect != without; }

  const Options options_;
  net::Links& links_;
  AskLead ask_lead_;
  membership::LeadAnswer lead_;
  Generation generation_;
  Incarnation incarnation_;
  bool linked_ = false;
  bool connected_ = false;
  bool bulk_up_ = false;
  bool heard_ = false;
  Rng rng_;
  Duration search_wait_ = kSearchFirst;
  FailureDetector detector_;
  Instant last_heard_;
  std::optional<Instant> next_search_;
  std::size_t next_address_ = 0;
};

}  // namespace gossamer::cluster
