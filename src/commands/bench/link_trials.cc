// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/link_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"
#include "base/printable.h"

namespace gossamer::commands {
namespace {

using host::Lane;

constexpr NodeId kLeader{1};
constexpr NodeId kPartner{2};
constexpr std::array kNames = {"round-trip", "message", "messages", "exchange", "control-beside-bulk"};
constexpr Duration kLook{50'000'000};  // how often progress is looked at

// The pause before a ping. It varies, so that pings do not keep step with anything that repeats.
Duration pause(std::size_t ping) {
  return LinkTrials::kPingPause + from_milliseconds(static_cast<double>(ping * 7919 % 13));
}

}  // namespace

const char* name(LinkTrial trial) { return kNames.at(static_cast<std::size_t>(trial)); }

std::string to_string(const LinkTrialPlan& plan) {
  std::string text;
  for (const LinkTrial trial : plan.trials) text += fmt::format("{}{}", text.empty() ? "" : ",", name(trial));
  return fmt::format("measure={} bytes={} message_bytes={} exchange_bytes={} transfers={} rounds={} pings={}",
                     text, plan.bytes, plan.message_bytes, plan.exchange_bytes, plan.transfers, plan.rounds,
                     plan.pings);
}

LinkTrials::LinkTrials(net::Links& links, Options options, Instant now)
    : links_(links),
      options_(std::move(options)),
      zeros_(Slice::of(std::vector<std::byte>(
          std::max({options_.plan.bytes, options_.plan.message_bytes, options_.plan.exchange_bytes})))),
      progress_(now) {
  const std::vector<LinkTrial>& trials = options_.plan.trials;
  CHECK(options_.nodes >= 2 && !trials.empty() && trials.front() == LinkTrial::kRoundTrip, options_.nodes);
  for (NodeId node{1}; node.value <= options_.nodes; ++node) {
    if (node != options_.self) peers_[node] = {};
  }
}

bool LinkTrials::all(bool Peer::* member) const {
  return std::ranges::all_of(peers_, [member](const auto& peer) { return peer.second.*member; });
}

std::optional<net::Ticket> LinkTrials::send(NodeId to, Lane lane, Text text, Instant now) {
  net::Message message{.channel = text.channel, .body = std::move(text.body), .payload = {}};
  if (text.payload > 0) message.payload.push_back(zeros_.part(0, text.payload));
  return links_.send({to, {}}, lane, std::move(message), now);
}

void LinkTrials::tell_all(Channel channel, const std::string& body, Instant now) {
  for (const auto& [node, peer] : peers_) send(node, Lane::kControl, {channel, body}, now);
}

void LinkTrials::on(const net::LinkEvent& event, Instant now) {
  const NodeId node = std::visit(
      [](const auto& one) {
        if constexpr (requires { one.peer; })
          return one.peer.node;
        else if constexpr (requires { one.from; })
          return one.from.node;
        else
          return one.node;
      },
      event);
  if (failure_.has_value() || !peers_.contains(node)) return;
  if (std::holds_alternative<net::LinkUp>(event)) {
    peers_.at(node).up = true;
    check_ready(now);
  } else if (const auto* const failed = std::get_if<net::OpenFailed>(&event)) {
    peers_.at(node).unreached = failed->reason;
  } else if (const auto* const ended = std::get_if<net::LinkEnded>(&event)) {
    ended_link(*ended);
  } else if (const auto* const other = std::get_if<net::Incompatible>(&event)) {
    failure_ = other->reason;
  } else if (const auto* const arrived = std::get_if<net::Arrived>(&event)) {
    links_.consumed(arrived->receipt, now);
    progress_ = now;
    on_message(node, arrived->message, now);
  }
}

void LinkTrials::ended_link(const net::LinkEnded& event) {
  if (leaving_ || over_ || (leads() && peers_.at(event.peer.node).over)) return;
  failure_ = event.reason;
}

void LinkTrials::check_ready(Instant now) {
  if (!all(&Peer::up)) return;
  if (!leads()) {
    if (!std::exchange(told_ready_, true))
      send(kLeader, Lane::kControl, {kReady, to_string(options_.plan)}, now);
  } else if (begun_ == 0 && all(&Peer::ready)) {
    begin_trial(now);
  }
}

void LinkTrials::on_message(NodeId from, const net::Message& message, Instant now) {
  const auto channel = static_cast<Channel>(message.channel);
  switch (channel) {
    case kPing: send(from, Lane::kControl, {.channel = kPong, .payload = kPingBytes}, now); return;
    case kPong: return on_pong(now);
    case kBulk:
      // The last one of many messages is marked.
      if (!message.body.empty()) send(from, Lane::kControl, {kGot}, now);
      return;
    case kGot: return on_got(now);
    case kRound: ++peers_.at(from).rounds; return check_round(now);
    default: return on_leaders(channel, from, message.body, now);
  }
}

// Takes a message between node 1 and the others, which keep the nodes together.
void LinkTrials::on_leaders(Channel channel, NodeId from, const std::string& body, Instant now) {
  if (channel == kReady) {
    if (body != to_string(options_.plan)) {
      failure_ = Error{.kind = ErrorKind::kUsage,
                       .where = certificate_name(from),
                       .what = "measures something else than node 1",
                       .got = printable(body),
                       .expected = to_string(options_.plan),
                       .fix = "give all nodes the same keys"};
      return;
    }
    peers_.at(from).ready = true;
    check_ready(now);
  } else if (channel == kBegin) {
    begin_trial(now);
  } else if (channel == kEnded) {
    ++peers_.at(from).ended;
    check_ended(now);
  } else if (channel == kOver && leads()) {
    peers_.at(from).over = true;
    over_ = all(&Peer::over);
  } else if (channel == kOver) {
    send(kLeader, Lane::kControl, {kOver}, now);
    leaving_ = true;
  }
}

void LinkTrials::begin_trial(Instant now) {
  if (begun_ == options_.plan.trials.size()) return finish(now);
  ++begun_;
  in_trial_ = true;
  if (options_.begun) options_.begun(trial());
  if (leads()) tell_all(kBegin, {}, now);
  const bool exchange = trial() == LinkTrial::kExchange;
  if (!leads() && !exchange) return end_trial(now);  // this node only answers
  times_.push_back(
      {.trial = trial(), .bytes = exchange ? options_.plan.exchange_bytes : options_.plan.bytes});
  cpu_since_ = cpu();
  trial_since_ = now;
  switch (trial()) {
    case LinkTrial::kRoundTrip: times_.back().bytes = kPingBytes; return ping(now);
    case LinkTrial::kMessage:
    case LinkTrial::kMessages: return start_transfer(now);
    case LinkTrial::kExchange:
      round_ = 0;
      start_round(now);
      return check_round(now);
    case LinkTrial::kControlBesideBulk:
      times_.back().bytes = kPingBytes;
      for (std::uint64_t i = 0; i < kBulkUnderWay; ++i) start_transfer(now);
      next_ping_ = now + kBulkLead;
  }
}

void LinkTrials::end_trial(Instant now) {
  in_trial_ = false;
  if (leads() || trial() == LinkTrial::kExchange) times_.back().cpu_seconds = (cpu() - cpu_since_).seconds();
  if (leads()) return check_ended(now);
  send(kLeader, Lane::kControl, {kEnded}, now);
}

void LinkTrials::check_ended(Instant now) {
  if (in_trial_) return;
  for (const auto& [node, peer] : peers_) {
    if (peer.ended < begun_) return;
  }
  begin_trial(now);
}

void LinkTrials::finish(Instant now) { tell_all(kOver, {}, now); }

void LinkTrials::start_transfer(Instant now) {
  since_ = now;
  const LinkTrialPlan& plan = options_.plan;
  const std::uint64_t piece = trial() == LinkTrial::kMessages ? plan.message_bytes : plan.bytes;
  for (std::uint64_t sent = 0; sent < plan.bytes; sent += piece) {
    const bool last = sent + piece >= plan.bytes;
    const auto ticket = send(
        kPartner, Lane::kBulk,
        {.channel = kBulk, .body = last ? "last" : "", .payload = std::min(piece, plan.bytes - sent)}, now);
    if (last && ticket.has_value()) bulk_.push_back(*ticket);
  }
}

void LinkTrials::on_got(Instant now) {
  if (!in_trial_ || bulk_.empty()) return;
  bulk_.pop_front();
  if (trial() == LinkTrial::kControlBesideBulk) {
    if (!stopping_) return start_transfer(now);
    if (bulk_.empty()) end_trial(now);
    return;
  }
  LinkTrialTimes& times = times_.back();
  times.seconds.push_back((now - since_).seconds());
  if (times.seconds.size() == options_.plan.transfers) return end_trial(now);
  start_transfer(now);
}

void LinkTrials::ping(Instant now) {
  next_ping_.reset();
  ping_since_ = now;
  send(kPartner, Lane::kControl, {.channel = kPing, .payload = kPingBytes}, now);
}

void LinkTrials::on_pong(Instant now) {
  if (!in_trial_ || next_ping_.has_value()) return;
  LinkTrialTimes& times = times_.back();
  times.seconds.push_back((now - ping_since_).seconds());
  if (times.seconds.size() < options_.plan.pings) {
    next_ping_ = now + pause(times.seconds.size());
  } else if (trial() == LinkTrial::kRoundTrip) {
    end_trial(now);
  } else {
    stop_bulk(now);
  }
}

// Ends the bulk beside control. Messages that have not left are taken back. The answer to one more message
// says that nothing is under way.
void LinkTrials::stop_bulk(Instant now) {
  const std::uint64_t acknowledged = links_.statistics(kPartner).acknowledged_bytes - acknowledged_since_;
  times_.back().bulk_bytes_per_second = static_cast<double>(acknowledged) / (now - trial_since_).seconds();
  stopping_ = true;
  std::erase_if(bulk_, [this](const net::Ticket& ticket) { return links_.cancel(ticket); });
  if (!bulk_.empty()) return;
  const auto last = send(kPartner, Lane::kBulk, {kBulk, "last"}, now);
  if (last.has_value()) bulk_.push_back(*last);
}

void LinkTrials::start_round(Instant now) {
  ++round_;
  since_ = now;
  // Each node begins with the node after it, so that not all send to the same one at once.
  for (std::uint64_t i = 1; i < options_.nodes; ++i) {
    const NodeId to{(options_.self.value - 1 + i) % options_.nodes + 1};
    send(to, Lane::kControl, {.channel = kRound, .payload = options_.plan.exchange_bytes}, now);
  }
}

// Ends a round when all of its messages are here. A peer may be one round ahead, or in
// the first before Begin came here.
void LinkTrials::check_round(Instant now) {
  if (!in_trial_ || trial() != LinkTrial::kExchange) return;
  const auto whole = [this](const auto& peer) { return peer.second.rounds >= round_; };
  while (std::ranges::all_of(peers_, whole)) {
    if (round_ > kUncounted) times_.back().seconds.push_back((now - since_).seconds());
    if (round_ == kUncounted) cpu_since_ = cpu();
    if (round_ == kUncounted + options_.plan.rounds) return end_trial(now);
    start_round(now);
  }
}

std::uint64_t LinkTrials::moved() const {
  std::uint64_t sum = 0;
  for (const auto& [node, peer] : peers_) {
    const net::LinkStatistics statistics = links_.statistics(node);
    sum += statistics.acknowledged_bytes + statistics.received_bytes;
  }
  return sum;
}

void LinkTrials::tick(Instant now) {
  looked_ = now;
  if (failure_.has_value() || over_) return;
  if (next_ping_.has_value() && *next_ping_ <= now) {
    if (times_.back().seconds.empty() && trial() == LinkTrial::kControlBesideBulk) {
      trial_since_ = now;
      acknowledged_since_ = links_.statistics(kPartner).acknowledged_bytes;
    }
    ping(now);
  }
  if (const std::uint64_t sum = moved(); sum != std::exchange(moved_, sum)) progress_ = now;
  if (leaving_) {
    // The last word has arrived, or node 1 has all that it needs and has gone.
    const net::LinkStatistics leader = links_.statistics(kLeader);
    over_ = leader.queued_bytes == 0 || !leader.up;
  } else if (now - progress_ >= options_.patience) {
    fail_for_patience();
  }
}

Instant LinkTrials::next_wakeup() const {
  const Instant look = looked_ + kLook;
  return next_ping_.has_value() ? std::min(*next_ping_, look) : look;
}

void LinkTrials::fail_for_patience() {
  std::string missing;
  Error error{.what = fmt::format("nothing moved for {:.0f} s", options_.patience.seconds())};
  const auto add = [&](NodeId node) {
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", certificate_name(node));
  };
  for (const auto& [node, peer] : peers_) {
    if (links_.statistics(node).up) continue;
    add(node);
    if (peer.unreached.has_value()) error.got = peer.unreached->message();
  }
  if (missing.empty() && leads() && begun_ == 0) {
    error.got = "a link, and not the word that it has its other links";
    for (const auto& [node, peer] : peers_) {
      if (!peer.ready) add(node);
    }
  }
  if (missing.empty()) {
    missing = begun_ == 0 ? certificate_name(kLeader) : name(trial());
    error.got = "links of the control lane with all nodes, and no more messages";
  }
  error.where = missing;
  error.expected = "that all nodes reach each other on both ports of each";
  error.fix = "start all nodes within that time, and open the ports of `peers` and those one higher";
  failure_ = std::move(error);
}

}  // namespace gossamer::commands
