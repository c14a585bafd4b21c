// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/durable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace gossamer::simulation {
namespace {

using cluster::ClaimOutcome;
using cluster::CommitOutcome;
using cluster::LeaseKeys;
using cluster::LeaseOutcome;

LeaseKeys keys_of(const membership::LeaseKeys& keys) {
  return {cluster::LeaseSpace(keys.space()), keys.begin(), keys.end()};
}

}  // namespace

void Durable::applied(const host::Change& change) {
  if (change.key.starts_with("holdings/")) pieces_.erase(change.key);
  if (!change.value) return;
  const std::array<host::Entry, 1> entries{host::Entry{.key = change.key, .value = *change.value}};
  const auto read = cluster::read_records(entries);
  CHECK(read.ok(), read.error().message());
  if (change.key == "lead") {
    leads_.insert(read->lead.incarnation());
    next_incarnation_ = std::max<std::uint64_t>(next_incarnation_, read->lead.next_incarnation());
  } else if (change.key == "installed") {
    Installation& install = installs_[Epoch(read->installed.epoch())];
    install = {.decision = read->installed.decision(), .holdings = {}};
    for (const auto& [key, piece] : pieces_) install.holdings.insert(piece.begin(), piece.end());
  } else if (change.key.starts_with("holdings/")) {
    pieces_[change.key] = read->holdings;
  } else if (change.key == "fenced") {
    fenced_ = read->fenced;
  } else if (change.key == "silent") {
    silent_ = read->silent;
  } else if (change.key == "committed") {
    committed_ = read->marks.committed;
  }
  begun_ = std::max(begun_, read->epoch);
  stopping_ = stopping_ || read->stopping.has_value();
  failed_ = failed_ || (read->stopping && read->stopping->failed());
  for (const auto& [node, record] : read->members) {
    membership::State& furthest = members_[Incarnation(record.incarnation())];
    furthest = std::max(furthest, record.state());
    machines_[Incarnation(record.incarnation())] = record.machine();
  }
  for (const cluster::Lease& one : read->leases) leases_[one.holder].insert({one.keys, one.duration.ns});
  for (const cluster::Claim& one : read->claims.claims) {
    for (SampleId id = one.ids.begin; id < one.ids.end; ++id)
      claims_[{one.track.value, id.value}].insert(one.by);
  }
  for (const cluster::TrackCommit& one : read->claims.commits)
    commits_[one.track.value] = std::max(commits_[one.track.value], one.next.value);
}

bool Durable::served(Incarnation incarnation) const {
  const auto member = members_.find(incarnation);
  return member != members_.end() && member->second >= membership::SERVING;
}

std::vector<Incarnation> Durable::serving() const {
  std::vector<Incarnation> serving;
  for (const auto& [one, state] : members_) {
    if (state >= membership::SERVING && !fenced_.contains(one)) serving.push_back(one);
  }
  return serving;
}

std::string Durable::machine_of(Incarnation incarnation) const {
  const auto machine = machines_.find(incarnation);
  return machine == machines_.end() ? std::string() : machine->second;
}

bool Durable::holds(NodeId node) const {
  if (installs_.empty() || installs_.rbegin()->second.holdings.empty()) return true;
  const auto& holdings = installs_.rbegin()->second.holdings;
  return std::ranges::any_of(holdings, [&](const auto& one) { return one.second == node; });
}

std::uint64_t Durable::lives_fenced() const {
  std::uint64_t lives = 0;
  for (const cluster::FencedIncarnations::Run& run : fenced_.runs())
    lives += run.last.value - run.first.value + 1;
  return lives;
}

std::uint64_t Durable::claimed_steps() const {
  std::uint64_t steps = 0;
  for (const auto& [track, next] : commits_) steps += next;
  return steps;
}

StepNumber Durable::next_claimed_step(cluster::TrackId track) const {
  const auto next = commits_.find(track.value);
  return next == commits_.end() ? StepNumber() : StepNumber(next->second);
}

std::optional<std::string> Durable::missing(const membership::Change& change) const {
  if (change.epoch() > begun_.value) return fmt::format("epoch {}", change.epoch());
  for (const membership::MemberRecord& record : change.members()) {
    const auto known = members_.find(Incarnation(record.incarnation()));
    if (known == members_.end() || known->second < record.state())
      return fmt::format("the record of incarnation {}", record.incarnation());
  }
  for (const membership::FencedRun& run : change.fenced()) {
    for (std::uint64_t one = run.first(); one <= run.last(); ++one) {
      if (!fenced(Incarnation(one))) return fmt::format("the fencing of incarnation {}", one);
    }
  }
  return change.has_installed() ? missing(change.installed()) : std::nullopt;
}

std::optional<std::string> Durable::missing(const membership::Install& install) const {
  Installation said{.decision = install.decision(), .holdings = {}};
  for (const membership::Holding& one : install.holdings())
    said.holdings[placement::ThingId(one.thing())] = NodeId(one.node());
  const auto known = installs_.find(Epoch(install.epoch()));
  if (known != installs_.end() && known->second == said) return std::nullopt;
  return fmt::format("the placement of epoch {}", install.epoch());
}

std::optional<std::string> Durable::missing(const membership::BeginAnswer& answer) const {
  if (!leads_.contains(answer.lead().incarnation()))
    return fmt::format("the coordinator's incarnation {}", answer.lead().incarnation());
  if (answer.incarnation() >= next_incarnation_ || !members_.contains(Incarnation(answer.incarnation())))
    return fmt::format("incarnation {}", answer.incarnation());
  return std::nullopt;
}

std::optional<std::string> Durable::missing(Incarnation asker, const membership::LeaseAsk& ask,
                                            const membership::LeaseAnswer& answer) const {
  const auto outcome = static_cast<LeaseOutcome>(answer.outcome());
  const LeaseKeys keys = keys_of(ask.keys());
  const bool given = outcome == LeaseOutcome::kGranted || outcome == LeaseOutcome::kRenewed;
  if (!given && outcome != LeaseOutcome::kHeld) return std::nullopt;
  const auto of_holder = leases_.find(given ? asker : Incarnation(answer.holder()));
  if (of_holder != leases_.end()) {
    const auto rests = [&](const auto& lease) {
      const LeaseKeys& held = lease.first;
      if (given) return held == keys && lease.second == answer.duration_ns();
      return held.space == keys.space && held.begin < keys.end && keys.begin < held.end;
    };
    if (std::any_of(of_holder->second.begin(), of_holder->second.end(), rests)) return std::nullopt;
  }
  return fmt::format("a lease of the keys {} to {}", keys.begin, keys.end);
}

bool Durable::claimed(const membership::ClaimRecord& claim) const {
  for (std::uint64_t id = claim.begin(); id < claim.end(); ++id) {
    const auto known = claims_.find({claim.track(), id});
    if (known == claims_.end() || !known->second.contains(Incarnation(claim.by()))) return false;
  }
  return true;
}

std::optional<std::string> Durable::missing(const membership::ClaimAsk& ask,
                                            const membership::ClaimAnswer& answer) const {
  const auto kept = [this](const membership::ClaimRecord& one) { return claimed(one); };
  const bool all = std::all_of(answer.granted().begin(), answer.granted().end(), kept) &&
                   std::all_of(answer.taken().begin(), answer.taken().end(), kept);
  if (!all) return fmt::format("a claim in step {} of track {}", ask.step(), ask.track());
  if (static_cast<ClaimOutcome>(answer.outcome()) != ClaimOutcome::kCommitted) return std::nullopt;
  membership::CommitAsk commit;
  commit.set_track(ask.track());
  commit.set_step(ask.step());
  membership::CommitAnswer already;
  already.set_outcome(static_cast<std::uint32_t>(CommitOutcome::kAlready));
  return missing(commit, already);
}

std::optional<std::string> Durable::missing(const membership::CommitAsk& ask,
                                            const membership::CommitAnswer& answer) const {
  const auto outcome = static_cast<CommitOutcome>(answer.outcome());
  if (outcome != CommitOutcome::kCommitted && outcome != CommitOutcome::kAlready) return std::nullopt;
  const auto known = commits_.find(ask.track());
  if (known != commits_.end() && known->second > ask.step()) return std::nullopt;
  return fmt::format("the commit of step {} of track {}", ask.step(), ask.track());
}

void HeldToStore::heard(net::PeerId from, const membership::ToCoordinator& said, Lead lead, Instant now) {
  std::uint64_t number = 0;
  if (said.has_lease()) number = said.lease().number();
  if (said.has_claim()) number = said.claim().number();
  if (said.has_commit()) number = said.commit().number();
  if (number == 0) return;
  const auto [entry, first] = asked_.try_emplace({from.incarnation, number}, Asked{said, now});
  // A coordinator that was replaced does not know what the next one has fenced.
  if (first && lead == Lead::kNewest && said.has_lease()) entry->second.fenced = durable_.fenced();
}

const HeldToStore::Asked& HeldToStore::asked(net::PeerId by, std::uint64_t number) const {
  const auto found = asked_.find({by.incarnation, number});
  CHECK(found != asked_.end(), by.incarnation.value, number);
  return found->second;
}

std::optional<std::string> HeldToStore::withheld(net::PeerId to, const membership::ToMember& said) const {
  if (!said.has_lease() || static_cast<LeaseOutcome>(said.lease().outcome()) != LeaseOutcome::kHeld)
    return std::nullopt;
  const Asked& request = asked(to, said.lease().number());
  if (!request.fenced.contains(Incarnation(said.lease().holder()))) return std::nullopt;
  const membership::LeaseKeys& keys = request.request.lease().keys();
  return fmt::format("the lease of keys {} to {}, for the sake of incarnation {}, which was fenced before",
                     keys.begin(), keys.end(), said.lease().holder());
}

std::optional<std::string> HeldToStore::missing(net::PeerId to, const membership::ToMember& said) const {
  if (said.has_change()) return durable_.missing(said.change());
  if (said.has_install()) return durable_.missing(said.install());
  if (said.has_stop() && !durable_.stopping()) return "that the run is to end";
  if (said.has_lease()) {
    const Asked& request = asked(to, said.lease().number());
    const bool renewed = static_cast<LeaseOutcome>(said.lease().outcome()) == LeaseOutcome::kRenewed;
    if (renewed && proven_ < request.first) return "a proof that it leads since it was asked for time";
    return durable_.missing(to.incarnation, request.request.lease(), said.lease());
  }
  if (said.has_claim())
    return durable_.missing(asked(to, said.claim().number()).request.claim(), said.claim());
  if (said.has_commit())
    return durable_.missing(asked(to, said.commit().number()).request.commit(), said.commit());
  return std::nullopt;
}

}  // namespace gossamer::simulation
