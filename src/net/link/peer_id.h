// SPDX-License-Identifier: Apache-2.0
//
// PeerId: one life of one node, which is what messages come from and go to. Thread rule: plain value.
#pragma once

#include <compare>

#include "base/ids.h"

namespace gossamer::net {

struct PeerId {
  NodeId node;
  Incarnation incarnation;

  auto operator<=>(const PeerId&) const = default;
};

}  // namespace gossamer::net
