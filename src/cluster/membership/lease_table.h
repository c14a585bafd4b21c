// SPDX-License-Identifier: Apache-2.0
//
// Leases: the right to work on something for a duration, measured on monotonic clocks that nobody compares.
// The holder counts from the moment it sent its request (HeldLease). The granter counts from its answer, and
// 5 % more (LeaseTable; Gray and Cheriton, "Leases", SOSP 1989). So the holder stops believing before the
// granter gives the key away, whatever the delays. The only condition is that their clocks' rates differ by
// less than 5 %.
//
// A lease is for keys of a space: one number, or a range of them such as the sample ids of a microbatch. No
// two holders ever have a key, overlapping ranges included.
//
// Fencing does not wait: fence() frees all leases of an incarnation at once, although that incarnation may
// believe in them for a while. It is refused everywhere, so its belief is harmless.
//
// Messages may be lost, repeated, and overtake each other. Each request carries `sent`, the time on the
// holder's clock when it was sent, which orders the requests of one incarnation. A release that a later
// request has overtaken frees nothing. An answer to a request from before dropped() gives nothing.
//
// The list of leases without times, entries(), must survive. A table made from it grants all of them anew,
// which is right because no answer of the table before can be younger. So granting and freeing are persisted,
// in that order, before they are answered; renewing is not persisted. It follows that a coordinator may
// answer a renewal only if it was still the leader when the request arrived.
//
// Cost: logarithmic in the number of leases, about 200 bytes each; fence() visits them all. Thread rule: one
// owner each.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/membership/fenced_incarnations.h"

namespace gossamer::cluster {

// A space of keys, such as sample ids, shards, or moves to a stage. The engines choose.
using LeaseSpace = StrongId<struct LeaseSpaceTag>;

// The keys [begin, end) of a space.
struct LeaseKeys {
  LeaseSpace space;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  auto operator<=>(const LeaseKeys&) const = default;
};

struct Lease {
  LeaseKeys keys;
  Incarnation holder;
  Duration duration;  // for the holder, from sending its request
  bool operator==(const Lease&) const = default;
};

struct LeaseRequest {
  Lease lease;
  Instant sent;  // on the holder's clock
};

enum class LeaseOutcome {
  kGranted,  // new: persist the lease before answering
  kRenewed,  // the holder had exactly these keys; nothing to persist
  kHeld,     // `holder` has some of the keys: another node, or this one with another range
  kNotHeld,  // renewing: lapsed, released or freed. Others may have had the keys meanwhile
  kFenced,
  kNotServing,  // asking: a member outside of the view is granted none
};

struct LeaseAnswer {
  LeaseOutcome outcome = LeaseOutcome::kFenced;
  Duration duration = {};   // kGranted, kRenewed: what the holder may count, as in the first grant
  Incarnation holder = {};  // kHeld
};

// The granter's side.
class LeaseTable {
 public:
  LeaseTable() = default;
  // Takes up entries() of an earlier table. `now` is on this table's clock, which may be another clock. It
  // must not lie before the earlier table's last answer. Leases of fenced holders are left out. Requires keys
  // that do not overlap.
  LeaseTable(std::span<const Lease> leases, FencedIncarnations fenced, Instant now);

  // Asks for keys, or again for keys that the holder has. Requires keys.begin < keys.end and a positive
  // duration. A lapsed lease is held until expire() returns it.
  [[nodiscard]] LeaseAnswer grant(const LeaseRequest& request, Instant now);
  // Asks for more time; the duration asked for is ignored.
  [[nodiscard]] LeaseAnswer renew(const LeaseRequest& request, Instant now);
  // The holder gives back exactly these keys. True: they are free; persist that before they are granted
  // again. The call is ignored if a later request was heard. It is also ignored in a table made from
  // entries() until the holder asks again, as the table cannot know of later requests. The lease lapses then.
  [[nodiscard]] bool release(const LeaseRequest& request);
  // Frees and returns the leases that have lapsed by `now`. Persist this before any of them is granted again.
  [[nodiscard]] std::vector<Lease> expire(Instant now);
  // Frees and returns all leases of the incarnation, and refuses it from now on. Persist the fencing itself.
  std::vector<Lease> fence(Incarnation incarnation);

  // Requires key < 2^64 - 1.
  [[nodiscard]] std::optional<Incarnation> holder(LeaseSpace space, std::uint64_t key) const;
  // How many leases the incarnation holds.
  [[nodiscard]] std::size_t held(Incarnation holder) const {
    const auto found = count_.find(holder);
    return found == count_.end() ? 0 : found->second;
  }
  // All leases, by space and begin.
  [[nodiscard]] std::vector<Lease> entries() const;
  // When expire() next has something to do.
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

 private:
  using Key = std::pair<LeaseSpace, std::uint64_t>;  // space and begin
  struct Held {
    std::uint64_t end;
    Incarnation holder;
    Duration duration;
    Instant until;
    std::optional<Instant> asked;  // by the holder's clock: its last request heard by this table
  };
  using Place = std::map<Key, Held>::iterator;

  [[nodiscard]] std::optional<Incarnation> holder_of_any(const LeaseKeys& keys) const;
  [[nodiscard]] Place find(const Lease& lease);
  LeaseAnswer prolong(Place place, Instant sent, Instant now);
  void insert(const Lease& lease, std::optional<Instant> asked, Instant now);
  Place erase(Place place);

  std::map<Key, Held> held_;
  std::set<std::pair<Instant, Key>> by_end_;
  std::map<Incarnation, std::size_t> count_;  // of each holder
  FencedIncarnations fenced_;
};

// The holder's side: one object for one lease, or for keys that are asked for again and again.
class HeldLease {
 public:
  // The answer kGranted or kRenewed came to the request sent at `sent`. Answers may come in any order.
  void granted(Instant sent, Duration duration);
  // The lease was given back at `now`, or the holder learnt that it lost it. Earlier requests give nothing
  // any more.
  void dropped(Instant now);

  // Whether the holder has the lease. Ask anew at each use, not once before a long piece of work.
  [[nodiscard]] bool valid(Instant now) const { return until_ && now < *until_; }
  [[nodiscard]] std::optional<Instant> until() const { return until_; }

 private:
  std::optional<Instant> until_ = std::nullopt;
  std::optional<Instant> dropped_ = std::nullopt;
};

}  // namespace gossamer::cluster
