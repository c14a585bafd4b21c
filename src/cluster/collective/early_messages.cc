// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/early_messages.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace gossamer::cluster {

void EarlyMessages::keep(Message message) {
  of_peers_[message.from] += message.bytes;
  bytes_ += message.bytes;
  const Key key = {Epoch(message.body.view()), OperationId(message.body.id())};
  messages_[key].push_back(std::move(message));
}

std::vector<EarlyMessages::Message> EarlyMessages::take(Epoch view, OperationId id) {
  const auto found = messages_.find({view, id});
  if (found == messages_.end()) return {};
  std::vector<Message> taken = std::move(found->second);
  for (const Message& one : taken) release(one.from, one.bytes);
  messages_.erase(found);
  return taken;
}

void EarlyMessages::forget_before(Epoch view) {
  forget(messages_.begin(), messages_.lower_bound({view, OperationId(0)}));
}

void EarlyMessages::forget_view(Epoch view) {
  forget(messages_.lower_bound({view, OperationId(0)}),
         messages_.lower_bound({Epoch(view.value + 1), OperationId(0)}));
}

void EarlyMessages::forget(ByKey::iterator begin, ByKey::iterator end) {
  for (auto one = begin; one != end; ++one) {
    for (const Message& early : one->second) release(early.from, early.bytes);
  }
  messages_.erase(begin, end);
}

void EarlyMessages::forget_peer(net::PeerId peer) {
  if (!of_peers_.contains(peer)) return;
  for (auto& [key, kept] : messages_) std::erase_if(kept, [&](const auto& one) { return one.from == peer; });
  std::erase_if(messages_, [](const auto& one) { return one.second.empty(); });
  release(peer, bytes_of(peer));
}

void EarlyMessages::forget_peers(const std::function<bool(net::PeerId)>& those) {
  std::vector<net::PeerId> gone;
  for (const auto& [peer, bytes] : of_peers_) {
    if (those(peer)) gone.push_back(peer);
  }
  for (const net::PeerId peer : gone) forget_peer(peer);
}

void EarlyMessages::release(net::PeerId peer, std::uint64_t bytes) {
  const auto found = of_peers_.find(peer);
  CHECK(found != of_peers_.end() && bytes <= found->second, peer.node.value, bytes);
  found->second -= bytes;
  bytes_ -= bytes;
  if (found->second == 0) of_peers_.erase(found);
}

std::uint64_t EarlyMessages::bytes_of(net::PeerId peer) const {
  const auto found = of_peers_.find(peer);
  return found == of_peers_.end() ? 0 : found->second;
}

net::PeerId EarlyMessages::largest() const {
  CHECK(!of_peers_.empty());
  return std::ranges::max_element(of_peers_, {}, [](const auto& one) { return one.second; })->first;
}

}  // namespace gossamer::cluster
