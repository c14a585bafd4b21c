// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/claim_watch.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "cluster/control/records.h"

namespace gossamer::simulation {

using cluster::Claim;

// A commit whose answer was lost is repeated as a whole. So what was there before may come again.
std::optional<std::string> ClaimWatch::applied(const host::Change& change) {
  if (!change.key.starts_with("claims/") && !change.key.starts_with("commits/")) return std::nullopt;
  if (!change.value) {
    rows_.erase(change.key);
    return std::nullopt;
  }
  const std::array<host::Entry, 1> entries{host::Entry{.key = change.key, .value = *change.value}};
  const auto read = cluster::read_records(entries);
  CHECK(read.ok(), read.error().message());
  for (const Claim& claim : read->claims.claims) {
    if (auto wrong = claimed(claim)) return wrong;
    rows_[change.key] = claim;
  }
  for (const cluster::TrackCommit& commit : read->claims.commits) {
    StepNumber& next = next_[commit.track.value];
    for (; next < commit.next; ++next) {
      if (auto wrong = committed(commit.track, next)) return wrong;
    }
  }
  return std::nullopt;
}

std::optional<std::string> ClaimWatch::claimed(const Claim& claim) const {
  if (!durable_.served(claim.by))
    return fmt::format("incarnation {} has claimed samples and never served", claim.by.value);
  for (SampleId id = claim.ids.begin; id < claim.ids.end; ++id) {
    const auto closed = closed_.find({claim.track.value, id.value});
    if (closed == closed_.end() || closed->second == claim.by) continue;
    return fmt::format(
        "sample {} of track {} is committed as incarnation {}'s, and now incarnation {} claims it", id.value,
        claim.track.value, closed->second.value, claim.by.value);
  }
  for (const auto& [key, other] : rows_) {
    const bool both = other.track == claim.track && other.ids.begin < claim.ids.end &&
                      claim.ids.begin < other.ids.end && other.by != claim.by;
    if (!both || durable_.fenced(other.by) || durable_.fenced(claim.by)) continue;
    return fmt::format("incarnations {} and {} have claims of one sample of track {}, and neither is fenced",
                       other.by.value, claim.by.value, claim.track.value);
  }
  return std::nullopt;
}

std::optional<std::string> ClaimWatch::committed(cluster::TrackId track, StepNumber step) {
  std::map<std::uint64_t, Incarnation> living;  // claims, by sample
  for (const auto& [key, claim] : rows_) {
    if (claim.track != track || claim.step != step || durable_.fenced(claim.by)) continue;
    for (SampleId id = claim.ids.begin; id < claim.ids.end; ++id) living[id.value] = claim.by;
  }
  for (std::uint64_t id = step.value * batch_; id < (step.value + 1) * batch_; ++id) {
    const auto claim = living.find(id);
    if (claim == living.end()) {
      return fmt::format(
          "step {} of track {} is committed, and no living incarnation has a claim of sample {}", step.value,
          track.value, id);
    }
    closed_[{track.value, id}] = claim->second;
  }
  return std::nullopt;
}

std::optional<std::string> ClaimWatch::answered(Incarnation to, const membership::ClaimAnswer& answer) {
  for (const membership::ClaimRecord& grant : answer.granted()) {
    if (grant.by() != to.value)
      return fmt::format("incarnation {} is granted a claim of incarnation {}", to.value, grant.by());
    for (std::uint64_t id = grant.begin(); id < grant.end(); ++id) {
      if (granted_.insert({{grant.track(), id}, to}).second) continue;
      return fmt::format("sample {} of track {} is granted to incarnation {} twice", id, grant.track(),
                         to.value);
    }
  }
  return std::nullopt;
}

}  // namespace gossamer::simulation
