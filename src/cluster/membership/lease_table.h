// SPDX-License-Identifier: Apache-2.0
//
// Leases: the right to work on something for a duration, measured on monotonic clocks that nobody compares.
// The holder counts from the moment it sent its request (HeldLease), the granter from its answer and 5 % more
// (LeaseTable; Gray and Cheriton, "Leases", SOSP 1989). Whatever the delays, the holder stops believing
// before the granter gives the key away, as long as their clocks' rates differ by less than 5 %.
//
// What is leased are keys of a space: one number, or a range of them such as the sample ids of a microbatch.
// No two holders ever have a key, overlapping ranges included.
//
// Fencing does not wait: fence() frees all leases of an incarnation at once although that incarnation may
// believe in them for a while. It is refused everywhere, so what it believes is harmless.
//
// Messages may be lost, repeated, and overtake each other. Each request carries `sent`, the holder's clock
// when it was sent, which orders the requests of one incarnation: a release that a later request has
// overtaken frees nothing, and an answer to a request from before dropped() gives nothing.
//
// What must survive is the list of leases without times: entries(). A table made from it grants all of them
// anew, which is right because no answer of the table before can be younger. So only granting and freeing is
// persisted, in that order, before it is answered; renewing is not. It follows that a coordinator may answer
// a renewal only if it was still the leader when the request arrived.
//
// Cost: logarithmic in the number of leases, about 200 bytes each; fence() visits them all.
// Thread rule: one owner each.
#pragma once

#include <compare>
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

// What the keys number: sample ids, shards, moves to a stage. The engines choose.
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
  Duration duration;  // of the holder, from sending its request
  bool operator==(const Lease&) const = default;
};

struct LeaseRequest {
  Lease lease;
  Instant sent;  // on the holder's clock
};

enum class LeaseOutcome {
  kGranted,  // new: persist the lease before answering
  kRenewed,  // the holder had exactly these keys; nothing to persist
  kHeld,     // `holder` has some of the keys: another, or the same one with another range
  kNotHeld,  // renewing: lapsed, released or freed since. The keys may have been others' meanwhile
  kFenced,
};

struct LeaseAnswer {
  LeaseOutcome outcome = LeaseOutcome::kFenced;
  Duration duration = {};   // kGranted, kRenewed: what the holder may count, that of the first grant
  Incarnation holder = {};  // kHeld
};

// The granter's side.
class LeaseTable {
 public:
  LeaseTable() = default;
  // Takes up what entries() of a table before returned. `now` is on this table's clock, which need not be
  // that of the table before, and not before the last answer of that table. Leases of fenced holders are left
  // out. Requires keys that do not overlap.
  LeaseTable(std::span<const Lease> leases, FencedIncarnations fenced, Instant now);

  // Asks for keys, or again for keys that it has. Requires keys.begin < keys.end and a positive duration.
  // A lease that has lapsed is held until expire() says so.
  [[nodiscard]] LeaseAnswer grant(const LeaseRequest& request, Instant now);
  // Asks for more time; the duration asked for is ignored.
  [[nodiscard]] LeaseAnswer renew(const LeaseRequest& request, Instant now);
  // The holder gives back exactly these keys. True: freed, persist before they are granted again. Ignored
  // where a later request was heard of; in a table made from entries() that cannot be known before the holder
  // asks again, so there too, and the lease lapses instead.
  [[nodiscard]] bool release(const LeaseRequest& request);
  // Frees and returns what has lapsed by `now`: persist before any of it is granted again.
  [[nodiscard]] std::vector<Lease> expire(Instant now);
  // Frees and returns what the incarnation holds, and refuses it from now on. To persist: the fencing itself.
  std::vector<Lease> fence(Incarnation incarnation);

  // Requires key < 2^64 - 1.
  [[nodiscard]] std::optional<Incarnation> holder(LeaseSpace space, std::uint64_t key) const;
  // By space and begin.
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
    std::optional<Instant> asked;  // on the holder's clock: its last request, as far as this table has heard
  };
  using Place = std::map<Key, Held>::iterator;

  [[nodiscard]] std::optional<Incarnation> holder_of_any(const LeaseKeys& keys) const;
  [[nodiscard]] Place find(const Lease& lease);
  LeaseAnswer prolong(Place place, Instant sent, Instant now);
  void insert(const Lease& lease, std::optional<Instant> asked, Instant now);
  Place erase(Place place);

  std::map<Key, Held> held_;
  std::set<std::pair<Instant, Key>> by_end_;
  FencedIncarnations fenced_;
};

// The holder's side: one object for one lease, or for the keys asked for again and again.
class HeldLease {
 public:
  // An answer kGranted or kRenewed to the request that was sent at `sent`. Answers may come in any order.
  void granted(Instant sent, Duration duration);
  // Given back at `now`, or the holder learnt that it lost it: earlier requests give nothing any more.
  void dropped(Instant now);

  // Ask anew at each use, not once before a long piece of work.
  [[nodiscard]] bool valid(Instant now) const { return until_ && now < *until_; }
  [[nodiscard]] std::optional<Instant> until() const { return until_; }

 private:
  std::optional<Instant> until_ = std::nullopt;
  std::optional<Instant> dropped_ = std::nullopt;
};

}  // namespace gossamer::cluster
