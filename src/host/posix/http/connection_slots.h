// SPDX-License-Identifier: Apache-2.0
//
// ConnectionSlots: a thread for each open connection, at most `most` + kSpareSlots of them. A connection
// rests, or it is at work for a request that takes time. At most `most` are at work, so a slot is always
// there for a page. If all slots are taken, the connection that has rested longest is shut for a new one. So
// a client that never ends its request holds nobody up.
//
// Internal to host/posix/http. Thread rule: add() and end() by the accepting thread; Slot by its connection's
// thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace gossamer::host {

inline constexpr std::size_t kSpareSlots = 16;

class ConnectionSlots {
 public:
  class Slot;
  using Talk = std::function<void(Slot&)>;

  explicit ConnectionSlots(std::size_t most) : most_(most) {}

  // Runs `talk` for an open socket on a thread of its own, then closes the socket. Waits for a free slot.
  void add(int socket, Talk talk);
  // Shuts the connection that has rested longest, if there is one.
  void make_room();
  // Waits for all connections to end.
  void end();

 private:
  struct Connection {
    int socket = -1;
    Talk talk = {};
    bool begun = false;
    bool rests = true;
    bool shut = false;
    std::uint64_t rests_since = 0;  // counts up
  };
  using Place = std::list<Connection>::iterator;

  void work();
  void shut_longest();
  [[nodiscard]] bool take_slot(Place place);
  void rest(Place place);

  const std::size_t most_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::list<Connection> open_;
  std::size_t at_work_ = 0;
  std::uint64_t rests_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;  // used by the accepting thread alone
};

// What a connection's thread tells of itself.
class ConnectionSlots::Slot {
 public:
  Slot(ConnectionSlots& slots, Place place) : slots_(slots), place_(place) {}
  [[nodiscard]] int socket() const { return place_->socket; }
  // From now on the connection is not shut for others. False: as many as may be are at work.
  [[nodiscard]] bool work() { return slots_.take_slot(place_); }
  // From now on it may be.
  void rest() { slots_.rest(place_); }

 private:
  ConnectionSlots& slots_;
  Place place_;
};

}  // namespace gossamer::host
