// SPDX-License-Identifier: Apache-2.0
//
// PacketQueue is queue 0 of one network namespace's NFQUEUE, by its numbers only. The kernel keeps the
// packets whole (super-packets of GSO included). The number of each packet that came passes here, and back
// goes the verdict "accept all up to this one".
//
// It speaks over a raw netlink socket with the kernel's own headers. Two kinds of messages go out and one
// attribute comes in, for which a library (and its package) would cost more than it saves. Protocol:
// linux/netfilter/nfnetlink_queue.h.
//
// Errors: kFailed with the namespace and the system's text. Owner: the program's only loop. Closing drops the
// packets that are held. Thread rule: one thread; open() changes the thread's namespace for a moment.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gossamer::lab {

class PacketQueue {
 public:
  // Opens the queue. `namespace_path` is a file of the namespace such as /run/netns/NAME. Needs
  // CAP_SYS_ADMIN and CAP_NET_ADMIN.
  [[nodiscard]] static Result<PacketQueue> open(const std::string& namespace_path);

  PacketQueue(PacketQueue&& other) noexcept : fd_(other.fd_), where_(std::move(other.where_)) {
    other.fd_ = -1;
  }
  PacketQueue& operator=(PacketQueue&& other) = delete;
  ~PacketQueue();

  // A descriptor that is readable when packets have come. It never blocks.
  [[nodiscard]] int descriptor() const { return fd_; }

  // Appends the numbers of packets that have come, in their order. It may be some of them, so
  // that other queues get their turn.
  [[nodiscard]] Result<void> read(std::vector<std::uint32_t>& packets);

  // Sends `packet` and all packets before it on their way.
  [[nodiscard]] Result<void> accept_up_to(std::uint32_t packet);

 private:
  PacketQueue(int fd, std::string where) : fd_(fd), where_(std::move(where)) {}
  [[nodiscard]] Result<void> bind();

  int fd_;
  std::string where_;
};

}  // namespace gossamer::lab
