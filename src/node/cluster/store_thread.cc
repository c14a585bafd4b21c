// SPDX-License-Identifier: Apache-2.0
#include "node/cluster/store_thread.h"

#include <utility>

namespace gossamer::node {

StoreThread::StoreThread(std::unique_ptr<host::Store> store, Answered answered) : store_(std::move(store)) {
  thread_ = std::thread([this, answered = std::move(answered)] { work(answered); });
}

StoreThread::~StoreThread() {
  orders_.push(End{});
  thread_.join();
}

void StoreThread::call(cluster::StoreCall call) { orders_.push(std::move(call)); }

void StoreThread::work(const Answered& answered) {
  const Duration patience = from_seconds(3600);  // it only looks again
  for (;;) {
    for (const Order& order : orders_.wait(patience)) {
      const auto* const call = std::get_if<cluster::StoreCall>(&order);
      if (call == nullptr) {
        // A successor need not wait for silence. Nobody is left to hear of a failure.
        static_cast<void>(store_->resign());
        return;
      }
      answered(cluster::carry_out(*store_, *call));
    }
  }
}

}  // namespace gossamer::node
