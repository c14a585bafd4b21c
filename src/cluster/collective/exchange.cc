// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace gossamer::cluster {
namespace {

Error fault(std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .what = "the peer broke the rules of a collective operation",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether all nodes run the same version with the same configuration"};
}

// Checks that a chunk is the next of its stream, is granted, and has the right size.
Result<void> check_chunk(const StreamShape& shape, std::uint64_t next, std::uint64_t limit,
                         std::uint64_t number, std::uint64_t bytes) {
  if (number != next || next >= limit) {
    return fault(fmt::format("chunk {}", number),
                 fmt::format("chunk {}, with {} of {} granted", next, limit, shape.chunks()));
  }
  if (bytes != shape.size_of(number)) {
    return fault(fmt::format("{} bytes in chunk {}", bytes, number), std::to_string(shape.size_of(number)));
  }
  return {};
}

bool sums(OperationKind kind) {
  return kind == OperationKind::kReduceScatter || kind == OperationKind::kAllReduce;
}

std::uint64_t input_bytes(const Operation& operation, std::size_t me) {
  if (operation.kind == OperationKind::kAllGather) return operation.parts[me];
  const std::uint64_t whole =
      std::accumulate(operation.parts.begin(), operation.parts.end(), std::uint64_t{0});
  if (!sums(operation.kind)) return whole;
  // One member alone gets what it gave: nothing travels.
  const bool alone = operation.parts.size() == 1;
  return whole * (alone ? number_bytes(operation.numbers) : travel_bytes(operation.numbers));
}

}  // namespace

wire::Collective::Operation wire_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::kAllGather: return wire::Collective::ALL_GATHER;
    case OperationKind::kReduceScatter: return wire::Collective::REDUCE_SCATTER;
    case OperationKind::kAllReduce: return wire::Collective::ALL_REDUCE;
    case OperationKind::kAllToAll: return wire::Collective::ALL_TO_ALL;
  }
  return wire::Collective::NONE;
}

Exchange::Exchange(const Operation& operation, std::size_t me, Slices input, const CollectiveLimits& limits,
                   SumsFormed formed)
    : kind_(operation.kind),
      numbers_(operation.numbers),
      formed_(formed),
      me_(me),
      members_(operation.parts.size()) {
  CHECK(me < members_.size(), me, members_.size());
  const std::uint64_t expected = input_bytes(operation, me);
  CHECK(total_bytes(input) == expected, total_bytes(input), expected);
  const bool all_to_all = kind_ == OperationKind::kAllToAll;
  CHECK(operation.from.size() == (all_to_all ? members_.size() : 0), operation.from.size());
  CHECK(!all_to_all || operation.from[me] == operation.parts[me], operation.from[me], operation.parts[me]);
  if (members_.size() == 1) {
    members_[me_].here = std::move(input);
    return;
  }
  window_ = window_chunks(limits, members_.size());
  in_two_rounds_ = kind_ == OperationKind::kAllReduce && !goes_direct(limits, expected, members_.size());
  cut_input(operation, input, limits);
  plan_streams(operation, limits);
}

// Cuts the input into what each member gets: all of it, or the bytes of the member's own part.
void Exchange::cut_input(const Operation& operation, const Slices& input, const CollectiveLimits& limits) {
  const bool cut =
      kind_ == OperationKind::kReduceScatter || kind_ == OperationKind::kAllToAll || in_two_rounds_;
  const std::uint64_t unit = sums(kind_) ? travel_bytes(numbers_) : 1;
  const std::uint64_t chunk = chunk_size(limits, members_.size());
  SliceReader reader(input);
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    Slices part = cut ? reader.take(operation.parts[rank] * unit) : input;
    Member& member = members_[rank];
    member.out = {total_bytes(part), chunk};
    if (rank != me_) {
      member.to_send = SliceReader(std::move(part));
    } else if (!sums(kind_)) {
      member.here = std::move(part);
    } else {
      sum_.emplace(numbers_, members_.size(), me_, std::move(part), member.out, formed_);
    }
  }
}

void Exchange::plan_streams(const Operation& operation, const CollectiveLimits& limits) {
  const std::uint64_t chunk = chunk_size(limits, members_.size());
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    Member& member = members_[rank];
    if (rank == me_) continue;
    const std::uint64_t part = operation.parts[rank];
    if (!sums(kind_)) {
      member.in = {kind_ == OperationKind::kAllGather ? part : operation.from[rank], chunk};
    } else {
      member.in = members_[me_].out;
    }
    if (in_two_rounds_) member.sums = {part * travel_bytes(numbers_), chunk};
    member.allowed = std::min(window_, member.out.chunks());
    member.granted = std::min(window_, member.in.chunks());
    missing_ += member.in.chunks() + member.sums.chunks();
    unsent_ += member.out.chunks();
  }
}

void Exchange::start(Outbox& out) {
  send_allowed(out);
  if (sums(kind_)) return;
  for (std::size_t offset = 1; offset < members_.size(); ++offset) {
    Member& member = members_[after(offset)];
    if (member.granted == member.in.chunks()) continue;
    member.granted = member.in.chunks();
    out.push_back(
        {.to = after(offset), .kind = wire::Collective::GRANT, .number = member.granted, .payload = {}});
  }
}

// Sends chunk by chunk around the ranks, so that all receivers are served alike.
void Exchange::send_allowed(Outbox& out) {
  for (bool more = true; more;) {
    more = false;
    for (std::size_t offset = 1; offset < members_.size(); ++offset) {
      Member& member = members_[after(offset)];
      if (member.sent == member.allowed) continue;
      const std::uint64_t number = member.sent++;
      out.push_back({.to = after(offset),
                     .kind = wire::Collective::PART,
                     .number = number,
                     .payload = member.to_send.take(member.out.size_of(number))});
      --unsent_;
      more = true;
    }
  }
}

Result<void> Exchange::on(std::size_t from, const wire::Collective& body, Slices payload, Outbox& out) {
  CHECK(from < members_.size() && from != me_, from, me_);
  if (body.operation() != wire_name(kind_)) {
    return fault(fmt::format("a message of operation kind {}", static_cast<int>(body.operation())),
                 fmt::format("kind {}, which this node has begun under that number",
                             static_cast<int>(wire_name(kind_))));
  }
  switch (body.kind()) {
    case wire::Collective::PART: return on_part(from, body.number(), std::move(payload), out);
    case wire::Collective::SUM: return on_sum(from, body.number(), std::move(payload), out);
    case wire::Collective::GRANT:
      if (!payload.empty()) return fault("a GRANT with a payload", "none");
      return on_grant(from, body.number(), out);
    default: break;
  }
  return fault(fmt::format("a message of kind {}", static_cast<int>(body.kind())), "PART, SUM or GRANT");
}

Result<void> Exchange::on_part(std::size_t from, std::uint64_t number, Slices payload, Outbox& out) {
  Member& member = members_[from];
  if (auto good = check_chunk(member.in, member.received, member.granted, number, total_bytes(payload));
      !good.ok()) {
    return good;
  }
  ++member.received;
  --missing_;
  if (!sums(kind_)) {
    for (Slice& slice : payload) member.here.push_back(std::move(slice));
  } else {
    on_chunk(sum_->add(from, std::move(payload)), out);
  }
  return {};
}

// A chunk of our part is given by all. In two rounds everybody gets its sum, as it travels.
void Exchange::on_chunk(OrderedSum::Chunk chunk, Outbox& out) {
  if (!chunk.terms.empty()) {
    return want({.numbers = numbers_, .terms = std::move(chunk.terms), .goes_on = in_two_rounds_}, me_, out);
  }
  if (chunk.sum.empty()) return;
  SumWork done{.numbers = numbers_, .goes_on = in_two_rounds_, .sum = std::move(chunk.sum)};
  touched_ += members_.size() * total_bytes(done.sum) / number_bytes(numbers_);
  done.round();
  on_done(done, me_, out);
}

void Exchange::want(SumWork work, std::size_t rank, Outbox& out) {
  if (formed_ == SumsFormed::kAside) {
    works_.push_back({.work = std::make_shared<SumWork>(std::move(work)), .rank = rank});
    return;
  }
  touched_ += total_bytes(work.terms.front()) / travel_bytes(numbers_);
  work.run();
  on_done(work, rank, out);
}

void Exchange::worked(Outbox& out) {
  CHECK(!works_.empty());
  const Wanted done = works_.front();
  works_.pop_front();
  if (done.rank == me_) sum_->worked();
  on_done(*done.work, done.rank, out);
}

void Exchange::on_done(SumWork& work, std::size_t rank, Outbox& out) {
  members_[rank].here.push_back(std::move(work.sum.front()));
  if (rank != me_) return;
  if (in_two_rounds_) {
    for (std::size_t offset = 1; offset < members_.size(); ++offset) {
      out.push_back({.to = after(offset),
                     .kind = wire::Collective::SUM,
                     .number = sum_->finished() - 1,
                     .payload = work.sent});
    }
  }
  grant(std::min(sum_->finished() + window_, members_[me_].out.chunks()), out);
}

// Grants chunks up to `target`. All members send us equally many chunks, so all have the same grant.
void Exchange::grant(std::uint64_t target, Outbox& out) {
  const std::uint64_t granted = members_[after(1)].granted;
  const bool last = target == members_[me_].out.chunks();
  if (target == granted || (!last && target - granted < grant_step(window_))) return;
  for (std::size_t offset = 1; offset < members_.size(); ++offset) {
    members_[after(offset)].granted = target;
    out.push_back({.to = after(offset), .kind = wire::Collective::GRANT, .number = target, .payload = {}});
  }
}

Result<void> Exchange::on_sum(std::size_t from, std::uint64_t number, Slices payload, Outbox& out) {
  Member& member = members_[from];
  if (auto good = check_chunk(member.sums, member.summed, member.sums.chunks(), number, total_bytes(payload));
      !good.ok()) {
    return good;
  }
  ++member.summed;
  --missing_;
  if (is_rounded(numbers_)) {
    want({.numbers = numbers_, .terms = {std::move(payload)}}, from, out);
  } else {
    for (Slice& slice : payload) member.here.push_back(std::move(slice));
  }
  return {};
}

Result<void> Exchange::on_grant(std::size_t from, std::uint64_t number, Outbox& out) {
  Member& member = members_[from];
  if (number <= member.allowed || number > member.out.chunks()) {
    return fault(fmt::format("a GRANT of {} chunks", number),
                 fmt::format("more than {}, at most {}", member.allowed, member.out.chunks()));
  }
  member.allowed = number;
  send_allowed(out);
  return {};
}

std::vector<std::size_t> Exchange::awaited() const {
  const auto those = [&](auto&& owes) {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      if (rank != me_ && owes(members_[rank])) ranks.push_back(rank);
    }
    return ranks;
  };
  auto ranks = those([](const Member& one) { return one.received < one.granted; });
  if (!ranks.empty()) return ranks;
  return those([](const Member& one) { return one.summed < one.sums.chunks(); });
}

std::vector<Slices> Exchange::take_result() {
  CHECK(complete(), missing_);
  std::vector<Slices> result;
  if (!sums(kind_)) {
    for (Member& member : members_) result.push_back(std::move(member.here));
    return result;
  }
  Slices& whole = result.emplace_back();
  for (Member& member : members_) {
    for (Slice& slice : member.here) whole.push_back(std::move(slice));
  }
  return result;
}

}  // namespace gossamer::cluster
