// SPDX-License-Identifier: Apache-2.0
//
// Handshake: the identity of the other end of a connection, and whether it may have a link
// (docs/protocols/link.md, "Opening"). It writes Hello and Welcome, and judges those of the other side. Links
// does what comes of it, by the states of a connection (link_states.h).
//
//   if (const auto refusal = handshake.objection(connection, hello, known)) say(*refusal);
//   switch (handshake.claim(hello, link)) ...  // which link the Hello is for
//
// It remembers which incarnations were fenced, and the newest link session that each node opened. A node
// could claim any incarnation. So its user says which lives the coordinator has told it of.
//
// Owner: Links. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "host/api/network.h"
#include "net/link/connection.h"
#include "net/link/frame.h"
#include "net/link/link.h"
#include "net/link/link_events.h"
#include "net/link/link_probe.h"
#include "net/link/link_states.h"
#include "net/link/peer_id.h"

namespace gossamer::net {

// An event that may end a connection, and what the user and the other side are told if it does.
struct Ending {
  ConnectionEvent event;
  Error reason = {};
  Refused refused = Refused::kNo;
  wire::Refusal refusal = {};
};

class Handshake {
 public:
  struct Options {
    std::string run;
    PeerId self;
    std::string program;
    NodeId coordinator = {};  // the node that leads; its lives need not be told
    ProbeCounts<LinkProbe>* probes = nullptr;
  };
  // What this node has with the node of a Hello.
  struct Known {
    const Link* link = nullptr;  // null: no link
    bool speaks = false;         // a connection of that link, opened by this node, has said Hello
  };
  // The link that a Hello is for.
  enum class Claim {
    kSameLink,   // the one that is there
    kTakesOver,  // the one that is there, which this node was opening itself
    kNewLink,    // a new one; the one that is there ends
  };

  explicit Handshake(Options options) : options_(std::move(options)) {}

  // Refuses this incarnation and older ones for ever.
  void fence(PeerId peer);
  // The lives that this node was told of. Any other is refused until it is among them, unless it is one of
  // the coordinator. Before the first call every life is welcome.
  void set_known(std::set<PeerId> lives) { known_lives_ = std::move(lives); }
  [[nodiscard]] static wire::Refusal fenced_refusal(PeerId peer);

  [[nodiscard]] Slices hello(Link& link, host::Lane lane) const;
  [[nodiscard]] Slices welcome(Link& link, host::Lane lane, const wire::Hello& hello) const;

  // Why the Hello is refused; nothing: it is welcome.
  [[nodiscard]] std::optional<wire::Refusal> objection(const Connection& connection, const wire::Hello& hello,
                                                       const Known& known) const;
  // What the user should know of a Hello that was refused.
  [[nodiscard]] static std::optional<Incompatible> incompatible(const Connection& connection,
                                                                const wire::Hello& hello,
                                                                const wire::Refusal& refusal);
  // Notes the session of a Hello without objection. `link`: with its node; null: there is none.
  [[nodiscard]] Claim claim(const wire::Hello& hello, const Link* link);

  // What follows if a connection that this node has opened leads to another node. Nothing: the other end is
  // the node that is meant, or has no certificate.
  [[nodiscard]] static std::optional<Ending> wrong_end(const Connection& connection);
  // Why the Welcome ends the link; nothing: it is as expected.
  [[nodiscard]] std::optional<Error> objection(const Connection& connection, const wire::Welcome& welcome,
                                               const Link& link) const;

  // What a Refusal of the other side means.
  [[nodiscard]] static Ending on_refusal(const wire::Refusal& refusal, const std::string& where);
  // The peer broke a rule: what is said about it here and there.
  [[nodiscard]] static Ending fault(Error error);
  // What follows from a Welcome with an objection: the link ends here, and the node that said it is told so.
  [[nodiscard]] static Ending wrong_welcome(Error error);

 private:
  [[nodiscard]] std::optional<wire::Refusal> identity_objection(const Connection& connection,
                                                                const wire::Hello& hello,
                                                                const Link* link) const;
  [[nodiscard]] std::optional<wire::Refusal> session_objection(const Connection& connection,
                                                               const wire::Hello& hello,
                                                               const Known& known) const;
  [[nodiscard]] bool fenced(PeerId peer) const;
  [[nodiscard]] bool is_known(PeerId peer) const;

  const Options options_;
  std::optional<std::set<PeerId>> known_lives_;
  std::map<NodeId, Incarnation> fenced_;  // the highest fenced incarnation of each node
  // The newest link session that each node opened to us: a Hello may have been under way for long.
  std::map<NodeId, std::pair<Incarnation, std::uint64_t>> newest_session_;
};

// The peer that a Hello or Welcome names.
[[nodiscard]] inline PeerId peer_of(const wire::Incarnation& from) {
  return {NodeId{from.node()}, Incarnation{from.incarnation()}};
}

}  // namespace gossamer::net
