// SPDX-License-Identifier: Apache-2.0
//
// PeerId: one life of one node; messages come from and go to such a life. Thread rule: plain value.
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
