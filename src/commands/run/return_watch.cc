// SPDX-License-Identifier: Apache-2.0
#include "commands/run/return_watch.h"

#include <fmt/format.h>

namespace gossamer::commands {

std::string ReturnWatch::waits(const Facts& facts, Instant now) {
  came_.insert(facts.serving.begin(), facts.serving.end());
  std::string missing;
  for (const NodeId node : facts.unfinished ? facts.owners : facts.unheard) {
    if (!came_.contains(node)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", node.value);
  }
  if (missing.empty()) return {};
  if (asked_ && now - *asked_ > kNobodyHere) since_.reset();
  asked_ = now;
  if (!since_) since_ = now;
  if (now - *since_ >= kPatience) return {};
  if (!facts.unfinished) {
    return fmt::format("node {} may have steps after {}; after ten minutes the run goes on from there",
                       missing, facts.start.value);
  }
  return fmt::format(
      "pieces of step {} are missing, which node {} may have; after ten minutes the run goes on from step {}",
      facts.unfinished->value, missing, facts.start.value);
}

}  // namespace gossamer::commands
