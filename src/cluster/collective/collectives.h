// SPDX-License-Identifier: Apache-2.0
//
// Collectives: all-gather, reduce-scatter, all-reduce and all-to-all among the members of a view
// (docs/protocols/collective.md). Each operation that is begun ends in exactly one of Completed and Failed,
// provided that messages arrive and losses are reported. Small operations take one one-way delay. Sums are
// formed in the order of ranks, so all members get the same bits, in every run.
//
//   Collectives exchanges({.self = me, .channel = 7});
//   exchanges.install(view, lost_members, out);
//   exchanges.begin(OperationId(step), {OperationKind::kAllGather, bytes_by_rank}, {my_part}, out);
//
// The driver's duties:
// - It sends every Send, in order, on one lane.
// - It hands over what arrives on the channel.
// - It reports a member that it has no link with as lost.
//
// A pure state machine without time: its only inputs are these calls. Messages are taken over at once: the
// driver may tell the link that it has consumed them. held_bytes() is bounded (the page, "Memory").
//
// Cost: on() forms sums, one pass over the chunk that it is given and those that waited for it; nothing else
// touches a payload. Nothing is copied but the first term of a sum. With SumsFormed::kAside no call touches a
// number: take_work() gives what the caller does elsewhere, one piece after the other, and worked() goes on.
//
// Thread rule: one owner. Work belongs to the thread that does it, and knows nothing of this object.
#pragma once

#include <gossamer/collective.pb.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/slice.h"
#include "cluster/collective/early_messages.h"
#include "cluster/collective/exchange.h"
#include "cluster/collective/operation.h"
#include "cluster/collective/view.h"
#include "net/link/message.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {

// A message to be sent, in order.
struct Send {
  net::PeerId to;
  net::Message message;
};
// The result of an operation:
// - all-gather and all-to-all: the parts by rank, our own included
// - sums: one run of bytes, our part of the sum or all of it
//
// Slices of a sum formed here are aligned for f32; others are as they came.
struct Completed {
  OperationId id;
  std::vector<Slices> result;
};
// There will be no result: the member `lost` was lost or, with nobody named, another view took over.
struct Failed {
  OperationId id;
  std::optional<net::PeerId> lost;
};
// A peer broke the rules. It counts as lost, so operations that need it have failed. The driver should end
// its link.
struct RuleBroken {
  net::PeerId peer;
  Error error;
};
// All peers together have sent more for later than this node keeps, and this one the most. It counts as lost,
// and the driver should end its link, but it has broken no rule.
struct TooMuchKept {
  net::PeerId peer;
};
using CollectiveEvent = std::variant<Send, Completed, Failed, RuleBroken, TooMuchKept>;
using CollectiveEvents = std::vector<CollectiveEvent>;

class Collectives {
 public:
  struct Options {
    net::PeerId self;
    std::uint32_t channel = 0;  // of our messages; one for each Collectives of a node
    CollectiveLimits limits = {};
    // Whether members begin `later` only with the result of `earlier`. A message of `later` then says that
    // its sender has all of `earlier`. Without that a peer could let this node keep for ever what it is to be
    // sent.
    std::function<bool(OperationId earlier, OperationId later)> follows = {};
    SumsFormed formed = SumsFormed::kAtOnce;  // kAside: by take_work()
    // Whether a peer is gone for good, also one that was no member: nobody reports that as lost.
    std::function<bool(net::PeerId)> gone = {};
  };

  explicit Collectives(const Options& options) : options_(options) {}

  // Takes over another view, which has a higher epoch than the last and ourselves among its members. `lost`:
  // peers known to be lost by now; later ones come through lost(). Operations under way fail.
  void install(ExchangeView view, std::span<const net::PeerId> lost, CollectiveEvents& out);

  // Begins an operation in the view. Requires a view, a part for each member, and a number that was not used
  // in this view. `input` has exactly as many bytes as operation.parts says, and must not change any more:
  // - all-gather: our part
  // - all-to-all: the parts for all ranks, one after the other
  // - sums: the whole tensor, as it travels (sum_numbers.h: as_sent()); of one member alone, as in memory
  void begin(OperationId id, const Operation& operation, Slices input, CollectiveEvents& out);

  // A message on our channel.
  void on(net::PeerId from, net::Message message, CollectiveEvents& out);

  // A peer is lost for good, as an incarnation. What it has sent for operations to begin is forgotten.
  void lost(net::PeerId peer, CollectiveEvents& out);

  // kAside: work that is to be done next; nothing: none, or some is under way.
  [[nodiscard]] std::function<void()> take_work();
  // It is done. Its operation may have failed meanwhile.
  void worked(CollectiveEvents& out);
  // Numbers that were added, rounded or read within calls of this object.
  [[nodiscard]] std::uint64_t numbers_touched() const;

  // The first operation without a result, and the members that have not sent what it needs from them now.
  // Nothing: none is under way.
  struct Missing {
    OperationId id;
    std::uint64_t chunks = 0;  // to come, of all members
    std::vector<net::PeerId> members = {};
  };
  [[nodiscard]] std::optional<Missing> missing() const;
  // Payload bytes of others that wait for sums under way, and what was sent for operations to begin.
  [[nodiscard]] std::uint64_t held_bytes() const;
  // Operations that have not ended, or have something to send.
  [[nodiscard]] std::size_t under_way() const { return exchanges_.size(); }

 private:
  struct Running {
    explicit Running(Exchange e) : exchange(std::move(e)) {}
    Exchange exchange;
    bool told = false;  // Completed is out
  };

  void keep(net::PeerId from, wire::Collective body, net::Message message, CollectiveEvents& out);
  [[nodiscard]] bool goes_on_without(std::size_t rank, OperationId id) const;
  void feed(OperationId id, net::PeerId from, const wire::Collective& body, Slices payload,
            CollectiveEvents& out);
  void send(OperationId id, const Exchange& exchange, Outbox outbox, CollectiveEvents& out) const;
  void settle(OperationId id, CollectiveEvents& out);
  void end(std::map<OperationId, Running>::iterator running);
  void fail_all(std::optional<net::PeerId> lost, CollectiveEvents& out);
  void broke(net::PeerId peer, Error error, CollectiveEvents& out);

  const Options options_;
  std::optional<ExchangeView> view_;
  std::size_t me_ = 0;               // our rank
  std::optional<net::PeerId> lost_;  // the first member of the view that was lost
  std::map<OperationId, Running> exchanges_;
  std::optional<std::pair<OperationId, std::shared_ptr<SumWork>>> working_;
  std::uint64_t touched_ = 0;  // by operations that are over
  EarlyMessages early_;
};

}  // namespace gossamer::cluster
