// SPDX-License-Identifier: Apache-2.0
//
// HandshakeRate: how many TLS handshakes the guests of one host may begin (docs/protocols/admission.md, "At
// the door"). A handshake costs processor time, also if the guest then says nothing. Each host has a store of
// kBurst handshakes, which fills up by kEachSecond. A guest above that waits for its turn.
//
// The newest one has the next turn, because older ones have often given up. So a guest that tries again soon
// gets through a flood of its own host. The handshake of a node is given back, so nodes are not slowed down
// however many come from one address.
//
// Cost: a map entry for each host that has begun a handshake in the last seconds. Thread rule: a plain object
// of one thread. Times only grow.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "base/time.h"
#include "host/posix/door/door_book.h"
#include "host/posix/door/peer_address.h"

namespace gossamer::host {

class HandshakeRate {
 public:
  static constexpr double kEachSecond = 100;
  static constexpr double kBurst = 256;

  // Whether a guest of this host may begin now. If so, it is counted.
  [[nodiscard]] bool take(const PeerAddress& host, Instant now);
  // A guest that was counted has shown a certificate of the run.
  void give_back(const PeerAddress& host, Instant now);

  // A guest waits for its turn, until then or until forget(). Ids rise.
  void wait(const PeerAddress& host, GuestId guest);
  void forget(const PeerAddress& host, GuestId guest);
  // A guest whose turn it is; it is counted, and waits no more.
  [[nodiscard]] std::optional<GuestId> next(Instant now);
  // When the next turn is; nothing: no guest waits.
  [[nodiscard]] std::optional<Instant> next_turn() const;

  [[nodiscard]] std::size_t hosts() const { return hosts_.size(); }

 private:
  struct Host {
    double left = kBurst;
    Instant at;  // of `left`
    std::set<GuestId> waiting = {};
  };
  Host& find(const PeerAddress& host, Instant now);
  void forget_idle(Instant now);

  std::map<PeerAddress, Host> hosts_;
  std::set<PeerAddress> waiting_;
  Instant swept_;
};

}  // namespace gossamer::host
