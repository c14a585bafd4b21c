// SPDX-License-Identifier: Apache-2.0
#include "engines/run/lockstep_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gossamer::engine {

std::string step_text(StepNumber step) { return fmt::format("{}", step.value); }

std::optional<StepNumber> read_step(std::string_view text) {
  StepNumber step;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step.value);
  const bool good = error == std::errc() && end == text.data() + text.size();
  return good ? std::optional(step) : std::nullopt;
}

std::vector<placement::Thing> LockstepWorkload::things() const {
  std::vector<placement::Thing> things;
  for (std::uint64_t i = 0; i < options_.things; ++i)
    things.push_back({.id = placement::ThingId(i), .bytes = options_.thing_bytes, .work = 1});
  return things;
}

std::vector<cluster::TrackId> LockstepWorkload::tracks() const {
  std::vector<cluster::TrackId> tracks;
  for (std::uint64_t i = 0; i < options_.things; ++i) tracks.emplace_back(i);
  return tracks;
}

cluster::Decision LockstepWorkload::decide(const cluster::Rest& rest) {
  StepNumber next = std::max(options_.start, rest.committed.value_or(StepNumber()));
  for (const auto& [node, frozen] : rest.reports)
    next = std::max(next, read_step(frozen.report()).value_or(StepNumber()));
  return {.bytes = step_text(next), .committed = next};
}

}  // namespace gossamer::engine
