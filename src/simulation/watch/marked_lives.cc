// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/marked_lives.h"

#include <algorithm>

namespace gossamer::simulation {

void MarkedLives::others_went_on(const Durable& durable) {
  for (const std::set<Incarnation>* const away : {&struck_, &apart_}) {
    for (const Incarnation one : *away)
      if (durable.fenced(one)) taken_.insert(one);
  }
}

std::uint64_t MarkedLives::taken_and_fenced(const Durable& durable,
                                            const cluster::Coordinator* decides) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(taken_, [&](Incarnation one) {
    return durable.fenced(one) || (decides != nullptr && decides->fenced().contains(one));
  }));
}

}  // namespace gossamer::simulation
