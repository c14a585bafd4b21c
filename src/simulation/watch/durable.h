// SPDX-License-Identifier: Apache-2.0
//
// Durable: everything that a run's store has ever applied. All that a coordinator says is compared with it.
// An entry that was removed since still counts, because an answer may be overtaken by later changes.
//
// Thread rule: the simulation's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/records.h"
#include "host/api/store.h"
#include "net/link/peer_id.h"

namespace gossamer::simulation {

class Durable {
 public:
  void applied(const host::Change& change);

  [[nodiscard]] Epoch begun() const { return begun_; }
  [[nodiscard]] Epoch installed() const { return installs_.empty() ? Epoch() : installs_.rbegin()->first; }
  [[nodiscard]] StepNumber committed() const { return committed_; }
  [[nodiscard]] bool stopping() const { return stopping_; }
  // Whether the run ends because it cannot go on.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool fenced(Incarnation incarnation) const { return fenced_.contains(incarnation); }
  [[nodiscard]] const cluster::FencedIncarnations& fenced() const { return fenced_; }
  // Whether the incarnation has served, or does.
  [[nodiscard]] bool served(Incarnation incarnation) const;
  // Incarnations that have served, or do, and are not fenced.
  [[nodiscard]] std::vector<Incarnation> serving() const;
  // Whether the node holds something by the last placement, or there is none.
  [[nodiscard]] bool holds(NodeId node) const;
  // The machine of the incarnation, by its record; "": there was none.
  [[nodiscard]] std::string machine_of(Incarnation incarnation) const;
  // How long members have been silent, as the last coordinator that wrote it says.
  [[nodiscard]] const cluster::SilentTimes::Rows& silent() const { return silent_; }
  [[nodiscard]] std::uint64_t lives_fenced() const;
  // Steps, over all tracks, whose whole set of samples was claimed.
  [[nodiscard]] std::uint64_t claimed_steps() const;
  // The first step of a track whose samples are not all claimed.
  [[nodiscard]] StepNumber next_claimed_step(cluster::TrackId track) const;

  // The first thing on which the message rests and which the store has not applied; nothing: all of it is
  // there.
  [[nodiscard]] std::optional<std::string> missing(const membership::Change& change) const;
  [[nodiscard]] std::optional<std::string> missing(const membership::Install& install) const;
  [[nodiscard]] std::optional<std::string> missing(const membership::BeginAnswer& answer) const;
  [[nodiscard]] std::optional<std::string> missing(Incarnation asker, const membership::LeaseAsk& ask,
                                                   const membership::LeaseAnswer& answer) const;
  [[nodiscard]] std::optional<std::string> missing(const membership::ClaimAsk& ask,
                                                   const membership::ClaimAnswer& answer) const;
  [[nodiscard]] std::optional<std::string> missing(const membership::CommitAsk& ask,
                                                   const membership::CommitAnswer& answer) const;

 private:
  [[nodiscard]] bool claimed(const membership::ClaimRecord& claim) const;

  struct Installation {
    std::string decision;
    cluster::HoldingMap holdings;
    bool operator==(const Installation&) const = default;
  };

  std::set<std::uint64_t> leads_;  // incarnations of coordinators
  std::uint64_t next_incarnation_ = 0;
  Epoch begun_;
  std::map<std::string, cluster::HoldingMap> pieces_;
  std::map<Epoch, Installation> installs_;
  std::map<Incarnation, membership::State> members_;  // the furthest state of each
  std::map<Incarnation, std::string> machines_;       // of the same
  cluster::FencedIncarnations fenced_;
  cluster::SilentTimes::Rows silent_;
  std::map<Incarnation, std::set<std::pair<cluster::LeaseKeys, std::int64_t>>> leases_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<Incarnation>> claims_;  // by track and sample
  std::map<std::uint64_t, std::uint64_t> commits_;                                   // by track
  StepNumber committed_;
  bool stopping_ = false;
  bool failed_ = false;
};

// Checks one coordinator's process. It remembers what the process was asked, and when the store last proved
// its lead.
class HeldToStore {
 public:
  explicit HeldToStore(const Durable& durable) : durable_(durable) {}

  // kReplaced: another coordinator has taken the lead since.
  enum class Lead { kNewest, kReplaced };
  void heard(net::PeerId from, const membership::ToCoordinator& said, Lead lead, Instant now);
  void proven(Instant now) { proven_ = now; }
  // A coordinator of another generation begins: drops all requests.
  void forget() { asked_.clear(); }
  [[nodiscard]] std::optional<std::string> missing(net::PeerId to, const membership::ToMember& said) const;
  // A lease that was refused for the sake of an incarnation, which was fenced when the lease was asked for.
  [[nodiscard]] std::optional<std::string> withheld(net::PeerId to, const membership::ToMember& said) const;

 private:
  struct Asked {
    membership::ToCoordinator request;
    Instant first;
    cluster::FencedIncarnations fenced = {};  // then; of requests for leases
  };
  using Request = std::pair<Incarnation, std::uint64_t>;

  [[nodiscard]] const Asked& asked(net::PeerId by, std::uint64_t number) const;

  const Durable& durable_;
  std::map<Request, Asked> asked_;
  Instant proven_;
};

}  // namespace gossamer::simulation
