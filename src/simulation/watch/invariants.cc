// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/invariants.h"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::simulation {
namespace {

using cluster::LeaseKeys;

bool overlap(const LeaseKeys& a, const LeaseKeys& b) {
  return a.space == b.space && a.begin < b.end && b.begin < a.end;
}

}  // namespace

void Invariants::mix(std::uint64_t value) {
  // splitmix64's finisher: every bit seen moves every bit of the hash.
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
  const StepNumber next(step.value + 1);
  applied_steps_ = std::max(applied_steps_, next);
  if (!fenced_(by)) reached_ = std::max(reached_, next);
  if (const auto held = held_.find(by); held != held_.end()) held->second.things[thing] = next;
  Incarnation& before = applied_[{thing, step}];
  if (before.value != 0 && before != by && counts(before) && counts(by)) {
    broke(fmt::format("step {} of thing {} is applied by incarnations {} and {}, and neither is fenced",
                      step.value, thing, before.value, by.value));
  }
  if (before.value == 0 || counts(by)) before = by;
}

void Invariants::counted(const cluster::Claim& claim) {
  mix(claim.by.value);
  for (SampleId id = claim.ids.begin; id < claim.ids.end; ++id) {
    mix(id.value);
    Incarnation& before = counted_[{claim.track.value, id}];
    if (before.value != 0 && before != claim.by && counts(before) && counts(claim.by)) {
      broke(fmt::format("sample {} of track {} is counted by incarnations {} and {}, and neither is fenced",
                        id.value, claim.track.value, before.value, claim.by.value));
    }
    if (before.value == 0 || counts(claim.by)) before = claim.by;
  }
}

void Invariants::believes(const LeaseKeys& keys, Incarnation holder,
                          const std::function<bool(Incarnation, const LeaseKeys&)>& still_believes) {
  mix(keys.begin);
  mix(holder.value);
  for (const auto& [others, other] : believers_) {
    if (other == holder || !overlap(others, keys) || !counts(other) || !counts(holder)) continue;
    if (!still_believes(other, others)) continue;
    broke(fmt::format("incarnations {} and {} both hold leases of key {}", other.value, holder.value,
                      std::max(others.begin, keys.begin)));
  }
  if (counts(holder)) believers_[keys] = holder;
}

void Invariants::took_up(Incarnation by, Epoch installed, const std::vector<std::uint64_t>& things,
                         StepNumber next) {
  Held& held = held_[by];
  held = {.installed = installed, .things = {}};
  for (const std::uint64_t thing : things) held.things[thing] = next;
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

void Invariants::committed(StepNumber step, Epoch installed) {
  mix(step.value);
  if (step < committed_) broke(fmt::format("step {} was committed, now {} is", committed_.value, step.value));
  committed_ = std::max(committed_, step);
  std::erase_if(held_, [this](const auto& one) { return !counts(one.first); });
  for (const auto& [by, held] : held_) {
    if (held.installed != installed) continue;  // it does not know yet what it holds
    for (const auto& [thing, next] : held.things) {
      if (next >= step) continue;
      broke(fmt::format("all steps before {} are committed, but incarnation {} has thing {} before step {}",
                        step.value, by.value, thing, next.value));
    }
  }
}

void Invariants::goes_back(Incarnation one, StepNumber applied, StepNumber to) {
  if (!counts(one)) return;
  broke(fmt::format("incarnation {} has applied {} steps and is to go back to {}", one.value, applied.value,
                    to.value));
}

void Invariants::resumes(Epoch epoch, StepNumber step) {
  if (step < committed_) {
    broke(fmt::format("epoch {} goes back to step {}, though all before {} are committed", epoch.value,
                      step.value, committed_.value));
  }
  if (step > std::max(committed_, applied_steps_)) {
    broke(fmt::format("epoch {} goes on from step {}, though nobody has taken more than {}", epoch.value,
                      step.value, applied_steps_.value));
  }
  reached_ = step;
}

}  // namespace gossamer::simulation
