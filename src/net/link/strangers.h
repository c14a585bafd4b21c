// SPDX-License-Identifier: Apache-2.0
//
// Strangers: connections that belong to no link, because they have not said Hello yet or were told our last
// word. Each must be gone by its deadline. Their number is bounded. Those of one host, or of one certificate,
// can take only a part of the room, so that no flood keeps the others out.
//
// Thread rule: plain value, owned by Links.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "host/api/network.h"

namespace gossamer::net {

class Strangers {
 public:
  struct Limits {
    std::size_t in_all = 2048;
    std::size_t of_host = 256;  // room for one host: perhaps many nodes behind one NAT
    std::size_t of_certificate = 32;
  };
  // The origin of a stranger. A part that is not known is empty, and sets no limit.
  struct Origin {
    std::string host;
    std::string certificate;
  };

  explicit Strangers(const Limits& limits) : limits_(limits) {}

  [[nodiscard]] bool has_room(const Origin& origin) const;
  // Requires that it is no stranger yet. It is taken even without room: connections that we dismiss need
  // their place.
  void add(host::ConnectionId id, Origin origin, Instant deadline);
  // Does nothing for a connection that is no stranger.
  void remove(host::ConnectionId id);
  [[nodiscard]] bool contains(host::ConnectionId id) const { return all_.contains(id); }

  // The stranger with the earliest deadline.
  [[nodiscard]] std::optional<std::pair<Instant, host::ConnectionId>> next() const;

 private:
  struct One {
    Origin origin;
    Instant deadline;
  };

  const Limits limits_;
  std::map<host::ConnectionId, One> all_;
  std::set<std::pair<Instant, host::ConnectionId>> by_deadline_;
  std::map<std::string, std::size_t> of_host_;
  std::map<std::string, std::size_t> of_certificate_;
};

}  // namespace gossamer::net
