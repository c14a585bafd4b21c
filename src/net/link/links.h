// SPDX-License-Identifier: Apache-2.0
//
// Links: all links of a node (docs/protocols/link.md). It opens connections, checks the identity of each end,
// and opens again what broke. It carries messages on the two lanes of each link, so that none is lost or
// doubled while both incarnations live.
//
// A pure state machine over the Network seam. Events come in by on(), and time by `now`; what users should
// know goes into `out`. Calls on the Network only queue. The driver calls tick() at next_wakeup().
//
// Thread rule: one owner, the loop thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"
#include "host/api/network.h"
#include "net/link/connection.h"
#include "net/link/frame.h"
#include "net/link/lane_stream.h"
#include "net/link/link_probe.h"
#include "net/link/message.h"
#include "net/link/peer_id.h"
#include "net/link/relay.h"
#include "net/link/strangers.h"

namespace gossamer::net {

// The address of a node: where it listens, an endpoint for each lane. Or, instead, the node `via` through
// which it is reached: that one relays, and both ends have links with it.
struct PeerAddress {
  NodeId node;
  host::Endpoint control = {};
  host::Endpoint bulk = {};
  NodeId via = {};
};

// A control connection is up: for the first time, or again.
struct LinkUp {
  PeerId peer;
};
// The control connection is gone; the side that opened it tries again. A process that ended looks like this
// at once.
struct LinkBroken {
  PeerId peer;
  Error reason;
};
// An attempt to open one failed and will be repeated. The node may never have been reached.
struct OpenFailed {
  NodeId node;
  Error reason;
};
// Why the other side refuses the link, if it said so.
enum class Refused {
  kNo,
  kFenced,        // this incarnation was declared dead
  kElsewhere,     // another node or run than we thought
  kIncompatible,  // versions or certificates do not fit
};
// The link is over: the peer left, was fenced, came back as another incarnation, or refused us (kind
// kRefused). Messages that were not acknowledged are lost. `peer.incarnation` is 0 if we never got through.
struct LinkEnded {
  PeerId peer;
  Error reason;
  Refused refused = Refused::kNo;
};
// A node opened a connection and was refused, because it speaks no wire version that this node does. There is
// no link.
struct Incompatible {
  PeerId peer;
  Error reason;
};
// The receipt of a message, to hand back to consumed(). It names one link, of which a node may have several
// in its life.
struct Receipt {
  NodeId node;
  std::uint64_t link = 0;
  host::Lane lane = host::Lane::kControl;
  std::uint64_t bytes = 0;
};
struct Arrived {
  PeerId from;
  Message message;
  Receipt receipt;
};
using LinkEvent = std::variant<LinkUp, LinkBroken, OpenFailed, LinkEnded, Incompatible, Arrived>;
using LinkEvents = std::vector<LinkEvent>;

struct LinkStatistics {
  bool up = false;                     // the control connection
  std::optional<Duration> round_trip;  // of the last Ping
  std::optional<Instant> last_heard;   // anything that arrived
  // In counted_bytes(), both lanes.
  std::uint64_t queued_bytes = 0;  // sent by the user, not acknowledged
  std::uint64_t acknowledged_bytes = 0;
  std::uint64_t received_bytes = 0;
  std::optional<NodeId> relayed_by = {};  // what is up goes through this node
  std::uint64_t link = 0;  // differs for each link with the node, as in Ticket; 0: there is none
};

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
    bool relays = false;  // carries connections between nodes that it has links with
    std::uint64_t relay_bytes = 256ULL
                                << 20;  // what may wait for them in all; an inner connection ends beyond
    Strangers::Limits strangers = {};   // accepted connections beyond them are closed at once
    ProbeCounts<LinkProbe>* probes = nullptr;
  };
  static constexpr Duration kGreetingTime{5'000'000'000};
  static constexpr Duration kPingEvery{1'000'000'000};
  static constexpr Duration kSilence{
      10'000'000'000};  // a connection on which nothing came for so long is closed
  static constexpr std::uint64_t kUnwritten = 1ULL << 20;

  Links(host::Network& network, Options options);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  // Closes every connection without a word. For a user that ends while its Network lives on. Nothing may be
  // called after it.
  void abandon();

  // Opens a link, unless there is one with that node. LinkUp, OpenFailed or LinkEnded tell how it goes.
  void open(const PeerAddress& to, Instant now);
  // Leaves on purpose: says Goodbye and ends the link. No LinkEnded on this side.
  void close(NodeId node, const std::string& reason, Instant now);
  // Ends the link with this incarnation, if there is one, and refuses it and older ones for ever.
  void fence(PeerId peer, Instant now, LinkEvents& out);
  // Takes connections that this node relays to us, and believes it which node opened them. (The opener of a
  // link through a relay believes that relay anyway.)
  void trust_relay(NodeId node) { relay_.trust(node); }

  [[nodiscard]] bool linked(NodeId node) const { return links_.contains(node); }

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

  [[nodiscard]] LinkStatistics statistics(NodeId node) const;
  // Bytes handed to connections since the beginning, with headers and all that was sent again. The second
  // counts only the pieces of messages on one channel.
  [[nodiscard]] std::uint64_t sent_bytes() const { return sent_bytes_; }
  [[nodiscard]] std::uint64_t sent_bytes(std::uint32_t channel) const;
  // The nodes that speak through this node, and with which; each pair both ways round.
  [[nodiscard]] std::map<NodeId, std::set<NodeId>> relayed() const { return relay_.pairs(); }
  // Bytes that wait here to be relayed, as they count against relay_bytes.
  [[nodiscard]] std::uint64_t relay_held() const { return relay_.held(); }

 private:
  struct LaneState {
    explicit LaneState(std::uint64_t window) : stream(window) {}
    LaneStream stream;
    std::optional<host::ConnectionId> connection;  // dialing or up
    bool up = false;
    int failures = 0;
    std::optional<Instant> retry;
  };
  struct Link {
    Link(std::uint64_t control_window, std::uint64_t bulk_window)
        : lanes{LaneState(control_window), LaneState(bulk_window)} {}
    PeerId peer;  // incarnation 0 until it is known
    PeerAddress address;
    bool opener = false;
    std::uint64_t session = 0;
    std::uint64_t serial = 0;  // ours, never used again
    bool was_up = false;
    std::array<LaneState, host::kLanes> lanes;
    std::optional<Duration> round_trip;
    std::optional<Instant> last_heard;
    std::optional<Instant> wake;  // its entry in wakes_
  };

  // links.cc: users, time, connections that come and go.
  void hand_on(host::NetworkEvent& event, Instant now, LinkEvents& out);
  void on_event(const host::Opened& event, Instant now, LinkEvents& out);
  void on_event(const host::Accepted& event, Instant now, LinkEvents& out);
  void on_event(host::Received& event, Instant now, LinkEvents& out);
  void on_event(const host::Written& event, Instant now, LinkEvents& out);
  void on_event(const host::Closed& event, Instant now, LinkEvents& out);
  void dial(Link& link, host::Lane lane, Instant now);
  void lost(Link& link, host::Lane lane, const Error& reason, Instant now, LinkEvents& out);
  void end(NodeId node, Error reason, LinkEvents& out, Refused refused = Refused::kNo);
  void drop_connections(Link& link);
  void drop(host::ConnectionId id);
  void tick_link(Link& link, Instant now, LinkEvents& out);
  // Sends what may be sent, and an Ack if one is due; then notes when to look again.
  void serve(Link& link, Instant now);
  void serve_lane(Link& link, host::Lane lane, Instant now);
  void schedule(Link& link, Instant now);

  // handshake.cc: frames of a connection.
  void on_frame(Connection& connection, Frame frame, Instant now, LinkEvents& out);
  void on_hello(Connection& connection, const wire::Hello& hello, Instant now, LinkEvents& out);
  void on_welcome(Connection& connection, const wire::Welcome& welcome, Instant now, LinkEvents& out);
  void on_refusal(Connection& connection, const wire::Refusal& refusal, Instant now, LinkEvents& out);
  void on_established(Connection& connection, Frame frame, Instant now, LinkEvents& out);
  void say_hello(Connection& connection, Link& link);
  void establish(Connection& connection, Link& link, const wire::Progress& theirs, Instant now,
                 LinkEvents& out);
  [[nodiscard]] std::optional<wire::Refusal> objection(const Connection& connection,
                                                       const wire::Hello& hello) const;
  [[nodiscard]] std::optional<wire::Refusal> session_objection(const Connection& connection,
                                                               const wire::Hello& hello) const;
  [[nodiscard]] bool speaks(const Link& link) const;
  // The link that an unobjectionable Hello belongs to, made or replaced as the protocol says.
  [[nodiscard]] Link& link_for(const wire::Hello& hello, LinkEvents& out);
  [[nodiscard]] static wire::Refusal fenced_refusal(PeerId peer);
  void unexpected(Connection& connection, const wire::FrameHeader& header, std::string expected, Instant now,
                  LinkEvents& out);
  void refuse(Connection& connection, const wire::Refusal& refusal, Instant now);
  void fault(Connection& connection, Error error, Instant now, LinkEvents& out);
  void send_frame(Connection& connection, Slices frame);
  // Makes the connection a stranger: it belongs to no link, and must be gone in time.
  void make_stranger(const Connection& connection, Instant now);
  void hang_up(host::ConnectionId id);
  // Serves relayed connections: hands on their events, and sends frames to and from the relay.
  void settle(Instant now, LinkEvents& out);
  Link& make_link(NodeId node);
  Connection& add_connection(host::ConnectionId id, host::Lane lane, Instant now);

  host::Network& network_;
  const Options options_;
  Rng rng_;
  std::uint64_t last_session_ = 0;
  std::uint64_t last_serial_ = 0;
  std::uint64_t last_token_ = 0;
  std::map<NodeId, Link> links_;
  std::map<host::ConnectionId, Connection> connections_;
  std::map<NodeId, Incarnation> fenced_;  // the highest fenced incarnation of each node
  // The newest link session that each node opened to us: a Hello may have been under way for long.
  std::map<NodeId, std::pair<Incarnation, std::uint64_t>> newest_session_;
  std::set<std::pair<Instant, NodeId>> wakes_;
  std::uint64_t sent_bytes_ = 0;
  std::map<std::uint32_t, std::uint64_t> sent_on_channel_;
  Strangers strangers_;
  Relay relay_;
};

}  // namespace gossamer::net
