// SPDX-License-Identifier: Apache-2.0
#include "simulation/access_lines.h"

namespace gossamer::simulation {

AccessLines::AccessLines(host::SimInternet& internet, const Options& options)
    : internet_(internet), options_(options), rng_(options.seed, Purpose::kFault, 18) {
  internet_.set_default_path(options_.between);
}

void AccessLines::add(const std::string& machine) {
  if (options_.longest == Duration{} || lines_.contains(machine)) return;
  lines_[machine] = draw();
  for (const auto& [other, line] : lines_) {
    if (other == machine) continue;
    internet_.set_path(machine, other, path(machine, other));
    internet_.set_path(other, machine, path(other, machine));
  }
}

// From a hundredth of the longest delay to all of it, short ones as often as long ones. Half of
// the lines have jitter, and a quarter lose segments.
host::PathQuality AccessLines::draw() {
  Duration delay = options_.longest;
  for (std::uint64_t halvings = rng_.below(8); halvings > 0; --halvings) delay.ns /= 2;
  const bool jitters = rng_.below(2) == 0;
  const bool loses = rng_.below(4) == 0;
  return {.delay = delay,
          .jitter = jitters ? Duration{delay.ns / 2} : Duration{},
          .loss = loses ? 0.01 * static_cast<double>(rng_.uniform()) : 0};
}

host::PathQuality AccessLines::path(const std::string& from, const std::string& to) const {
  host::PathQuality path = options_.between;
  for (const std::string& machine : {from, to}) {
    const auto line = lines_.find(machine);
    if (line == lines_.end()) continue;
    path.delay = path.delay + line->second.delay;
    path.jitter = path.jitter + line->second.jitter;
    path.loss += line->second.loss;
  }
  return path;
}

}  // namespace gossamer::simulation
