// SPDX-License-Identifier: Apache-2.0
//
// StoreThread calls a Store on a thread of its own, because its calls block. On that thread the answer goes
// to a function that posts it to the loop. The destructor waits for the call under way and gives the lead up,
// so that a successor need not wait for silence.
//
// Thread rule: one owner, the loop thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "cluster/control/coordinator_process.h"
#include "host/api/store.h"
#include "host/posix/serial_thread.h"

namespace gossamer::node {

class StoreThread {
 public:
  using Answered = std::function<void(cluster::StoreAnswer)>;
  StoreThread(std::unique_ptr<host::Store> store, Answered answered)
      : store_(std::move(store)), answered_(std::move(answered)) {}
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;
  ~StoreThread() {
    // Nothing is left to hear of a failure.
    thread_.give([this] { static_cast<void>(store_->resign()); });
  }

  void call(cluster::StoreCall call) {
    thread_.give([this, call = std::move(call)] { answered_(cluster::carry_out(*store_, call)); });
  }

 private:
  std::unique_ptr<host::Store> store_;
  Answered answered_;
  host::SerialThread thread_{"store"};  // declared last: ends first
};

}  // namespace gossamer::node
