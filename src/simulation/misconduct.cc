// SPDX-License-Identifier: Apache-2.0
#include "simulation/misconduct.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "cluster/control/control_message.h"
#include "net/link/channels.h"
#include "simulation/counting_engine.h"
#include "simulation/hostile.h"

namespace gossamer::simulation {
namespace {

constexpr Duration kSayEvery{200'000'000};
constexpr Duration kDeafTime{3'000'000'000};
constexpr Duration kFencedWithin{2'000'000'000};
constexpr Duration kSurelyHeard{300'000'000};
// More than anybody may hold because of one member (fleet.h).
constexpr std::uint64_t kMuch = std::uint64_t{256} << 20;

}  // namespace

void Misconduct::begin(SimMember& member, const Fault& fault) {
  if (fault.kind == FaultKind::kLie) {
    // Most liars accuse: accusations take time, and a contradiction ends the run.
    constexpr std::array kLies{Lies::kAccuses, Lies::kPretends, Lies::kWithholds, Lies::kContradicts,
                               Lies::kWithholds};
    return lie(member, kLies[fault.other % kLies.size()], fault.lasts);
  }
  if (member.paused() || member.member() == nullptr) return;
  const Incarnation life = member.member()->self().incarnation;
  fleet_.marked().is_hostile(life);
  // Where members need not rest, a link that ends keeps nobody from a step, and is no quarrel.
  const bool rests = fleet_.options().view_change == cluster::ViewChange::kFrozen;
  if (fault.other % 2 == 1 && rests) {
    // Nobody else sees what comes, so its victim may lose a life, and it may stay.
    fleet_.marked().lies(life);
    quarrelling_.insert(life);
    return quarrel(member, life, {});
  }
  hostile_.try_emplace(life);
  say_nonsense(member, life);
}

// Another victim is chosen once the one before is gone. The youngest would have to go without a reason.
void Misconduct::quarrel(SimMember& member, Incarnation life, net::PeerId victim) {
  if (member.member() == nullptr || member.member()->self().incarnation != life) return;
  const cluster::View& view = member.member()->view();
  if (view.find(victim) == nullptr) {
    victim = {};
    for (const auto& [node, record] : view.members()) {
      const net::PeerId peer = cluster::peer_of(record);
      if (peer.incarnation != life && victim.incarnation < peer.incarnation) victim = peer;
    }
  }
  if (victim.node.value != 0 && view.find(member.member()->self()) != nullptr)
    break_rule(member, victim.node);
  member.after(kSayEvery, [this, &member, life, victim] { quarrel(member, life, victim); });
}

void Misconduct::say_nonsense(SimMember& member, Incarnation life) {
  if (member.member() == nullptr || member.member()->self().incarnation != life) return;
  break_rules(member);
  const std::uint64_t what = rng_.below(7);
  if (what < 2) {
    break_rule(member, cluster::kCoordinatorNode);
  } else if (what == 2) {
    for (const net::Message& one : too_many()) member.say(one);
  } else if (what == 3) {
    member.deafen(kDeafTime);
    for (const net::Message& one : too_many_beats()) member.say(one);
  } else {
    for (const auto& make : {oddity, nonsense}) member.say(make(rng_));
  }
  member.after(kSayEvery, [this, &member, life] {
    judge_time(member, life);
    say_nonsense(member, life);
  });
}

void Misconduct::judge_time(SimMember& member, Incarnation life) {
  if (member.member() == nullptr || member.member()->self().incarnation != life) return;
  Duration& heard = hostile_.at(life);
  const SimCoordinator* const leads = fleet_.leading();
  bool hears = false;
  if (leads != nullptr && fleet_.timeline().now() - leads->led_since() > kFencedWithin) {
    for (const cluster::MemberFacts& facts : fleet_.leader()->members()) {
      if (Incarnation(facts.record->incarnation()) != life) continue;
      hears = facts.link.up && facts.link.last_heard && leads->now() - *facts.link.last_heard < kSurelyHeard;
    }
  }
  // On a slow line much of what it says waits behind the largest.
  heard = hears && !is_slow(member) ? heard + kSayEvery : Duration{};
  if (heard > kFencedWithin) {
    fleet_.invariants().broke(fmt::format(
        "incarnation {} is hostile, was heard for {:.1f} s, and is not fenced", life.value, heard.seconds()));
  }
}

// Before the coordinator fences it for its nonsense, others get bytes that are no message.
void Misconduct::break_rules(SimMember& member) {
  for (const auto& [machine, other] : fleet_.members()) {
    if (other.get() == &member || other->member() == nullptr) continue;
    break_rule(member, other->member()->self().node);
  }
}

// Bytes on whichever channel and lane, a few or very many. On the channel of counting engines they are an
// announcement of more than any channel carries.
void Misconduct::break_rule(SimMember& member, NodeId to) {
  const auto channel = static_cast<std::uint32_t>(1 + rng_.below(net::kChannelNames.size()));
  net::Message message{.channel = channel, .body = std::string(1 + rng_.below(64), '\xff'), .payload = {}};
  if (channel == kPartChannel) message.payload = much(std::uint64_t{2} << 20);
  if (channel != kPartChannel && rng_.below(4) == 0) message.payload = much(kMuch);
  const host::Lane lane = rng_.below(2) == 0 ? host::Lane::kControl : host::Lane::kBulk;
  if (total_bytes(message.payload) >= kMuch) fill_line(to);
  member.say_to(to, lane, std::move(message));
}

void Misconduct::fill_line(NodeId to) {
  for (const auto& [machine, other] : fleet_.members()) {
    if (other->member() == nullptr || other->member()->self().node != to) continue;
    if (is_slow(*other)) fleet_.note_struck(*other, Struck::kApart);
  }
}

bool Misconduct::is_slow(SimMember& member) {
  return fleet_.internet().rates(member.where()).up_bytes_per_second <
         host::MachineRates().up_bytes_per_second;
}

void Misconduct::lie(SimMember& member, Lies lies, Duration lasts) {
  contradicted_ = contradicted_ || lies == Lies::kContradicts;
  if (member.falsifies()) return;
  const auto liar = std::make_shared<Liar>(lies, rng_.next_u64(), things_);
  member.falsify([this, &member, lies, liar](membership::ToCoordinator& said) {
    const Incarnation life = member.member()->self().incarnation;
    fleet_.marked().lies(life);
    if (lies != Lies::kAccuses && lies != Lies::kWithholds) fleet_.invariants().discount(life);
    auto& engine = static_cast<CountingEngine&>(member.engine());
    // A member that hangs or is dead cannot contradict it, and may be fenced.
    const auto speaks = [this](net::PeerId one) {
      return std::ranges::any_of(fleet_.members(), [&](const auto& there) {
        SimMember& other = *there.second;
        return other.life() == one.incarnation && !other.paused() && !other.hangs();
      });
    };
    liar->falsify(said, *member.member(), engine.step(), engine.has_witnesses(speaks));
    engine.withhold(liar->withheld_from(), member.now());
  });
  member.after(lasts, [&member] {
    member.falsify({});
    static_cast<CountingEngine&>(member.engine()).withhold({}, member.now());
  });
  if (lies == Lies::kPretends) say_inventions(member, liar);
}

void Misconduct::say_inventions(SimMember& member, const std::weak_ptr<Liar>& liar) {
  const auto lies = liar.lock();
  if (!lies) return;  // it has stopped
  if (member.member() != nullptr) {
    const auto& engine = static_cast<const CountingEngine&>(member.engine());
    member.say(cluster::pack(lies->invent(*member.member(), engine.step())));
  }
  member.after(kSayEvery, [this, &member, liar] { say_inventions(member, liar); });
}

bool Misconduct::quarrels() const {
  return std::ranges::any_of(quarrelling_, [this](Incarnation one) { return !fleet_.durable().fenced(one); });
}

std::optional<std::string> Misconduct::harboured() const {
  for (const auto& [one, heard] : hostile_) {
    if (!fleet_.durable().fenced(one))
      return fmt::format("incarnation {}, which is hostile, is not fenced", one.value);
  }
  return std::nullopt;
}

}  // namespace gossamer::simulation
