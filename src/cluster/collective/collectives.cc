// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace gossamer::cluster {

void Collectives::install(ExchangeView view, std::span<const net::PeerId> lost_members,
                          CollectiveEvents& out) {
  CHECK(!view_.has_value() || view_->epoch < view.epoch, view.epoch.value);
  CHECK(std::ranges::adjacent_find(view.members, [](const auto& a, const auto& b) {
          return a.node >= b.node;
        }) == view.members.end());
  const auto rank = rank_of(view, options_.self);
  CHECK(rank.has_value(), options_.self.node.value, options_.self.incarnation.value);
  fail_all(std::nullopt, out);
  me_ = *rank;
  view_ = std::move(view);
  lost_.reset();
  early_.forget_before(view_->epoch);
  for (const net::PeerId peer : lost_members) lost(peer, out);
}

void Collectives::begin(OperationId id, const Operation& operation, Slices input, CollectiveEvents& out) {
  CHECK(view_.has_value());
  CHECK(operation.parts.size() == view_->members.size(), operation.parts.size(), view_->members.size());
  CHECK(!exchanges_.contains(id), id.value);
  if (lost_.has_value()) {
    out.push_back(Failed{id, lost_});
    return;
  }
  const auto placed =
      exchanges_.try_emplace(id, Exchange(operation, me_, std::move(input), options_.limits, options_.formed))
          .first;
  Outbox outbox;
  placed->second.exchange.start(outbox);
  send(id, placed->second.exchange, std::move(outbox), out);
  settle(id, out);
  for (EarlyMessages::Message& one : early_.take(view_->epoch, id)) {
    feed(id, one.from, one.body, std::move(one.payload), out);
  }
}

void Collectives::on(net::PeerId from, net::Message message, CollectiveEvents& out) {
  wire::Collective body;
  if (!body.ParseFromString(message.body)) {
    return broke(from,
                 {.kind = ErrorKind::kBadData,
                  .what = "cannot read a message of a collective operation",
                  .got = fmt::format("{} bytes that are none", message.body.size()),
                  .expected = "a Collective",
                  .fix = "look whether all nodes run the same version"},
                 out);
  }
  const Epoch epoch(body.view());
  const OperationId id(body.id());
  if (!view_.has_value() || view_->epoch < epoch) return keep(from, std::move(body), std::move(message), out);
  if (epoch < view_->epoch || lost_.has_value()) return;
  if (exchanges_.contains(id)) return feed(id, from, body, std::move(message.payload), out);
  keep(from, std::move(body), std::move(message), out);
}

void Collectives::keep(net::PeerId from, wire::Collective body, net::Message message, CollectiveEvents& out) {
  const std::uint64_t bytes = net::counted_bytes(message);
  // Each life has room of its own for what comes early. Messages of dead lives would add up.
  if (options_.gone && early_.bytes_of(from) == 0) early_.forget_peers(options_.gone);
  const std::uint64_t of_it = early_.bytes_of(from) + bytes;
  if (of_it > options_.limits.early_bytes) {
    return broke(from,
                 {.kind = ErrorKind::kBadData,
                  .what = "the peer is too far ahead",
                  .got = fmt::format("{} bytes for operations that this node has not begun", of_it),
                  .expected = fmt::format("at most {}", options_.limits.early_bytes),
                  .fix = "look whether all nodes run the same configuration"},
                 out);
  }
  early_.keep({from, std::move(body), std::move(message.payload), bytes});
  while (early_.bytes() > options_.limits.all_early_bytes) {
    const net::PeerId most = early_.largest();
    out.push_back(TooMuchKept{most});
    lost(most, out);
  }
}

// Gives a message to its operation. The operation may be over by now, if an earlier one of several kept
// messages ended the view.
void Collectives::feed(OperationId id, net::PeerId from, const wire::Collective& body, Slices payload,
                       CollectiveEvents& out) {
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  const auto rank = rank_of(*view_, from);
  if (!rank.has_value() || *rank == me_) {
    return broke(from,
                 {.kind = ErrorKind::kBadData,
                  .what = "the peer takes part in an operation of others",
                  .got = fmt::format("a message of view {} from incarnation {}", view_->epoch.value,
                                     from.incarnation.value),
                  .expected = "one from a member of that view",
                  .fix = "look whether all nodes agree on who is a member"},
                 out);
  }
  if (goes_on_without(*rank, id)) {
    return broke(from,
                 {.kind = ErrorKind::kBadData,
                  .what = "the peer goes on without the result of an operation",
                  .got = fmt::format("a message of operation {} of view {}", id.value, view_->epoch.value),
                  .expected = "grants first, for what this node has to send of one before",
                  .fix = "look whether all nodes run the same version"},
                 out);
  }
  Exchange& exchange = found->second.exchange;
  Outbox outbox;
  if (auto good = exchange.on(*rank, body, std::move(payload), outbox); !good.ok()) {
    return broke(from, good.error(), out);
  }
  send(id, exchange, std::move(outbox), out);
  settle(id, out);
}

// Whether a message of the operation says that its sender has what we have not sent to it.
bool Collectives::goes_on_without(std::size_t rank, OperationId id) const {
  return options_.follows && std::ranges::any_of(exchanges_, [&](const auto& one) {
           return options_.follows(one.first, id) && !one.second.exchange.sent_all_to(rank);
         });
}

void Collectives::send(OperationId id, const Exchange& exchange, Outbox outbox, CollectiveEvents& out) const {
  for (Outgoing& one : outbox) {
    wire::Collective body;
    body.set_view(view_->epoch.value);
    body.set_id(id.value);
    body.set_operation(wire_name(exchange.kind()));
    body.set_kind(one.kind);
    body.set_number(one.number);
    out.push_back(Send{
        view_->members[one.to],
        {.channel = options_.channel, .body = body.SerializeAsString(), .payload = std::move(one.payload)}});
  }
}

void Collectives::settle(OperationId id, CollectiveEvents& out) {
  const auto found = exchanges_.find(id);
  Running& running = found->second;
  if (running.exchange.complete() && !running.told) {
    running.told = true;
    out.push_back(Completed{id, running.exchange.take_result()});
  }
  if (running.told && running.exchange.sent_all()) end(found);
}

void Collectives::lost(net::PeerId peer, CollectiveEvents& out) {
  early_.forget_peer(peer);
  if (!view_.has_value() || lost_.has_value() || !rank_of(*view_, peer).has_value()) return;
  lost_ = peer;
  fail_all(peer, out);
  early_.forget_view(view_->epoch);
}

void Collectives::fail_all(std::optional<net::PeerId> lost_member, CollectiveEvents& out) {
  for (const auto& [id, running] : exchanges_) {
    if (!running.told) out.push_back(Failed{id, lost_member});
  }
  while (!exchanges_.empty()) end(exchanges_.begin());
}

void Collectives::broke(net::PeerId peer, Error error, CollectiveEvents& out) {
  error.where = fmt::format("node-{}", peer.node.value);
  out.push_back(RuleBroken{peer, std::move(error)});
  lost(peer, out);
}

void Collectives::end(std::map<OperationId, Running>::iterator running) {
  touched_ += running->second.exchange.numbers_touched();
  exchanges_.erase(running);
}

std::function<void()> Collectives::take_work() {
  if (working_.has_value()) return {};
  for (const auto& [id, running] : exchanges_) {
    const std::shared_ptr<SumWork> work = running.exchange.work();
    if (work == nullptr) continue;
    working_ = {id, work};
    return [work] { work->run(); };
  }
  return {};
}

void Collectives::worked(CollectiveEvents& out) {
  CHECK(working_.has_value());
  const auto [id, work] = *std::exchange(working_, std::nullopt);
  const auto found = exchanges_.find(id);
  // Another operation may have the number in another view.
  if (found == exchanges_.end() || found->second.exchange.work() != work) return;
  Outbox outbox;
  found->second.exchange.worked(outbox);
  send(id, found->second.exchange, std::move(outbox), out);
  settle(id, out);
}

std::uint64_t Collectives::numbers_touched() const {
  std::uint64_t touched = touched_;
  for (const auto& [id, running] : exchanges_) touched += running.exchange.numbers_touched();
  return touched;
}

std::optional<Collectives::Missing> Collectives::missing() const {
  const auto first = std::ranges::find_if(exchanges_, [](const auto& one) { return !one.second.told; });
  if (first == exchanges_.end()) return std::nullopt;
  const Exchange& exchange = first->second.exchange;
  Missing missing{.id = first->first, .chunks = exchange.missing()};
  for (const std::size_t rank : exchange.awaited()) missing.members.push_back(view_->members[rank]);
  return missing;
}

std::uint64_t Collectives::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, running] : exchanges_) bytes += running.exchange.waiting_bytes();
  return bytes + early_.bytes();
}

}  // namespace gossamer::cluster
