// SPDX-License-Identifier: Apache-2.0
//
// Companion: what a coordinator has with the members of its run beside leading it, over the same links, on
// channels that are not the coordinator's. Each engine may have one. Accompanied is what it needs of its
// node: a thread for work that takes long, and calls at the right time.
//
// Thread rule: the loop thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/coordinator_process.h"
#include "host/posix/serial_thread.h"
#include "net/link/links.h"
#include "node/cluster/event_loop.h"
#include "node/cluster/file_exchange.h"

namespace gossamer::node {

class Companion {
 public:
  Companion() = default;
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
  virtual ~Companion() = default;

  // The links of a lead; null when it ends.
  virtual void connect(net::Links* links) = 0;
  // Between connect() and the end of the lead. It consumes what arrived.
  virtual void on(net::Arrived arrived, Instant now) = 0;
  // After all else, and at next_wakeup(). Also while nobody leads.
  virtual void tick(Instant now) = 0;
  [[nodiscard]] virtual std::optional<Instant> next_wakeup() const = 0;
  // Why the run is to end, once it is.
  [[nodiscard]] virtual std::optional<std::string> over() const = 0;
  // What went wrong since the last call, for people.
  [[nodiscard]] virtual std::vector<std::string> take_remarks() = 0;
};
// Has the loop thread run an action, and then tick() the companion. Any thread, as long as the node lives.
using Post = std::function<void(std::function<void()>)>;
using MakeCompanion = std::function<std::unique_ptr<Companion>(Aside, Post)>;

class Accompanied {
 public:
  // Loop and process outlive it, and the loop runs no further after it.
  Accompanied(EventLoop& loop, cluster::CoordinatorProcess& process, const MakeCompanion& make);

  void on(net::Arrived arrived);
  // After the process's. Stops the run when it is over. When to call again at the latest.
  std::optional<Instant> tick();
  [[nodiscard]] std::vector<std::string> take_remarks() { return companion_->take_remarks(); }

 private:
  void connect();

  EventLoop& loop_;
  cluster::CoordinatorProcess& process_;
  std::optional<Generation> lead_;  // whose links it has
  bool stopped_ = false;
  std::unique_ptr<Companion> companion_;
  host::SerialThread thread_;  // ends first
};

}  // namespace gossamer::node
