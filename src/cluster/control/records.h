// SPDX-License-Identifier: Apache-2.0
//
// The entries of the coordinator's store, as values: the table in docs/protocols/membership.md. A new
// coordinator begins with read_records(). The other functions make the changes that keep the store so. Thread
// rule: plain functions.
#pragma once

#include <gossamer/membership.pb.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "cluster/membership/claim_ledger.h"
#include "cluster/membership/fenced_incarnations.h"
#include "cluster/membership/lease_table.h"
#include "cluster/membership/mark_ledger.h"
#include "cluster/membership/silent_times.h"
#include "cluster/placement/placement.h"
#include "host/api/store.h"

namespace gossamer::cluster {

using HoldingMap = std::map<placement::ThingId, NodeId>;

struct Records {
  membership::Lead lead;              // next_node and next_incarnation are 0 in an empty store
  Epoch epoch;                        // the last one begun
  FencedIncarnations fenced_in_view;  // of that epoch
  std::set<NodeId> expelled_in_view;  // of that epoch
  membership::Installed installed;
  HoldingMap holdings;
  std::map<NodeId, membership::MemberRecord> members;
  FencedIncarnations fenced;
  SilentTimes::Rows silent;
  std::vector<Lease> leases;
  ClaimLedger::Rows claims;
  MarkLedger::Rows marks;
  std::optional<membership::Stopping> stopping;    // the run is to end
  std::map<std::string, std::string> tokens;       // by id, as cluster/admission keeps them; opaque here
  std::map<NodeId, membership::NodeRecord> nodes;  // that tokens have let in, or that were expelled
};

// Leases are for at most this time, and all numbers of the store stay far below this one. Anything beyond is
// damage.
inline constexpr Duration kLongestLease{3600'000'000'000};
inline constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 62;

// The error is kBadData and names the key that cannot be read.
[[nodiscard]] Result<Records> read_records(std::span<const host::Entry> entries);

// The properties of a run that its store is made for and that cannot change.
struct RunShape {
  std::string run;
  std::uint64_t batch = 1;
  std::vector<TrackId> tracks = {};
};
// Makes the first change of a new lead: takes an incarnation for its coordinator and fences the one before.
// kRefused: the store of another run. kUsage: a store with other ledgers. kBadData: an entry contradicts
// others, as no coordinator leaves it; the error names it.
[[nodiscard]] Result<std::vector<host::Change>> begin_lead(Records& records, const RunShape& shape);

[[nodiscard]] host::Change put_lead(const membership::Lead& lead);
[[nodiscard]] host::Change put_epoch(Epoch epoch, const FencedIncarnations& fenced_in_view,
                                     const std::set<NodeId>& expelled_in_view = {});
[[nodiscard]] host::Change put_installed(const membership::Installed& installed);
// The pieces in which `after` differs from `before`.
[[nodiscard]] std::vector<host::Change> put_holdings(const HoldingMap& before, const HoldingMap& after);
[[nodiscard]] host::Change put_member(const membership::MemberRecord& record);
[[nodiscard]] host::Change remove_member(Incarnation incarnation);
[[nodiscard]] host::Change put_fenced(const FencedIncarnations& fenced);
[[nodiscard]] host::Change put_silent(const SilentTimes::Rows& rows);
[[nodiscard]] host::Change put_lease(const Lease& lease);
[[nodiscard]] host::Change remove_lease(const Lease& lease);
[[nodiscard]] host::Change put_claim(const Claim& claim);
[[nodiscard]] host::Change remove_claim(const Claim& claim);
[[nodiscard]] host::Change put_commit(const TrackCommit& commit);
[[nodiscard]] host::Change put_mark(const Mark& mark);
[[nodiscard]] host::Change remove_mark(TrackId track, Incarnation by);
[[nodiscard]] host::Change put_stopping(const membership::Stopping& stopping);
[[nodiscard]] host::Change put_token(const std::string& id, const std::string& text);
[[nodiscard]] host::Change remove_token(const std::string& id);
[[nodiscard]] host::Change put_node(const membership::NodeRecord& record);
[[nodiscard]] host::Change put_committed(StepNumber committed);

}  // namespace gossamer::cluster
