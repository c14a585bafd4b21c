// SPDX-License-Identifier: Apache-2.0
//
// Links: all links of a node (docs/protocols/link.md). It opens connections, checks the identity of each end,
// and opens again what broke. It carries messages on the two lanes of each link, so that none is lost or
// doubled while both incarnations live.
//
// A pure state machine over the Network seam. Events come in by on(), and time by `now`; what users should
// know goes into `out`. Calls on the Network only queue. The driver calls tick() at next_wakeup().
//
// Its parts: all connections (connections.h) with the states of each (link_states.h), and the identity of the
// other end (handshake.h). Another part is the frames of connections that are up (link_traffic.h).
//
// Thread rule: one owner, the loop thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"
#include "host/api/network.h"
#include "net/link/channel_rules.h"
#include "net/link/connection.h"
#include "net/link/connections.h"
#include "net/link/dial_budget.h"
#include "net/link/frame.h"
#include "net/link/handshake.h"
#include "net/link/lane_stream.h"
#include "net/link/link.h"
#include "net/link/link_events.h"
#include "net/link/link_probe.h"
#include "net/link/link_traffic.h"
#include "net/link/message.h"
#include "net/link/peer_id.h"
#include "net/link/strangers.h"

namespace gossamer::net {

// Names a message that was sent.
struct Ticket {
  NodeId node;
  std::uint64_t link = 0;
  host::Lane lane = host::Lane::kControl;
  MessageNumber number = 0;
};

class Links {
 public:
  struct Options {
    std::string run;      // only nodes of the same run are spoken to
    PeerId self;          // both parts at least 1
    std::string program;  // for people
    std::uint64_t seed = 0;
    std::uint64_t control_window = 16ULL << 20;
    std::uint64_t bulk_window = 32ULL << 20;
    std::span<const ChannelRule> channels = {};  // what peers may send; empty: anything
    NodeId coordinator = {};                     // the node that leads, for the channels
    bool relays = false;                         // carries connections between nodes that it has links with
    std::uint64_t relay_bytes = 256ULL << 20;    // what may wait for them in all
    Strangers::Limits strangers = {};            // accepted connections beyond them are closed at once
    ProbeCounts<LinkProbe>* probes = nullptr;
    // kOfLink: a lane counts as heard while the other one is. A defect for simulations.
    enum class Silence { kOfLane, kOfLink } silence = Silence::kOfLane;
  };
  Links(host::Network& network, Options options);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  // Closes every connection without a word. For a user that ends while its Network lives on. Nothing may be
  // called after it.
  void abandon() { connections_.abandon(); }

  // Opens a link, unless there is one with that node. LinkUp, OpenFailed or LinkEnded tell how it goes. A
  // link that is forsaken ends first.
  void open(const PeerAddress& to, Instant now);
  // Leaves on purpose: says Goodbye and ends the link. No LinkEnded on this side.
  void close(NodeId node, const std::string& reason, Instant now);
  // Ends the link with this incarnation, if there is one, and refuses it and older ones for ever. Tells of
  // this link alone.
  void fence(PeerId peer, Instant now, LinkEvents& out);
  // Takes connections that this node relays to us, and believes it which node opened them. (The opener of a
  // link through a relay believes that relay anyway.)
  void trust_relay(NodeId node) { connections_.relay().trust(node); }

  // The lives that this node was told of; the coordinator's need not be told. Hello and Welcome of any other
  // life are answered with BUSY until a later call names it. Before the first call every life is welcome.
  void set_known(std::set<PeerId> lives) { handshake_.set_known(std::move(lives)); }
  // The peers that serve, for the table of channels. Before the first call all members count as serving.
  void set_serving(std::set<PeerId> peers) { traffic_.rules().set_serving(std::move(peers)); }

  // The peer was asked on the channel for an answer of so many bytes (ChannelRules::expect).
  void expect(PeerId from, std::uint32_t channel, std::uint64_t most_bytes) {
    traffic_.rules().expect(from, channel, most_bytes);
  }

  // Opens the connection of a lane anew by another way, if this node opened the link: directly, or through a
  // relay. No message is lost or doubled, as with connections that broke. False: it did not open it. The next
  // on() or tick() tells that the lane is broken.
  bool reroute(const PeerAddress& to, host::Lane lane, Instant now);
  // Since when a lane of a link that this node opened carries less than it should. It does while it is not
  // up. The control lane also does while nothing comes on it, or what goes there has no answer. A lane with
  // nothing wrong gives a moment within the last Ping and its answer.
  [[nodiscard]] std::optional<Instant> blocked_since(NodeId node, host::Lane lane, Instant now) const {
    const Link* const link = find(node);
    if (link == nullptr || !link->opener) return std::nullopt;
    return link->blocked_since(lane, connections_, now);
  }
  // Dials again at once what waits for its next attempt, if this node opened the link. Attempts that are
  // under way stay.
  void hurry(NodeId node, Instant now);

  [[nodiscard]] bool linked(NodeId node) const { return links_.contains(node); }
  // Whether there is a link that the peer has opened, and may have ended or lost (Link::forsaken). A user
  // whose part it is to open links with that node opens another.
  [[nodiscard]] bool forsaken(NodeId node, Instant now) const {
    const Link* const link = find(node);
    return link != nullptr && link->forsaken(now);
  }

  // Queues a message, also before the link is up. Gives nothing if there is no link with that incarnation;
  // incarnation 0 takes any incarnation that the link is with.
  [[nodiscard]] std::optional<Ticket> send(PeerId to, host::Lane lane, Message message, Instant now);
  // Takes back a message that is not wholly sent; false if it is, or if the link is gone.
  bool cancel(const Ticket& ticket);
  // Whether the other side has all of it, or the link is gone.
  [[nodiscard]] bool settled(const Ticket& ticket) const;
  // The user is done with a message that arrived. Nothing happens if its link is gone.
  void consumed(const Receipt& receipt, Instant now);

  // Questions among the events belong to another user; nothing happens for them.
  void on(host::NetworkEvent event, Instant now, LinkEvents& out);
  void tick(Instant now, LinkEvents& out);
  // The time at which tick() has something to do; nothing: only events matter.
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  [[nodiscard]] LinkStatistics statistics(NodeId node) const {
    const Link* const link = find(node);
    return link == nullptr ? LinkStatistics() : link->statistics(connections_);
  }
  // Bytes handed to connections since the beginning, with headers and all that was sent again. The second
  // counts only the pieces of messages on one channel.
  [[nodiscard]] std::uint64_t sent_bytes() const { return connections_.sent_bytes(); }
  [[nodiscard]] std::uint64_t sent_bytes(std::uint32_t channel) const { return traffic_.sent_bytes(channel); }
  // The nodes that speak through this node, and with which; each pair both ways round.
  [[nodiscard]] std::map<NodeId, std::set<NodeId>> relayed() const { return connections_.relay().pairs(); }
  // Bytes that wait here to be relayed, as they count against relay_bytes.
  [[nodiscard]] std::uint64_t relay_held() const { return connections_.relay().held(); }

 private:
  // Users, time, and connections that come and go.
  void hand_on(host::NetworkEvent& event, Instant now, LinkEvents& out);
  void on_event(const host::Opened& event, Instant now, LinkEvents& out);
  void on_event(const host::Accepted& event, Instant now, LinkEvents&) { connections_.accept(event, now); }
  void on_event(host::Received& event, Instant now, LinkEvents& out);
  void on_event(const host::Written& event, Instant now, LinkEvents& out);
  void on_event(const host::Closed& event, Instant now, LinkEvents& out);
  // Serves relayed connections: hands on their events, and sends frames to and from the relay.
  void settle(Instant now, LinkEvents& out);
  void tick_link(Link& link, Instant now, LinkEvents& out);
  // Sends what may be sent, then notes when to look again.
  void serve(Link& link, host::Lane lane, Instant now);
  void schedule(Link& link, Instant now);
  void dial(Link& link, host::Lane lane, Instant now);
  void dial_all(Link& link, Instant now);

  // Frames.
  void on_frame(Connection& connection, Frame frame, Instant now, LinkEvents& out);
  void on_hello(Connection& connection, const wire::Hello& hello, Instant now, LinkEvents& out);
  void on_welcome(Connection& connection, const wire::Welcome& welcome, Instant now, LinkEvents& out);
  void raise(Connection& connection, Link& link, const wire::Progress& theirs, Instant now, LinkEvents& out);

  // Lanes (links_lanes.cc).
  struct Lost {
    Error reason;
    Instant heard;  // when something last came over the connection
  };
  void tell_untold(LinkEvents& out);
  void heard(Connection& connection, Instant now);

  // Ends. Does what the row of the connection's state and the event says.
  void leave(Connection& connection, Ending ending, Instant now, LinkEvents& out);
  void fault(Connection& connection, const Error& error, Instant now, LinkEvents& out);
  void refuse(Connection& connection, const wire::Refusal& refusal, Instant now);
  void lost(Link& link, host::Lane lane, Lost how, Instant now, LinkEvents& out);
  void end(NodeId node, Error reason, LinkEvents& out, Refused refused = Refused::kNo);
  void drop_connections(Link& link);
  void drop_connection(LaneState& lane);

  // Null if there is no link with the node.
  [[nodiscard]] Link* find(NodeId node);
  [[nodiscard]] const Link* find(NodeId node) const;
  Link& make_link(NodeId node);
  // The link that a Hello without objection belongs to, made or replaced as the protocol says.
  [[nodiscard]] Link& link_for(const wire::Hello& hello, LinkEvents& out);
  void forget(const Link& link);

  const Options options_;
  Rng rng_;
  std::uint64_t last_session_ = 0;
  std::uint64_t last_serial_ = 0;
  std::map<NodeId, Link> links_;
  std::set<std::pair<Instant, NodeId>> wakes_;
  DialBudget dials_;
  LinkEvents untold_;  // of calls that have no place for them
  Connections connections_;
  LinkTraffic traffic_;
  Handshake handshake_;
};

}  // namespace gossamer::net
