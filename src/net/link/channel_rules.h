// SPDX-License-Identifier: Apache-2.0
//
// ChannelRules: what the table of channels allows (docs/protocols/link.md, "Channels"): which nodes may send
// on a channel, to which nodes, on which lanes, and how much. A message that breaks the table is refused at
// its first piece, before anything of it is kept. The user of links gives the table, and says which peers
// serve.
//
// Thread rule: one owner.
#pragma once

#include <gossamer/link.pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/result.h"
#include "host/api/network.h"
#include "net/link/peer_id.h"

namespace gossamer::net {

// What a sender is in the run.
enum class Sender : std::uint8_t {
  kCoordinator,
  kServing,  // a member of the view, which may be about to leave
  kJoining,  // any other node with a certificate of the run
};
[[nodiscard]] std::string_view name(Sender sender);

// What a receiver is.
enum class Receiver : std::uint8_t { kCoordinator, kMember, kAny };
[[nodiscard]] std::string_view name(Receiver receiver);

enum class Lanes : std::uint8_t { kControl, kBulk, kBoth };
[[nodiscard]] std::string_view name(Lanes lanes);

// A row of the table. What no row allows is forbidden.
struct ChannelRule {
  std::uint32_t channel = 0;
  Sender sender = Sender::kJoining;
  Lanes lanes = Lanes::kControl;
  std::uint64_t most_bytes = 0;  // of one message: body and payload
  Receiver receiver = Receiver::kAny;
};

class ChannelRules {
 public:
  // The table outlives the rules. Without rows everything is allowed. `coordinator`: the node that leads.
  // `own`: what this node is, which receives.
  explicit ChannelRules(std::span<const ChannelRule> table = {}, NodeId coordinator = {},
                        Receiver own = Receiver::kMember)
      : table_(table), coordinator_(coordinator), own_(own) {}

  // The peers that serve. Before the first call all members count as serving: the view is not known.
  void set_serving(std::set<PeerId> peers) { serving_ = std::move(peers); }
  // The peer was asked on the channel for an answer of so many bytes. From now on a message of it may have
  // them, whatever its row says.
  void expect(PeerId from, std::uint32_t channel, std::uint64_t most_bytes);
  // The most bytes of messages that may wait here for the peer on a lane. A peer that lets more gather does
  // not read. Without a table: any number.
  [[nodiscard]] std::uint64_t most_queued(PeerId peer, host::Lane lane) const;
  // Why the message that begins with `start` may not come; nothing: it may. The error, without `where`, is
  // kBadData.
  [[nodiscard]] std::optional<Error> objection(PeerId from, host::Lane lane,
                                               const wire::Data::Start& start) const;

 private:
  [[nodiscard]] Sender sender(PeerId peer) const;
  [[nodiscard]] std::uint64_t most_bytes(PeerId from, const ChannelRule& row) const;

  std::span<const ChannelRule> table_;
  NodeId coordinator_;
  Receiver own_;
  std::optional<std::set<PeerId>> serving_;
  std::map<std::pair<NodeId, std::uint32_t>, std::pair<Incarnation, std::uint64_t>> expected_;
};

}  // namespace gossamer::net
