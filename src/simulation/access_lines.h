// SPDX-License-Identifier: Apache-2.0
//
// AccessLines: the line of each machine to the internet, drawn from a seed. A path between two machines has
// the delay, the jitter and the loss of both lines. So paths differ, as they do between homes and data
// centres. Thread rule: the simulation's.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/rng.h"
#include "base/time.h"
#include "host/sim/internet.h"

namespace gossamer::simulation {

class AccessLines {
 public:
  struct Options {
    std::uint64_t seed = 0;
    Duration longest = {};      // delay of a line, one way; nothing: lines add nothing
    host::PathQuality between;  // what the internet itself adds to each path
  };
  // The internet outlives it.
  AccessLines(host::SimInternet& internet, const Options& options);

  // A machine begins, or one with this name begins again.
  void add(const std::string& machine);
  [[nodiscard]] host::PathQuality path(const std::string& from, const std::string& to) const;

 private:
  [[nodiscard]] host::PathQuality draw();

  host::SimInternet& internet_;
  const Options options_;
  Rng rng_;
  std::map<std::string, host::PathQuality> lines_;
};

}  // namespace gossamer::simulation
