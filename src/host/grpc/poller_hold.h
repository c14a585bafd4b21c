// SPDX-License-Identifier: Apache-2.0
//
// PollerHold keeps surplus threads of gRPC out of the poll (ADR 20). gRPC's callback interface polls sockets
// with half as many threads as the machine has processors, at least two and at most 16. Each time that one of
// them leaves the poll with something to do, it wakes another, which polls in its place. That makes a quarter
// of the task switches of a small node, and no work is done sooner.
//
// Nobody may wait on a gRPC thread for what another one does: there may be no other.
//
// Thread rule: any thread but gRPC's.
#pragma once

#include <memory>

namespace gossamer::host {

// The processors of the machine that this thread may run on.
[[nodiscard]] int usable_processors();
// The number of pollers that are useful on `processors` usable processors: one for each four, and one at
// least.
[[nodiscard]] int useful_pollers(int processors);
// The number of pollers that gRPC's library has here; 0 where it is not known for the library's version.
[[nodiscard]] int grpc_pollers();

// One PollerHold serves all networks of the process: their threads are the same.
class PollerHold {
 public:
  [[nodiscard]] static std::shared_ptr<PollerHold> get();

  PollerHold();
  PollerHold(const PollerHold&) = delete;
  PollerHold& operator=(const PollerHold&) = delete;
  // Lets the held threads go first: the last channel joins them.
  ~PollerHold();

 private:
  struct Held;
  std::unique_ptr<Held> held_;  // null where there is nothing to hold
};

}  // namespace gossamer::host
