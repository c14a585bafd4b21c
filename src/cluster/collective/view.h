// SPDX-License-Identifier: Apache-2.0
//
// ExchangeView: the members of an epoch, which run collective operations together. Thread rule: plain value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {

struct ExchangeView {
  Epoch epoch;
  std::vector<net::PeerId> members;  // rising by node, no node twice
};

// The position among the members; nothing for another incarnation or node.
[[nodiscard]] inline std::optional<std::size_t> rank_of(const ExchangeView& view, net::PeerId peer) {
  const auto found = std::ranges::lower_bound(view.members, peer);
  if (found == view.members.end() || *found != peer) return std::nullopt;
  return static_cast<std::size_t>(found - view.members.begin());
}

}  // namespace gossamer::cluster
