// SPDX-License-Identifier: Apache-2.0
//
// Accompanied gives a companion what it needs from its node: a thread for work that takes long, and calls at
// the right time.
//
// Thread rule: the loop thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/coordinator_process.h"
#include "net/link/links.h"
#include "node/aside_thread.h"
#include "node/companion.h"
#include "node/event_loop.h"

namespace gossamer::node {

class Accompanied {
 public:
  // Loop and process outlive this object, and the loop runs no further after it.
  Accompanied(EventLoop& loop, cluster::CoordinatorProcess& process, const MakeCompanion& make);

  void on(net::Arrived arrived);
  // Called after the process's tick(). Stops the run when the companion says that it is over. Returns
  // when to call again at the latest.
  std::optional<Instant> tick();
  [[nodiscard]] std::vector<std::string> take_remarks() { return companion_->take_remarks(); }

 private:
  void connect();
  void tell_placement();
  void blame();

  EventLoop& loop_;
  cluster::CoordinatorProcess& process_;
  std::optional<Generation> lead_;  // lead of the links that the companion has
  Epoch placed_;                    // that the companion knows, of this lead
  bool stopped_ = false;
  std::unique_ptr<Companion> companion_;
  AsideThread aside_;  // declared last: ends first
};

}  // namespace gossamer::node
