// SPDX-License-Identifier: Apache-2.0
//
// What `gossamer status` shows, as the JSON object that a coordinator answers with. Other programs read it:
// docs/protocols/status.md. Thread rule: plain functions.
#pragma once

#include <string>

#include "base/time.h"
#include "cluster/control/coordinator.h"

namespace gossamer::node {

struct StatusFacts {
  std::string run;
  std::string program;
};

[[nodiscard]] std::string status_json(const cluster::Coordinator& coordinator, const StatusFacts& facts,
                                      Instant now);
// The same for people: a few lines and a table.
[[nodiscard]] Result<std::string> status_text(const std::string& json);

}  // namespace gossamer::node
