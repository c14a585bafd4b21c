// SPDX-License-Identifier: Apache-2.0
//
// RunEvent: something that people should know, a line of events.jsonl (docs/protocols/status.md). Thread
// rule: plain value.
#pragma once

#include <string>

#include "base/ids.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {

struct RunEvent {
  std::string kind = {};  // "begun", "serving", "lost", "installed", "rebalances", "short", ...
  net::PeerId peer = {};  // the member that it is about, if any
  Epoch epoch = {};
  std::string text = {};
};

}  // namespace gossamer::cluster
