// SPDX-License-Identifier: Apache-2.0
//
// Companion is what an engine does at the coordinator beside leading. It talks with the members of the run
// over the same links, on channels of its own. Each engine may have one. Its node gives
// it a thread for work that takes long, and calls it at the right time (accompanied.h).
//
// Thread rule: the loop thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/coordinator.h"
#include "net/link/links.h"
#include "node/files/file_exchange.h"

namespace gossamer::node {

// A member has broken a rule of a protocol towards this node.
struct Misdeed {
  net::PeerId peer;
  Error error;
};

class Companion {
 public:
  Companion() = default;
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
  virtual ~Companion() = default;

  // Gives the links of a new lead; null when the lead ends.
  virtual void connect(net::Links* links) = 0;
  // The placement in force, before any message that rests on it: its epoch and the workload's decision.
  virtual void placed(Epoch, const std::string&) {}
  // Gives the books of that lead, at the same times.
  virtual void read_books(const cluster::Coordinator* /*books*/) {}
  // Takes a message, between connect() and the end of the lead. The companion consumes it.
  virtual void on(net::Arrived arrived, Instant now) = 0;
  // Called after all else, and at next_wakeup(), also while this coordinator does not lead.
  virtual void tick(Instant now) = 0;
  [[nodiscard]] virtual std::optional<Instant> next_wakeup() const = 0;
  // The reason why the run is to end, once it is to end.
  [[nodiscard]] virtual std::optional<std::string> over() const = 0;
  // What members have sent since the last call that no correct member sends. They are fenced.
  [[nodiscard]] virtual std::vector<Misdeed> take_misdeeds() { return {}; }
  // Failures since the last call, as lines for people.
  [[nodiscard]] virtual std::vector<std::string> take_remarks() = 0;
};
// Has the loop thread run an action, and then tick() the companion. Any thread may call
// it, as long as the node lives.
using Post = std::function<void(std::function<void()>)>;
using MakeCompanion = std::function<std::unique_ptr<Companion>(Aside, Post)>;

}  // namespace gossamer::node
