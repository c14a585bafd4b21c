// SPDX-License-Identifier: Apache-2.0
//
// StoreThread: a thread that owns a Store, because its calls block. One call at a time; the answer is handed
// to a function on that thread, which posts it to the loop. The destructor waits for the call under way,
// and gives the lead up.
//
// Thread rule: one owner, the loop thread.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "cluster/control/coordinator_process.h"
#include "host/api/store.h"
#include "host/posix/mailbox.h"

namespace gossamer::node {

class StoreThread {
 public:
  using Answered = std::function<void(cluster::StoreAnswer)>;
  StoreThread(std::unique_ptr<host::Store> store, Answered answered);
  ~StoreThread();
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  // Requires that the call before was answered.
  void call(cluster::StoreCall call);

 private:
  struct End {};
  using Order = std::variant<cluster::StoreCall, End>;

  void work(const Answered& answered);

  std::unique_ptr<host::Store> store_;
  host::Mailbox<Order> orders_;
  std::thread thread_;
};

}  // namespace gossamer::node
