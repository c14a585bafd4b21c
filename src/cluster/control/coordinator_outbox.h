// SPDX-License-Identifier: Apache-2.0
//
// CoordinatorOutbox: what leaves a coordinator: changes of the store, messages to members, events for people.
// A message waits until all changes before it are in the store (durable_outbox.h). Only say() does not wait.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <gossamer/membership.pb.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cluster/control/durable_outbox.h"
#include "cluster/control/leadership.h"
#include "net/link/links.h"

namespace gossamer::cluster {

class CoordinatorOutbox {
 public:
  // All arguments outlive the outbox.
  CoordinatorOutbox(const CoordinatorOptions& options, const LedRun& run, net::Links& links, Instant now);
  CoordinatorOutbox(const CoordinatorOutbox&) = delete;
  CoordinatorOutbox& operator=(const CoordinatorOutbox&) = delete;

  // The time of the coordinator's last call. Messages leave at this time, and so it is set first.
  void set_now(Instant now) { now_ = now; }
  [[nodiscard]] Instant now() const { return now_; }

  void put(host::Change change) { outbox_.put(std::move(change)); }
  void guard() { outbox_.guard(); }
  void then(DurableOutbox::Action action) { outbox_.then(std::move(action)); }
  void tell(const LedMember& member, membership::ToMember message);
  // Leaves at once: the message rests on no decision.
  void say(net::PeerId to, membership::ToMember message) const;
  // Tells the peer that it is fenced, also if it was fenced before this coordinator led and comes only now.
  void refuse(net::PeerId peer);
  // Tells a member of a joining one, which its view does not have: it refuses lives of which it was not told.
  // Nothing happens if neither has come, or none joins. A joining member is told only of those to which it is
  // to open the link. It learns of the others with the view in which it serves.
  void introduce(const LedMember& joins, const LedMember& to);
  // A joining member, to which the others were introduced, is fenced: they hear of it at once. Called once
  // the members of the run are without it.
  void withdraw(net::PeerId joined);
  // The view has changed by this. The members whose state has changed are told of all that join.
  void view_changed(const membership::Change& change);
  // The members that serve have changed.
  void set_serving(std::set<net::PeerId> peers) { links_.set_serving(std::move(peers)); }
  // Consumed only once the consequences are durable. While the store fails, windows bound what waits here.
  void consume(const net::Receipt& receipt);
  void note(std::string kind, net::PeerId peer, std::string text);

  [[nodiscard]] std::optional<std::vector<host::Change>> next_commit() { return outbox_.next_commit(); }
  [[nodiscard]] bool waiting() const { return outbox_.waiting(); }
  void committed(Instant now);
  void commit_failed();
  // Whether the last commit failed.
  [[nodiscard]] bool store_fails() const { return store_fails_; }

  [[nodiscard]] std::vector<RunEvent> take_events() { return std::exchange(events_, {}); }

 private:
  const CoordinatorOptions& options_;
  const LedRun& run_;
  net::Links& links_;
  DurableOutbox outbox_;
  std::vector<RunEvent> events_;
  Instant now_;
  bool store_fails_ = false;
};

}  // namespace gossamer::cluster
