// SPDX-License-Identifier: Apache-2.0
#include "commands/run/return_watch.h"

#include <fmt/format.h>

namespace gossamer::commands {

std::string ReturnWatch::waits(const Facts& facts, Instant now) {
  came_.insert(facts.serving.begin(), facts.serving.end());
  if (!facts.unfinished) return {};
  std::string missing;
  for (const NodeId node : facts.owners) {
    if (!came_.contains(node)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", node.value);
  }
  if (missing.empty()) return {};
  if (!since_) since_ = now;
  if (now - *since_ >= kPatience) return {};
  return fmt::format(
      "pieces of step {} are missing, which node {} may have; after ten minutes the run goes on from step {}",
      facts.unfinished->value, missing, facts.start.value);
}

}  // namespace gossamer::commands
