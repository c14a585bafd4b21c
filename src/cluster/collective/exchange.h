// SPDX-License-Identifier: Apache-2.0
//
// Exchange: one operation as one member sees it, with what it sends to each member, what it has received, and
// the result. Internal to Collectives, which names members and keeps early messages.
//
// A pure state machine. Thread rule: one owner.
#pragma once

#include <gossamer/collective.pb.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/slice.h"
#include "cluster/collective/operation.h"
#include "cluster/collective/ordered_sum.h"
#include "cluster/collective/sum_numbers.h"

namespace gossamer::cluster {

// One message to the member of rank `to`.
struct Outgoing {
  std::size_t to = 0;
  wire::Collective::Kind kind = wire::Collective::UNKNOWN;
  std::uint64_t number = 0;
  Slices payload;
};
using Outbox = std::vector<Outgoing>;

[[nodiscard]] wire::Collective::Operation wire_name(OperationKind kind);

class Exchange {
 public:
  // Requires input and parts as Collectives::begin() does.
  Exchange(const Operation& operation, std::size_t me, Slices input, const CollectiveLimits& limits,
           SumsFormed formed = SumsFormed::kAtOnce);

  void start(Outbox& out);
  // Takes a message. The error, without `where`, is for one that a correct member never sends; it changes
  // nothing.
  [[nodiscard]] Result<void> on(std::size_t from, const wire::Collective& body, Slices payload, Outbox& out);

  // kAside: the work that comes first; nothing: none. It stays the first until the caller says that it is
  // done.
  [[nodiscard]] std::shared_ptr<SumWork> work() const {
    return works_.empty() ? nullptr : works_.front().work;
  }
  void worked(Outbox& out);
  // Numbers that were added, rounded or read within the calls above.
  [[nodiscard]] std::uint64_t numbers_touched() const { return touched_; }

  // The result is here.
  [[nodiscard]] bool complete() const { return missing_ == 0 && works_.empty(); }
  // All of our chunks are sent. If complete(), nothing will come either.
  [[nodiscard]] bool sent_all() const { return unsent_ == 0; }
  [[nodiscard]] bool sent_all_to(std::size_t rank) const {
    return rank == me_ || members_[rank].sent == members_[rank].out.chunks();
  }
  // The result. Requires complete(), and may be called once.
  [[nodiscard]] std::vector<Slices> take_result();
  // The members, by rank, that have not sent what they may. One that is granted nothing more lacks something
  // itself, and so does one that forms a sum while parts are missing.
  [[nodiscard]] std::vector<std::size_t> awaited() const;
  // Messages to come, of all members.
  [[nodiscard]] std::uint64_t missing() const { return missing_; }
  [[nodiscard]] OperationKind kind() const { return kind_; }
  [[nodiscard]] std::uint64_t waiting_bytes() const { return sum_.has_value() ? sum_->waiting_bytes() : 0; }

 private:
  // Our state towards one member: PART chunks to and from it, and SUM chunks from it.
  struct Member {
    SliceReader to_send{Slices{}};
    StreamShape out;
    std::uint64_t sent = 0;
    std::uint64_t allowed = 0;  // chunks of `out` that the member lets us send

    StreamShape in;
    std::uint64_t received = 0;
    std::uint64_t granted = 0;  // chunks of `in` that we let it send

    StreamShape sums;
    std::uint64_t summed = 0;

    Slices here;  // the bytes of the result that came from it
  };

  void cut_input(const Operation& operation, const Slices& input, const CollectiveLimits& limits);
  void plan_streams(const Operation& operation, const CollectiveLimits& limits);
  [[nodiscard]] std::size_t after(std::size_t offset) const { return (me_ + offset) % members_.size(); }
  void send_allowed(Outbox& out);
  void grant(std::uint64_t target, Outbox& out);
  [[nodiscard]] Result<void> on_part(std::size_t from, std::uint64_t number, Slices payload, Outbox& out);
  [[nodiscard]] Result<void> on_sum(std::size_t from, std::uint64_t number, Slices payload, Outbox& out);
  [[nodiscard]] Result<void> on_grant(std::size_t from, std::uint64_t number, Outbox& out);
  void on_chunk(OrderedSum::Chunk chunk, Outbox& out);
  // Work for a chunk of the result that lies in the part of that rank.
  void want(SumWork work, std::size_t rank, Outbox& out);
  void on_done(SumWork& work, std::size_t rank, Outbox& out);

  const OperationKind kind_;
  const SumNumbers numbers_;
  const SumsFormed formed_;
  const std::size_t me_;
  bool in_two_rounds_ = false;
  std::uint64_t window_ = 0;
  std::vector<Member> members_;  // by rank; members_[me_] has only `here`
  std::optional<OrderedSum> sum_;
  struct Wanted {
    std::shared_ptr<SumWork> work;
    std::size_t rank;
  };
  std::deque<Wanted> works_;
  std::uint64_t touched_ = 0;
  std::uint64_t missing_ = 0;  // chunks to receive, PART and SUM
  std::uint64_t unsent_ = 0;   // chunks of PART; a SUM goes out when it is made
};

}  // namespace gossamer::cluster
