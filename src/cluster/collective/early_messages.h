// SPDX-License-Identifier: Apache-2.0
//
// EarlyMessages: what peers have sent for operations that have not begun here, and for views to come
// (docs/protocols/collective.md, "What comes early, what comes late"). The caller says how much may be kept,
// of one peer and of all together. Messages of an operation stay in the order of their arrival.
//
// Cost: keep() is logarithmic; what forgets a peer, or looks for the largest, is linear in what is kept.
// Thread rule: one owner.
#pragma once

#include <gossamer/collective.pb.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/slice.h"
#include "cluster/collective/operation.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {

class EarlyMessages {
 public:
  struct Message {
    net::PeerId from;
    wire::Collective body;
    Slices payload;
    std::uint64_t bytes = 0;  // in net::counted_bytes(): a body may have fields that nobody knows
  };

  // By view and operation, as the body names them.
  void keep(Message message);
  // All of one operation, which are kept no more.
  [[nodiscard]] std::vector<Message> take(Epoch view, OperationId id);

  void forget_before(Epoch view);
  void forget_view(Epoch view);
  void forget_peer(net::PeerId peer);
  void forget_peers(const std::function<bool(net::PeerId)>& those);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t bytes_of(net::PeerId peer) const;
  // The peer that has the most bytes here, the lowest of several. Requires that something is kept.
  [[nodiscard]] net::PeerId largest() const;

 private:
  using Key = std::pair<Epoch, OperationId>;
  using ByKey = std::map<Key, std::vector<Message>>;

  void forget(ByKey::iterator begin, ByKey::iterator end);
  void release(net::PeerId peer, std::uint64_t bytes);

  ByKey messages_;
  std::map<net::PeerId, std::uint64_t> of_peers_;  // bytes, of those that have some
  std::uint64_t bytes_ = 0;
};

}  // namespace gossamer::cluster
