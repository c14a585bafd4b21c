// SPDX-License-Identifier: Apache-2.0
//
// DialBudget: how often an address may be dialed at which no node has answered. Nodes say themselves where
// they listen. One that names the address of somebody else would let all others dial that machine, in each of
// its lives. So an address may be dialed kAtOnce times, and then once every kEvery. It begins anew when a
// node of the run has answered there.
//
// Memory: one entry for each address that was dialed lately. Thread rule: one owner, Links.
#pragma once

#include <map>
#include <optional>

#include "base/time.h"
#include "host/api/network.h"

namespace gossamer::net {

class DialBudget {
 public:
  static constexpr double kAtOnce = 16;
  static constexpr Duration kEvery{5'000'000'000};

  // Dials the address, if it may. Otherwise returns when it may. Time never goes back.
  [[nodiscard]] std::optional<Instant> take(const host::Endpoint& at, Instant now);
  // The node that is said to listen there has answered.
  void answered(const host::Endpoint& at) { left_.erase(at); }

 private:
  struct Left {
    double dials = kAtOnce;
    Instant when;
  };
  [[nodiscard]] static double left(const Left& budget, Instant now);

  std::map<host::Endpoint, Left> left_;
};

}  // namespace gossamer::net
