// SPDX-License-Identifier: Apache-2.0
//
// ConnectionThreads: cpp-httplib's task queue with an upper bound. There is one thread per open connection,
// made when needed and kept; when all are busy, accepting waits. Internal to host/posix.
//
// Thread rule: enqueue() and shutdown() by the accepting thread.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace gossamer::host {

class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t most) : most_(most) {}

  // Runs `task` on a thread of its own; waits while `most` others run.
  void enqueue(std::function<void()> task) override;
  // Waits for all tasks to end.
  void shutdown() override;

 private:
  void work();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::function<void()>> next_;  // handed over, not begun
  std::size_t idle_ = 0;                       // threads that wait for a task
  bool ended_ = false;
  std::vector<std::thread> threads_;  // used by the accepting thread alone
};

}  // namespace gossamer::host
