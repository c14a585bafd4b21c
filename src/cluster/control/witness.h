// SPDX-License-Identifier: Apache-2.0
//
// Witness: hears what a coordinator hears, and what it says when that leaves. So a simulation can compare
// both with the store. Never set outside a simulation.
//
// Thread rule: the coordinator's owner.
#pragma once

#include <gossamer/membership.pb.h>

#include "net/link/peer_id.h"

namespace gossamer::cluster {

class Witness {
 public:
  virtual ~Witness() = default;
  virtual void heard(net::PeerId from, const membership::ToCoordinator& said) = 0;
  virtual void said(net::PeerId to, const membership::ToMember& said) = 0;
  virtual void began(const membership::BeginAnswer& answer) = 0;
};

}  // namespace gossamer::cluster
