// SPDX-License-Identifier: Apache-2.0
//
// gRPC's callback interface polls sockets with half as many threads as the machine has processors, and with
// two at least. Each time that one of them leaves the poll with something to do it wakes another, which polls
// in its place: a quarter of the task switches of a small node, and no work done sooner. A PollerHold keeps
// the surplus ones out of the poll (ADR 20).
//
// Nobody may wait on a gRPC thread for what another one does: there may be no other.
//
// Thread rule: any thread but gRPC's.
#pragma once

#include <memory>

namespace gossamer::host {

// Of the machine's, those that this thread may run on.
[[nodiscard]] int usable_processors();
// Pollers that `processors` usable ones leave room for: one for each four, and one at least.
[[nodiscard]] int useful_pollers(int processors);
// Pollers that gRPC's library has here; 0 where that is not known of its version.
[[nodiscard]] int grpc_pollers();

// One for all networks of the process: their threads are the same.
class PollerHold {
 public:
  [[nodiscard]] static std::shared_ptr<PollerHold> get();

  PollerHold();
  PollerHold(const PollerHold&) = delete;
  PollerHold& operator=(const PollerHold&) = delete;
  // Lets them go first: the last channel joins them.
  ~PollerHold();

 private:
  struct Held;
  std::unique_ptr<Held> held_;  // null where there is nothing to hold
};

}  // namespace gossamer::host
