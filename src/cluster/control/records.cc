// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "cluster/control/view.h"

namespace gossamer::cluster {
namespace {

constexpr std::uint64_t kHoldingsInPiece = 4096;
constexpr std::string_view kTokens = "tokens/";

template <class Proto>
host::Change put(const std::string& key, const Proto& value) {
  return {.key = key, .value = value.SerializeAsString()};
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
std::string commit_key(TrackId track) { return "commits/" + digits(track.value); }
std::string token_key(const std::string& id) { return std::string(kTokens) + id; }
std::string node_key(NodeId node) { return "nodes/" + digits(node.value); }
std::string holdings_key(std::uint64_t piece) { return fmt::format("holdings/{:06}", piece); }

Error damaged(std::string key, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = std::move(key),
          .what = "an entry of the coordinator's store contradicts others",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "restore the store from a copy, or start a new run"};
}

bool is_number(std::uint64_t value) { return value < kMostNumber; }
bool is_node(std::uint64_t value) { return value > kCoordinatorNode.value && value < kMostNumber - 1; }

// Reads one entry into `records`. False if key or value is not the store's, or the two do not fit together.
class Reader {
 public:
  explicit Reader(Records& records) : records_(records) {}

  bool read(const host::Entry& entry) {
    const std::string_view key = entry.key;
    const auto is = [&](std::string_view prefix) { return key.starts_with(prefix); };
    if (key == "lead") return read_lead(entry.value);
    if (key == "installed") return read_installed(entry.value);
    if (key == "epoch") return read_epoch(entry.value);
    if (key == "fenced") return read_fenced(entry.value);
    if (key == "silent") return read_silent(entry.value);
    if (key == "committed") return read_committed(entry.value);
    if (key == "stopping") return read_stopping(entry.value);
    if (is("holdings/")) return read_holdings(entry);
    if (is("members/")) return read_member(entry);
    if (is("nodes/")) return read_node(entry);
    if (is("leases/")) return read_lease(entry);
    if (is("claims/")) return read_claim(entry);
    if (is("commits/")) return read_commit(entry);
    if (is("marks/")) return read_mark(entry);
    if (is(kTokens)) return records_.tokens.emplace(key.substr(kTokens.size()), entry.value).second;
    return false;
  }

 private:
  bool read_lead(const std::string& value) {
    membership::Lead& lead = records_.lead;
    return lead.ParseFromString(value) && is_number(lead.next_node()) && is_number(lead.next_incarnation());
  }
  // Sums and quotients of speeds have to stay numbers.
  bool read_installed(const std::string& value) {
    membership::Installed& installed = records_.installed;
    return installed.ParseFromString(value) && std::ranges::all_of(installed.speeds(), [](const auto& one) {
             return one.speed() > 1e-100 && one.speed() < 1e100 && one.own_work() >= 0 &&
                    one.own_work() < 1e100;
           });
  }
  bool read_epoch(const std::string& value) {
    membership::Epoch epoch;
    if (!epoch.ParseFromString(value) || !is_number(epoch.number())) return false;
    records_.epoch = Epoch(epoch.number());
    for (const std::uint64_t node : epoch.expelled()) records_.expelled_in_view.insert(NodeId(node));
    return take(epoch.fenced(), records_.fenced_in_view);
  }
  bool read_fenced(const std::string& value) {
    membership::Fenced fenced;
    return fenced.ParseFromString(value) && take(fenced.runs(), records_.fenced);
  }
  // A longer silence than a year is damage.
  bool read_silent(const std::string& value) {
    constexpr std::uint64_t kMostSeconds = std::uint64_t{365} * 86'400;
    membership::SilentTimes silent;
    if (!silent.ParseFromString(value)) return false;
    for (const membership::SilentTimes::Row& row : silent.rows()) {
      if (!is_number(row.incarnation()) || row.seconds() > kMostSeconds) return false;
      records_.silent[Incarnation(row.incarnation())] = from_seconds(static_cast<double>(row.seconds()));
    }
    return true;
  }
  static bool take(const google::protobuf::RepeatedPtrField<membership::FencedRun>& from,
                   FencedIncarnations& to) {
    std::vector<FencedIncarnations::Run> runs;
    for (const membership::FencedRun& run : from) {
      if (run.first() > run.last() || !is_number(run.last())) return false;
      runs.push_back({Incarnation(run.first()), Incarnation(run.last())});
    }
    to = FencedIncarnations(runs);
    return true;
  }
  bool read_committed(const std::string& value) {
    membership::CommittedRecord committed;
    if (!committed.ParseFromString(value) || !is_number(committed.next())) return false;
    records_.marks.committed = StepNumber(committed.next());
    return true;
  }
  bool read_stopping(const std::string& value) {
    membership::Stopping stopping;
    if (!stopping.ParseFromString(value)) return false;
    records_.stopping = stopping;
    return true;
  }
  bool read_holdings(const host::Entry& entry) {
    membership::Holdings holdings;
    if (!holdings.ParseFromString(entry.value)) return false;
    for (const membership::Holding& one : holdings.holdings()) {
      if (entry.key != holdings_key(one.thing() / kHoldingsInPiece)) return false;
      records_.holdings[placement::ThingId(one.thing())] = NodeId(one.node());
    }
    return true;
  }
  bool read_member(const host::Entry& entry) {
    membership::MemberRecord record;
    if (!record.ParseFromString(entry.value) || !is_node(record.node())) return false;
    if (record.incarnation() == 0 || !membership::State_IsValid(record.state())) return false;
    if (entry.key != member_key(Incarnation(record.incarnation()))) return false;
    return records_.members.emplace(NodeId(record.node()), std::move(record)).second;
  }
  bool read_node(const host::Entry& entry) {
    membership::NodeRecord record;
    if (!record.ParseFromString(entry.value) || !is_node(record.node())) return false;
    const NodeId node(record.node());
    return entry.key == node_key(node) && records_.nodes.emplace(node, std::move(record)).second;
  }
  bool read_lease(const host::Entry& entry) {
    membership::LeaseRecord record;
    if (!record.ParseFromString(entry.value) || record.keys().begin() >= record.keys().end()) return false;
    const Lease lease{{LeaseSpace(record.keys().space()), record.keys().begin(), record.keys().end()},
                      Incarnation(record.holder()),
                      Duration{record.duration_ns()}};
    records_.leases.push_back(lease);
    return lease.duration > Duration{} && lease.duration <= kLongestLease && entry.key == lease_key(lease);
  }
  bool read_claim(const host::Entry& entry) {
    membership::ClaimRecord record;
    if (!record.ParseFromString(entry.value) || record.begin() >= record.end()) return false;
    records_.claims.claims.push_back({TrackId(record.track()),
                                      StepNumber(record.step()),
                                      {SampleId(record.begin()), SampleId(record.end())},
                                      Incarnation(record.by())});
    return entry.key == claim_key(records_.claims.claims.back());
  }
  bool read_commit(const host::Entry& entry) {
    membership::CommitRecord record;
    if (!record.ParseFromString(entry.value) || !is_number(record.next())) return false;
    records_.claims.commits.push_back({TrackId(record.track()), StepNumber(record.next())});
    return entry.key == commit_key(TrackId(record.track()));
  }
  bool read_mark(const host::Entry& entry) {
    membership::MarkRecord record;
    if (!record.ParseFromString(entry.value) || !is_number(record.next())) return false;
    const Mark mark{TrackId(record.track()), Incarnation(record.by()), StepNumber(record.next())};
    records_.marks.marks.push_back(mark);
    return entry.key == mark_key(mark.track, mark.by);
  }

  Records& records_;
};

using Pieces = std::map<std::uint64_t, membership::Holdings>;

// Pieces of the holdings: piece NNNNNN has the NNNNNN-th 4,096 things, by their numbers.
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

// Checks the numbers: they are given in rising order, none twice. A view begins before anything is installed
// in it.
Result<void> check_numbers(const Records& records) {
  const membership::Lead& lead = records.lead;
  const std::string next = std::to_string(lead.next_incarnation());
  if (lead.incarnation() > 0 && lead.incarnation() >= lead.next_incarnation())
    return damaged("lead", fmt::format("incarnation {}", lead.incarnation()), "less than " + next);
  for (const auto& [key, fenced] :
       {std::pair("fenced", &records.fenced), {"epoch", &records.fenced_in_view}}) {
    const std::vector<FencedIncarnations::Run> runs = fenced->runs();
    if (!runs.empty() && runs.back().last.value >= lead.next_incarnation())
      return damaged(key, fmt::format("incarnation {}", runs.back().last.value), "less than " + next);
  }
  if (records.installed.epoch() > records.epoch.value) {
    return damaged("installed", fmt::format("epoch {}", records.installed.epoch()),
                   fmt::format("at most {}, the last one begun", records.epoch.value));
  }
  for (const auto& [node, record] : records.members) {
    const Incarnation incarnation(record.incarnation());
    // Node numbers are not checked: they come from certificates, which another coordinator may have given.
    if (incarnation.value >= lead.next_incarnation())
      return damaged(member_key(incarnation), "an incarnation that was never given", "less than " + next);
    if (records.fenced_in_view.contains(incarnation))
      return damaged(member_key(incarnation), "a member that is fenced in its view", "a living one");
  }
  return {};
}

// Finds keys that two living incarnations both have.
Result<void> check_leases(const Records& records) {
  std::vector<Lease> living = records.leases;
  std::erase_if(living, [&](const Lease& one) { return records.fenced.contains(one.holder); });
  std::ranges::sort(living, {}, &Lease::keys);
  for (std::size_t i = 1; i < living.size(); ++i) {
    const LeaseKeys& before = living[i - 1].keys;
    if (before.space == living[i].keys.space && living[i].keys.begin < before.end)
      return damaged(lease_key(living[i]), "keys that " + lease_key(living[i - 1]) + " has", "others");
  }
  return {};
}

Result<void> check_ledgers(const Records& records, const RunShape& shape) {
  if (shape.tracks.empty()) return {};
  const auto known = [&](TrackId track) {
    return std::ranges::find(shape.tracks, track) != shape.tracks.end();
  };
  const std::string tracks = fmt::format("one of {} tracks", shape.tracks.size());
  std::map<TrackId, StepNumber> next;
  for (const TrackCommit& one : records.claims.commits) {
    if (!known(one.track)) return damaged(commit_key(one.track), "another track", tracks);
    next[one.track] = one.next;
  }
  for (const Mark& one : records.marks.marks) {
    if (!known(one.track)) return damaged(mark_key(one.track, one.by), "another track", tracks);
  }
  std::vector<Claim> living = records.claims.claims;
  for (const Claim& one : living) {
    const bool of_step = one.ids.begin.value / shape.batch == one.step.value &&
                         (one.ids.end.value - 1) / shape.batch == one.step.value;
    if (!known(one.track) || !of_step)
      return damaged(claim_key(one), "other ids or another track", "ids of the step, of " + tracks);
  }
  std::erase_if(living, [&](const Claim& one) {
    return records.fenced.contains(one.by) || one.step < next[one.track];
  });
  const auto place = [](const Claim& one) { return std::tuple(one.track, one.step, one.ids.begin); };
  std::ranges::sort(living, {}, place);
  for (std::size_t i = 1; i < living.size(); ++i) {
    const Claim& before = living[i - 1];
    if (before.track == living[i].track && living[i].ids.begin < before.ids.end)
      return damaged(claim_key(living[i]), "ids that " + claim_key(before) + " has", "others");
  }
  return {};
}

// The first number that no node has. In a store that was put back from an older copy, nodes may have greater
// ones than its lead has given.
std::uint64_t first_free_node(const Records& records) {
  std::uint64_t next = std::max(records.lead.next_node(), kCoordinatorNode.value + 1);
  if (!records.members.empty()) next = std::max(next, records.members.rbegin()->first.value + 1);
  if (!records.nodes.empty()) next = std::max(next, records.nodes.rbegin()->first.value + 1);
  return next;
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
  if (!lead.run().empty() && (lead.batch() != shape.batch || lead.tracks() != shape.tracks.size())) {
    return Error{.kind = ErrorKind::kUsage,
                 .what = "the run was begun with another configuration",
                 .got = fmt::format("a batch of {} in {} tracks", shape.batch, shape.tracks.size()),
                 .expected = fmt::format("{} in {}", lead.batch(), lead.tracks()),
                 .fix = "resume it with the configuration that it was begun with"};
  }
  for (const Result<void>& sound :
       {check_numbers(records), check_leases(records), check_ledgers(records, shape)}) {
    if (!sound.ok()) return sound.error();
  }
  const Incarnation before(lead.incarnation());
  // The coordinator before may have got only half-way with a member that is gone.
  std::erase_if(records.silent, [&](const auto& one) {
    return std::ranges::none_of(records.members, [&](const auto& member) {
      return Incarnation(member.second.incarnation()) == one.first && !records.fenced.contains(one.first);
    });
  });
  lead.set_run(shape.run);
  lead.set_batch(shape.batch);
  lead.set_tracks(shape.tracks.size());
  lead.set_next_node(first_free_node(records));
  lead.set_incarnation(std::max<std::uint64_t>(lead.next_incarnation(), 1));
  lead.set_next_incarnation(lead.incarnation() + 1);
  std::vector<host::Change> changes{put_lead(lead)};
  if (before.value != 0 && records.fenced.fence(before)) changes.push_back(put_fenced(records.fenced));
  return changes;
}

host::Change put_lead(const membership::Lead& lead) { return put("lead", lead); }

host::Change put_epoch(Epoch epoch, const FencedIncarnations& fenced_in_view,
                       const std::set<NodeId>& expelled_in_view) {
  membership::Epoch value;
  value.set_number(epoch.value);
  for (const NodeId node : expelled_in_view) value.add_expelled(node.value);
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

host::Change put_silent(const SilentTimes::Rows& rows) {
  membership::SilentTimes value;
  for (const auto& [incarnation, time] : rows) {
    membership::SilentTimes::Row& row = *value.add_rows();
    row.set_incarnation(incarnation.value);
    row.set_seconds(static_cast<std::uint64_t>(time.seconds()));
  }
  return put("silent", value);
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
  return put(commit_key(commit.track), record);
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
host::Change put_token(const std::string& id, const std::string& text) {
  return {.key = token_key(id), .value = text};
}
host::Change remove_token(const std::string& id) { return removed(token_key(id)); }
host::Change put_node(const membership::NodeRecord& record) {
  return put(node_key(NodeId(record.node())), record);
}
host::Change put_committed(StepNumber committed) {
  membership::CommittedRecord record;
  record.set_next(committed.value);
  return put("committed", record);
}

}  // namespace gossamer::cluster
