// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/control/view.h"

namespace gossamer::cluster {
namespace {

constexpr std::uint64_t kHoldingsInPiece = 4096;

template <class Proto>
host::Change put(std::string key, const Proto& value) {
  return {.key = std::move(key), .value = value.SerializeAsString()};
}
host::Change removed(std::string key) { return {.key = std::move(key), .value = std::nullopt}; }

std::string digits(std::uint64_t number) { return fmt::format("{:020}", number); }
std::string member_key(Incarnation incarnation) { return "members/" + digits(incarnation.value); }
std::string lease_key(const Lease& lease) {
  return fmt::format("leases/{}/{}", digits(lease.keys.space.value), digits(lease.keys.begin));
}
std::string claim_key(const Claim& claim) {
  return fmt::format("claims/{}/{}/{}", digits(claim.track.value), digits(claim.step.value),
                     digits(claim.ids.begin.value));
}
std::string mark_key(TrackId track, Incarnation by) {
  return fmt::format("marks/{}/{}", digits(track.value), digits(by.value));
}
std::string holdings_key(std::uint64_t piece) { return fmt::format("holdings/{:06}", piece); }

// Reads one entry into `records`; false if key or value is none of ours.
class Reader {
 public:
  explicit Reader(Records& records) : records_(records) {}

  bool read(const host::Entry& entry) {
    const std::string_view key = entry.key;
    const auto is = [&](std::string_view prefix) { return key.starts_with(prefix); };
    if (key == "lead") return records_.lead.ParseFromString(entry.value);
    if (key == "installed") return records_.installed.ParseFromString(entry.value);
    if (key == "epoch") return read_epoch(entry.value);
    if (key == "fenced") return read_fenced(entry.value);
    if (key == "committed") return read_committed(entry.value);
    if (key == "stopping") return read_stopping(entry.value);
    if (is("holdings/")) return read_holdings(entry.value);
    if (is("members/")) return read_member(entry.value);
    if (is("leases/")) return read_lease(entry.value);
    if (is("claims/")) return read_claim(entry.value);
    if (is("commits/")) return read_commit(entry.value);
    if (is("marks/")) return read_mark(entry.value);
    return false;
  }

 private:
  bool read_epoch(const std::string& value) {
    membership::Epoch epoch;
    if (!epoch.ParseFromString(value)) return false;
    records_.epoch = Epoch(epoch.number());
    return take(epoch.fenced(), records_.fenced_in_view);
  }
  bool read_fenced(const std::string& value) {
    membership::Fenced fenced;
    return fenced.ParseFromString(value) && take(fenced.runs(), records_.fenced);
  }
  static bool take(const google::protobuf::RepeatedPtrField<membership::FencedRun>& from,
                   FencedIncarnations& to) {
    std::vector<FencedIncarnations::Run> runs;
    for (const membership::FencedRun& run : from) {
      if (run.first() > run.last()) return false;
      runs.push_back({Incarnation(run.first()), Incarnation(run.last())});
    }
    to = FencedIncarnations(runs);
    return true;
  }
  bool read_committed(const std::string& value) {
    membership::CommittedRecord committed;
    if (!committed.ParseFromString(value)) return false;
    records_.marks.committed = StepNumber(committed.next());
    return true;
  }
  bool read_stopping(const std::string& value) {
    membership::Stopping stopping;
    if (!stopping.ParseFromString(value)) return false;
    records_.stopping = stopping;
    return true;
  }
  bool read_holdings(const std::string& value) {
    membership::Holdings holdings;
    if (!holdings.ParseFromString(value)) return false;
    for (const membership::Holding& one : holdings.holdings())
      records_.holdings[placement::ThingId(one.thing())] = NodeId(one.node());
    return true;
  }
  bool read_member(const std::string& value) {
    membership::MemberRecord record;
    if (!record.ParseFromString(value) || record.node() == 0 || record.incarnation() == 0) return false;
    return records_.members.emplace(NodeId(record.node()), std::move(record)).second;
  }
  bool read_lease(const std::string& value) {
    membership::LeaseRecord lease;
    if (!lease.ParseFromString(value)) return false;
    if (lease.keys().begin() >= lease.keys().end() || lease.duration_ns() <= 0) return false;
    records_.leases.push_back({{LeaseSpace(lease.keys().space()), lease.keys().begin(), lease.keys().end()},
                               Incarnation(lease.holder()),
                               Duration{lease.duration_ns()}});
    return true;
  }
  bool read_claim(const std::string& value) {
    membership::ClaimRecord claim;
    if (!claim.ParseFromString(value) || claim.begin() >= claim.end()) return false;
    records_.claims.claims.push_back({TrackId(claim.track()),
                                      StepNumber(claim.step()),
                                      {SampleId(claim.begin()), SampleId(claim.end())},
                                      Incarnation(claim.by())});
    return true;
  }
  bool read_commit(const std::string& value) {
    membership::CommitRecord commit;
    if (!commit.ParseFromString(value)) return false;
    records_.claims.commits.push_back({TrackId(commit.track()), StepNumber(commit.next())});
    return true;
  }
  bool read_mark(const std::string& value) {
    membership::MarkRecord mark;
    if (!mark.ParseFromString(value)) return false;
    records_.marks.marks.push_back({TrackId(mark.track()), Incarnation(mark.by()), StepNumber(mark.next())});
    return true;
  }

  Records& records_;
};

using Pieces = std::map<std::uint64_t, membership::Holdings>;

// The NNNNNN-th 4,096 things, by their numbers.
Pieces pieces_of(const HoldingMap& holdings) {
  Pieces pieces;
  for (const auto& [thing, node] : holdings) {
    membership::Holding& one = *pieces[thing.value / kHoldingsInPiece].add_holdings();
    one.set_thing(thing.value);
    one.set_node(node.value);
  }
  return pieces;
}

void add_runs(const FencedIncarnations& fenced,
              google::protobuf::RepeatedPtrField<membership::FencedRun>& to) {
  for (const FencedIncarnations::Run& run : fenced.runs()) {
    membership::FencedRun& one = *to.Add();
    one.set_first(run.first.value);
    one.set_last(run.last.value);
  }
}

}  // namespace

Result<Records> read_records(std::span<const host::Entry> entries) {
  Records records;
  Reader reader(records);
  for (const host::Entry& entry : entries) {
    if (!reader.read(entry)) {
      return Error{.kind = ErrorKind::kBadData,
                   .where = entry.key,
                   .what = "cannot read an entry of the coordinator's store",
                   .got = fmt::format("{} bytes", entry.value.size()),
                   .expected = "what docs/protocols/membership.md says",
                   .fix = "go on with the version that wrote it, or start a new run"};
    }
  }
  return records;
}

Result<std::vector<host::Change>> begin_lead(Records& records, const RunShape& shape) {
  membership::Lead& lead = records.lead;
  if (!lead.run().empty() && lead.run() != shape.run) {
    return Error{.kind = ErrorKind::kRefused,
                 .what = "the store belongs to another run",
                 .got = lead.run(),
                 .expected = shape.run,
                 .fix = "give each run a store of its own"};
  }
  if (!lead.run().empty() && (lead.batch() != shape.batch || lead.tracks() != shape.tracks)) {
    return Error{.kind = ErrorKind::kUsage,
                 .what = "the run was begun with another configuration",
                 .got = fmt::format("a batch of {} in {} tracks", shape.batch, shape.tracks),
                 .expected = fmt::format("{} in {}", lead.batch(), lead.tracks()),
                 .fix = "resume it with the configuration that it was begun with"};
  }
  const Incarnation before(lead.incarnation());
  lead.set_run(shape.run);
  lead.set_batch(shape.batch);
  lead.set_tracks(shape.tracks);
  lead.set_next_node(std::max(lead.next_node(), kCoordinatorNode.value + 1));
  lead.set_incarnation(std::max<std::uint64_t>(lead.next_incarnation(), 1));
  lead.set_next_incarnation(lead.incarnation() + 1);
  std::vector<host::Change> changes{put_lead(lead)};
  if (before.value != 0 && records.fenced.fence(before)) changes.push_back(put_fenced(records.fenced));
  return changes;
}

host::Change put_lead(const membership::Lead& lead) { return put("lead", lead); }

host::Change put_epoch(Epoch epoch, const FencedIncarnations& fenced_in_view) {
  membership::Epoch value;
  value.set_number(epoch.value);
  add_runs(fenced_in_view, *value.mutable_fenced());
  return put("epoch", value);
}

host::Change put_installed(const membership::Installed& installed) { return put("installed", installed); }

std::vector<host::Change> put_holdings(const HoldingMap& before, const HoldingMap& after) {
  const Pieces old_pieces = pieces_of(before);
  const Pieces new_pieces = pieces_of(after);
  std::vector<host::Change> changes;
  for (const auto& [piece, holdings] : old_pieces) {
    if (!new_pieces.contains(piece)) changes.push_back(removed(holdings_key(piece)));
  }
  for (const auto& [piece, holdings] : new_pieces) {
    const auto old = old_pieces.find(piece);
    host::Change change = put(holdings_key(piece), holdings);
    if (old == old_pieces.end() || old->second.SerializeAsString() != *change.value)
      changes.push_back(std::move(change));
  }
  return changes;
}

host::Change put_member(const membership::MemberRecord& record) {
  return put(member_key(Incarnation(record.incarnation())), record);
}
host::Change remove_member(Incarnation incarnation) { return removed(member_key(incarnation)); }

host::Change put_fenced(const FencedIncarnations& fenced) {
  membership::Fenced value;
  add_runs(fenced, *value.mutable_runs());
  return put("fenced", value);
}

host::Change put_lease(const Lease& lease) {
  membership::LeaseRecord record;
  record.mutable_keys()->set_space(lease.keys.space.value);
  record.mutable_keys()->set_begin(lease.keys.begin);
  record.mutable_keys()->set_end(lease.keys.end);
  record.set_holder(lease.holder.value);
  record.set_duration_ns(lease.duration.ns);
  return put(lease_key(lease), record);
}
host::Change remove_lease(const Lease& lease) { return removed(lease_key(lease)); }

host::Change put_claim(const Claim& claim) {
  membership::ClaimRecord record;
  record.set_track(claim.track.value);
  record.set_step(claim.step.value);
  record.set_begin(claim.ids.begin.value);
  record.set_end(claim.ids.end.value);
  record.set_by(claim.by.value);
  return put(claim_key(claim), record);
}
host::Change remove_claim(const Claim& claim) { return removed(claim_key(claim)); }

host::Change put_commit(const TrackCommit& commit) {
  membership::CommitRecord record;
  record.set_track(commit.track.value);
  record.set_next(commit.next.value);
  return put("commits/" + digits(commit.track.value), record);
}

host::Change put_mark(const Mark& mark) {
  membership::MarkRecord record;
  record.set_track(mark.track.value);
  record.set_by(mark.by.value);
  record.set_next(mark.next.value);
  return put(mark_key(mark.track, mark.by), record);
}
host::Change remove_mark(TrackId track, Incarnation by) { return removed(mark_key(track, by)); }
host::Change put_stopping(const membership::Stopping& stopping) { return put("stopping", stopping); }
host::Change put_committed(StepNumber committed) {
  membership::CommittedRecord record;
  record.set_next(committed.value);
  return put("committed", record);
}

}  // namespace gossamer::cluster
