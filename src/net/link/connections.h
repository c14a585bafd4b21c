// SPDX-License-Identifier: Apache-2.0
//
// Connections: all connections of a node. They run over the network or, as inner ones, over the relay, and
// are used in the same way. Some belong to links, the others are strangers. Bytes are counted here.
//
// Owner: Links. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/ids.h"
#include "base/slice.h"
#include "base/time.h"
#include "host/api/network.h"
#include "net/link/connection.h"
#include "net/link/link.h"
#include "net/link/relay.h"
#include "net/link/strangers.h"

namespace gossamer::net {

class Connections {
 public:
  Connections(host::Network& network, const Relay::Options& relay, const Strangers::Limits& strangers);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  // Closes every connection without a word; nothing may be called after it.
  void abandon();

  // Null if there is none of this name (any more).
  [[nodiscard]] Connection* find(host::ConnectionId id);
  // Requires that there is one. It stays in its place until drop().
  [[nodiscard]] Connection& at(host::ConnectionId id) { return connections_.at(id); }
  [[nodiscard]] const Connection& at(host::ConnectionId id) const { return connections_.at(id); }

  // Starts to open a connection for a lane of the link.
  Connection& dial(const Link& link, host::Lane lane, Instant now);
  // Takes a connection that another node has opened, as a stranger. Closes it if there is no room for it.
  void accept(const host::Accepted& event, Instant now);
  // The connection is up: it is a stranger no more. Requires its `node`.
  void raise(const Connection& connection);
  // The connection belongs to no link any more. It is a stranger, and must be gone by its deadline.
  void dismiss(Connection& connection, Instant now);
  // Hangs up and forgets the connection. Requires that it is in the state `gone`.
  void drop(const Connection& connection);
  // Closes a connection that is not known here (any more).
  void hang_up(host::ConnectionId id);

  void send(Connection& connection, Slices frame);
  // Windows bound what a link holds; the network need not hold anything back.
  void consumed(const host::Received& event);
  // Bytes handed to connections since the beginning, with headers and all that was sent again.
  [[nodiscard]] std::uint64_t sent_bytes() const { return sent_bytes_; }

  // The stranger with the earliest deadline.
  [[nodiscard]] std::optional<std::pair<Instant, host::ConnectionId>> next_stranger() const {
    return strangers_.next();
  }
  // Whether a connection of this link has reached the other side and said Hello.
  [[nodiscard]] bool speaks(const Link& link) const;
  [[nodiscard]] Relay& relay() { return relay_; }
  [[nodiscard]] const Relay& relay() const { return relay_; }

 private:
  Connection& add(host::ConnectionId id, host::Lane lane, Instant now);
  void add_stranger(const Connection& connection, Instant now);

  host::Network& network_;
  std::map<host::ConnectionId, Connection> connections_;
  Strangers strangers_;
  Relay relay_;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace gossamer::net
