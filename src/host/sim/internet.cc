// SPDX-License-Identifier: Apache-2.0
#include "host/sim/internet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "host/sim/network.h"

namespace gossamer::host {
namespace {

constexpr Duration kTick{1};
constexpr Duration kResend{200'000'000};  // TCP's least time-out
constexpr Duration kLate{1'000'000'000};  // of an event that waits for a slow downlink

SimSide& side_of(const SimEnd& end) { return end.connection->sides[static_cast<std::size_t>(end.side)]; }
SimEnd other(const SimEnd& end) { return {end.connection, 1 - end.side}; }

Duration time_of(std::uint64_t bytes, double bytes_per_second) {
  return from_seconds(static_cast<double>(bytes) / bytes_per_second);
}

}  // namespace

SimInternet::SimInternet(Timeline& timeline, std::uint64_t seed)
    : timeline_(timeline), rng_(seed, Purpose::kFault) {}

SimInternet::~SimInternet() = default;

std::unique_ptr<Network> SimInternet::attach(const std::string& machine, PeerName name, NetworkSink sink) {
  return std::make_unique<SimNetwork>(*this, machine_named(machine), std::move(name), std::move(sink));
}

SimMachine& SimInternet::machine_named(const std::string& name) {
  const auto [found, is_new] = machines_.try_emplace(name);
  if (is_new) found->second.name = name;
  return found->second;
}

void SimInternet::set_path(const std::string& from, const std::string& to, const PathQuality& quality) {
  machine_named(from).ways[&machine_named(to)].quality = quality;
}
void SimInternet::set_rates(const std::string& name, const MachineRates& rates) {
  SimMachine& machine = machine_named(name);
  const double slower = machine.rates.down_bytes_per_second / rates.down_bytes_per_second;
  machine.rates = rates;
  if (slower == 1) return;
  const Instant now = timeline_.now();
  const auto anew = [now, slower](Instant when) {
    return when <= now ? when : now + from_seconds((when - now).seconds() * slower);
  };
  machine.downlink_free = anew(machine.downlink_free);
  std::map<std::uint64_t, SimLateEvent> late = std::exchange(machine.late, {});
  for (const auto& [number, one] : late) side_of(one.to).last_event = side_of(one.to).last_soon;
  for (auto& [number, one] : late) emit(one.to, anew(one.when), std::move(one.event));
}

void SimInternet::set_cut(const std::string& from, const std::string& to, Lane lane, bool is_cut) {
  machine_named(from).ways[&machine_named(to)].cut[static_cast<std::size_t>(lane)] = is_cut;
}
void SimInternet::cut(const std::string& from, const std::string& to) {
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) cut(from, to, lane);
}
void SimInternet::heal(const std::string& from, const std::string& to) {
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) heal(from, to, lane);
}

void SimInternet::reset(const std::string& a, const std::string& b, std::optional<Lane> lane) {
  std::erase_if(connections_, [](const auto& connection) { return connection.expired(); });
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    const auto& [one, two] = connection->sides;
    const bool between = (one.machine->name == a && two.machine->name == b) ||
                         (one.machine->name == b && two.machine->name == a);
    if (!between || (!one.open && !two.open) || (lane && connection->lane != *lane)) continue;
    for (const int side : {0, 1}) {
      end_side({connection, side}, "connection reset by a machine in between", Tell::kProcess);
    }
  }
}

void SimInternet::pause(const std::string& name) { machine_named(name).paused = true; }

void SimInternet::resume(const std::string& name) {
  SimMachine& here = machine_named(name);
  here.paused = false;
  // New deliveries that these set off must not come between two that waited longer.
  const auto held = std::exchange(here.held, {});
  for (const auto& delivery : held) delivery();
  pump(here);
}

void SimInternet::vanish(const std::string& name) {
  SimMachine& here = machine_named(name);
  here.gone = true;
  here.held.clear();
}

bool SimInternet::is_cut(const SimMachine& from, const SimMachine& to, Lane lane) {
  if (from.gone || to.gone) return true;
  const auto way = from.ways.find(&to);
  return way != from.ways.end() && way->second.cut[static_cast<std::size_t>(lane)];
}

const PathQuality& SimInternet::path(const SimMachine& from, const SimMachine& to) const {
  const auto way = from.ways.find(&to);
  return way == from.ways.end() || !way->second.quality ? default_path_ : *way->second.quality;
}

// The time that one segment takes one way: the delay, jitter, and as many time-outs as it was lost times.
Duration SimInternet::delay(const SimMachine& from, const SimMachine& to) {
  if (&from == &to) return {20'000};
  const PathQuality& quality = path(from, to);
  Duration total = quality.delay;
  if (quality.jitter.ns > 0)
    total.ns += static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(quality.jitter.ns)));
  Duration again{std::max(kResend.ns, 2 * quality.delay.ns)};
  while (quality.loss > 0 && rng_.uniform() < static_cast<float>(quality.loss)) {
    total = total + again;
    again.ns *= 2;
  }
  return total;
}

void SimInternet::open(const std::shared_ptr<SimConnection>& connection, const Endpoint& to) {
  connection->sides[1].machine = &machine_named(to.host);
  connections_.push_back(connection);
  timeline_.after(kConnectTimeout, [this, connection, to] {
    if (connection->sides[0].open) return;
    end_side({connection, 0}, fmt::format("cannot connect to {}: timed out", to_string(to)), Tell::kProcess);
  });
  cross({connection, 0}, [this, connection, to] { answer(connection, to); });
}

// One way of an opening from one side to the other, begun again and again while the path is cut.
void SimInternet::cross(const SimEnd& from, std::function<void()> arrived) {
  const SimMachine& here = *side_of(from).machine;
  const SimMachine& there = *side_of(other(from)).machine;
  if (from.connection->sides[0].ended) return;
  const bool hidden = from.side == 0 && &here != &there && there.hidden;
  if (!hidden && !is_cut(here, there, from.connection->lane))
    return timeline_.after(delay(here, there), std::move(arrived));
  timeline_.after(kResend, [this, from, arrived = std::move(arrived)] { cross(from, arrived); });
}

void SimInternet::cross_again(const SimEnd& from, int times, std::function<void()> arrived) {
  if (times == 1) return cross(from, std::move(arrived));
  cross(from,
        [this, from, times, arrived = std::move(arrived)] { cross_again(other(from), times - 1, arrived); });
}

// The kernel there answers. TLS and HTTP/2 take two round trips more, and then the opener says its name. A
// question does not wait for a stream.
void SimInternet::answer(const std::shared_ptr<SimConnection>& connection, const Endpoint& to) {
  if (!listens(*connection, to)) {
    return cross({connection, 1}, [this, connection, to] {
      end_side({connection, 0}, fmt::format("cannot connect to {}: connection refused", to_string(to)),
               Tell::kProcess);
    });
  }
  const int times = connection->question.has_value() ? 4 : 6;
  cross_again({connection, 1}, times, [this, connection, to] { accept(connection, to); });
}

bool SimInternet::listens(const SimConnection& connection, const Endpoint& to) {
  const auto& listeners = connection.sides[1].machine->listeners;
  const auto listener = listeners.find(to.port);
  return listener != listeners.end() && listener->second.lane == connection.lane;
}

void SimInternet::accept(const std::shared_ptr<SimConnection>& connection, const Endpoint& to) {
  if (connection->sides[0].ended) return;
  // Kernels shake hands while a machine's processes stand still, but they do not speak TLS.
  const SimMachine& from = *connection->sides[0].machine;
  const SimMachine& here = *connection->sides[1].machine;
  if (here.paused || from.paused) {
    return timeline_.after(kResend, [this, connection, to] { accept(connection, to); });
  }
  if (!listens(*connection, to)) return answer(connection, to);
  SimNetwork* const network = here.listeners.at(to.port).network;
  const bool certified = network->name_ == PeerName{} || connection->opener != PeerName{};
  if (!certified && !connection->question.has_value())
    return cross({connection, 1}, [this, connection] { refuse_stranger(connection); });
  const ConnectionId id = network->take(connection, 1);
  connection->sides[1].open = true;
  emit({connection, 1}, timeline_.now(),
       Accepted{id, connection->lane, connection->opener, from.name, from.name});
  travel({connection, 1}, {.bytes = 0, .frame = {}, .welcome = network->name_});
}

// In a run with certificates an opener without one may only ask questions.
void SimInternet::refuse_stranger(const std::shared_ptr<SimConnection>& connection) {
  const SimEnd opener{connection, 0};
  if (side_of(opener).ended) return;
  end_side(opener, "", Tell::kNobody);
  emit(opener, timeline_.now(),
       Closed{side_of(opener).id,
              Error{.kind = ErrorKind::kRefused,
                    .where = side_of(other(opener)).machine->name,
                    .what = "a connection needs a certificate of the run: join with a token"}});
}

void SimInternet::emit(const SimEnd& end, Instant when, NetworkEvent event) {
  SimSide& side = side_of(end);
  const bool behind_late = side.last_event > side.last_soon && side.last_event >= timeline_.now();
  when = std::max({when, timeline_.now(), side.last_event + kTick});
  side.last_event = when;
  if (behind_late || when - timeline_.now() >= kLate) return emit_late(end, when, std::move(event));
  side.last_soon = when;
  timeline_.at(when, [sink = side.sink, machine = side.machine, event = std::move(event)]() mutable {
    hand_over(*machine, [sink, event = std::move(event)]() mutable {
      if (const auto alive = sink.lock()) (*alive)(std::move(event));
    });
  });
}

void SimInternet::emit_late(const SimEnd& end, Instant when, NetworkEvent event) {
  SimMachine& machine = *side_of(end).machine;
  const std::uint64_t number = ++machine.last_late;
  machine.late.emplace(number, SimLateEvent{.to = end, .when = when, .event = std::move(event)});
  timeline_.at(when, [&machine, number] {
    const auto late = machine.late.extract(number);
    if (late.empty()) return;  // the downlink has another rate since
    hand_over(machine, [one = std::move(late.mapped())]() mutable {
      if (const auto alive = side_of(one.to).sink.lock()) (*alive)(std::move(one.event));
    });
  });
}

void SimInternet::want_to_send(const SimEnd& end) {
  SimSide& side = side_of(end);
  if (!side.in_turn) {
    side.in_turn = true;
    side.machine->turns.push_back(end);
  }
  pump(*side.machine);
}

void SimInternet::pump(SimMachine& here) {
  while (!here.sending && !here.paused && !here.gone && !here.turns.empty()) {
    const SimEnd end = here.turns.front();
    here.turns.pop_front();
    SimSide& side = side_of(end);
    if (!side.open || side.queue.empty() || side.stalled || side.outstanding >= Network::kReadAhead) {
      side.in_turn = false;
      continue;
    }
    here.sending = true;
    const std::uint64_t bytes = std::min(kSegmentBytes, side.front_left);
    timeline_.after(time_of(bytes, here.rates.up_bytes_per_second),
                    [this, end, bytes] { segment_sent(end, bytes); });
  }
}

void SimInternet::segment_sent(const SimEnd& end, std::uint64_t bytes) {
  SimSide& side = side_of(end);
  SimMachine& here = *side.machine;
  here.sending = false;
  here.bytes_sent += bytes;
  if (side.open) {
    side.outstanding += bytes;
    side.front_left -= bytes;
    SimSegment segment{.bytes = bytes, .frame = {}};
    if (side.front_left == 0) {
      side.outstanding += Network::kFrameCost;
      segment.frame = std::move(side.queue.front());
      side.queue.pop_front();
      if (!side.queue.empty()) side.front_left = total_bytes(side.queue.front());
      const std::uint64_t written = total_bytes(*segment.frame);
      hand_over(here, [sink = side.sink, id = side.id, written, end] {
        const auto alive = sink.lock();
        if (alive != nullptr && side_of(end).open) (*alive)(Written{id, written});
      });
    }
    here.turns.push_back(end);
    travel(end, std::move(segment));
  } else {
    side.in_turn = false;
  }
  pump(*side.machine);
}

void SimInternet::travel(const SimEnd& end, SimSegment segment) {
  SimSide& side = side_of(end);
  const SimMachine& here = *side.machine;
  const SimMachine& far = *side_of(other(end)).machine;
  const Lane lane = end.connection->lane;
  const bool forward_cut = is_cut(here, far, lane);
  if (forward_cut || is_cut(far, here, lane)) {
    if (!side.watched) {
      side.watched = true;
      watch_stall(end, timeline_.now());
    }
  }
  if (forward_cut) {
    CHECK(!side.held.has_value());
    side.stalled = true;
    side.held = std::move(segment);
    return;
  }
  const Instant arrival = std::max(timeline_.now() + delay(here, far), side.last_arrival + kTick);
  side.last_arrival = arrival;
  timeline_.at(arrival,
               [this, end, segment = std::move(segment)]() mutable { arrived(end, std::move(segment)); });
}

// Looks again and again whether the path is whole; TCP gives up after a while.
void SimInternet::watch_stall(const SimEnd& end, Instant since) {
  timeline_.after(kResend, [this, end, since] {
    SimSide& side = side_of(end);
    if (!side.open) return;
    const SimMachine& here = *side.machine;
    const SimMachine& far = *side_of(other(end)).machine;
    const Lane lane = end.connection->lane;
    if (!is_cut(here, far, lane) && side.held.has_value()) {
      side.stalled = false;
      SimSegment segment = std::move(*side.held);
      side.held.reset();
      travel(end, std::move(segment));
      want_to_send(end);
    }
    if (!is_cut(here, far, lane) && !is_cut(far, here, lane)) {
      side.watched = false;
    } else if (timeline_.now() - since >= kGiveUp) {
      end_side(end, fmt::format("connection to {} timed out", far.name), Tell::kProcess);
    } else {
      watch_stall(end, since);
    }
  });
}

void SimInternet::arrived(const SimEnd& end, SimSegment segment) {
  const SimEnd to = other(end);
  SimSide& far = side_of(to);
  SimMachine& machine = *far.machine;
  if (machine.gone) return;
  if (segment.welcome.has_value() && !far.ended) {
    far.open = true;
    emit(to, timeline_.now(), Opened{far.id, *segment.welcome});
    if (!far.queue.empty()) want_to_send(to);
    return;
  }
  if (!far.open) {
    reset_other(to, "connection reset: the other side has closed it");
    return;
  }
  const Instant through = std::max(timeline_.now(), machine.downlink_free) +
                          time_of(segment.bytes, machine.rates.down_bytes_per_second);
  machine.downlink_free = through;
  if (segment.frame.has_value()) emit(to, through, Received{far.id, std::move(*segment.frame)});
}

void SimInternet::consumed(const SimEnd& receiver, std::uint64_t cost) {
  const SimEnd sender = other(receiver);
  const SimMachine& here = *side_of(receiver).machine;
  const SimMachine& far = *side_of(sender).machine;
  const bool blocked = is_cut(here, far, receiver.connection->lane);
  timeline_.after(blocked ? kResend : delay(here, far), [this, receiver, sender, cost, blocked] {
    SimSide& side = side_of(sender);
    if (!side.open) return;
    if (blocked) return consumed(receiver, cost);
    CHECK(cost <= side.outstanding, cost, side.outstanding);
    side.outstanding -= cost;
    if (!side.queue.empty()) want_to_send(sender);
  });
}

void SimInternet::end_side(const SimEnd& end, const std::string& what, Tell tell) {
  SimSide& side = side_of(end);
  if (side.ended) return;
  side.ended = true;
  side.open = false;
  side.queue.clear();
  side.held.reset();
  if (const auto sink = side.sink.lock(); sink != nullptr && tell == Tell::kProcess) {
    emit(end, timeline_.now(),
         Closed{side.id, Error{.where = side_of(other(end)).machine->name, .what = what}});
  }
  reset_other(end, tell == Tell::kProcess ? "connection reset" : what);
}

void SimInternet::reset_other(const SimEnd& end, const std::string& what) {
  const SimEnd to = other(end);
  SimSide& side = side_of(end);
  SimSide& far = side_of(to);
  const bool accepted = far.id.value != 0;  // always so for the opener
  if (!accepted || far.ended || is_cut(*side.machine, *far.machine, end.connection->lane)) return;
  const Instant arrival =
      std::max(timeline_.now() + delay(*side.machine, *far.machine), side.last_arrival + kTick);
  side.last_arrival = arrival;
  timeline_.at(arrival, [this, to, what] { end_side(to, what, Tell::kProcess); });
}

}  // namespace gossamer::host
