// SPDX-License-Identifier: Apache-2.0
#include "simulation/invariants.h"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::simulation {

void Invariants::mix(std::uint64_t value) {
  // splitmix64's finisher: every bit of what was seen moves every bit of the hash.
  hash_ += value + 0x9e3779b97f4a7c15;
  hash_ = (hash_ ^ (hash_ >> 30)) * 0xbf58476d1ce4e5b9;
  hash_ = (hash_ ^ (hash_ >> 27)) * 0x94d049bb133111eb;
  hash_ ^= hash_ >> 31;
}

void Invariants::saw(std::map<Epoch, std::string>& known, const char* what, Epoch epoch,
                     const std::string& bytes) {
  for (const char one : bytes) mix(static_cast<unsigned char>(one));
  const auto [place, first] = known.try_emplace(epoch, bytes);
  if (!first && place->second != bytes)
    broke(fmt::format("two members have different {}s of epoch {}", what, epoch.value));
}

void Invariants::saw_view(Epoch epoch, const std::string& bytes) { saw(views_, "view", epoch, bytes); }
void Invariants::saw_install(Epoch epoch, const std::string& bytes) {
  saw(installs_, "installed decision", epoch, bytes);
}

void Invariants::applied(std::uint64_t thing, StepNumber step, Incarnation by) {
  mix(thing);
  mix(step.value);
  mix(by.value);
  applied_steps_ = std::max(applied_steps_, StepNumber(step.value + 1));
  Incarnation& before = applied_[{thing, step}];
  if (before.value != 0 && before != by && !fenced_(before) && !fenced_(by)) {
    broke(fmt::format("step {} of thing {} is applied by incarnations {} and {}, and neither is fenced",
                      step.value, thing, before.value, by.value));
  }
  if (before.value == 0 || !fenced_(by)) before = by;
}

void Invariants::counted(const cluster::Claim& claim) {
  mix(claim.by.value);
  for (SampleId id = claim.ids.begin; id < claim.ids.end; ++id) {
    mix(id.value);
    Incarnation& before = counted_[{claim.track.value, id}];
    if (before.value != 0 && before != claim.by && !fenced_(before) && !fenced_(claim.by)) {
      broke(fmt::format("sample {} of track {} is counted by incarnations {} and {}, and neither is fenced",
                        id.value, claim.track.value, before.value, claim.by.value));
    }
    if (before.value == 0 || !fenced_(claim.by)) before = claim.by;
  }
}

void Invariants::believes(const cluster::LeaseKeys& keys, Incarnation holder,
                          const std::function<bool(Incarnation)>& still_believes) {
  mix(keys.begin);
  mix(holder.value);
  Incarnation& before = believers_[keys];
  if (before.value != 0 && before != holder && !fenced_(before) && !fenced_(holder) &&
      still_believes(before)) {
    broke(fmt::format("incarnations {} and {} both hold the lease of key {}", before.value, holder.value,
                      keys.begin));
  }
  if (!fenced_(holder)) before = holder;
}

void Invariants::wrote(Generation writer, Generation newest) {
  if (writer < newest) {
    broke(fmt::format("a coordinator of generation {} writes, though generation {} has begun", writer.value,
                      newest.value));
  }
}

void Invariants::stored(Epoch epoch) {
  if (epoch < stored_)
    broke(fmt::format("the store had epoch {}, now it has {}", stored_.value, epoch.value));
  stored_ = epoch;
}

void Invariants::committed(StepNumber step) {
  mix(step.value);
  if (step < committed_) broke(fmt::format("step {} was committed, now {} is", committed_.value, step.value));
  committed_ = std::max(committed_, step);
}

}  // namespace gossamer::simulation
