// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <ranges>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/node_name.h"
#include "base/printable.h"
#include "cluster/control/control_message.h"
#include "cluster/control/run_placement.h"

namespace gossamer::cluster {
namespace {

constexpr std::string_view kExpelled = "it was expelled";
constexpr std::string_view kSaysTooMuch = "it says more than a member has to say";

using membership::ToCoordinator;
using membership::ToMember;

// The run without its members.
LedRun run_of(const Records& records, const AdmittedNodes& admitted) {
  std::map<NodeId, membership::MemberRecord> in_view = records.members;
  std::erase_if(in_view, [](const auto& one) { return one.second.state() == membership::JOINING; });
  return {.members = {},
          .expelled = admitted.expelled(),
          .fenced = records.fenced,
          .view = View(records.epoch, std::move(in_view), records.fenced_in_view, records.expelled_in_view),
          .installed = records.installed,
          .holdings = records.holdings};
}

}  // namespace

Coordinator::Coordinator(Options options, Records records, Workload& workload, net::Links& links, Instant now)
    : options_(std::move(options)),
      workload_(workload),
      links_(links),
      lead_(records.lead),
      tokens_(std::move(records.tokens)),
      admitted_(std::move(records.nodes)),
      run_(run_of(records, admitted_)),
      outbox_(options_, run_, links_, now),
      watch_(leadership(), links_, std::move(records.silent), now),
      books_(leadership(), records, now),
      changes_(leadership(), books_) {
  outbox_.set_serving(peers_of(run_.view));
  for (auto& [node, record] : records.members) {
    const Incarnation incarnation(record.incarnation());
    if (run_.fenced.contains(incarnation)) {  // its predecessor got only half-way
      outbox_.put(remove_member(incarnation));
      continue;
    }
    LedMember& member = run_.members[node];
    member.record = std::move(record);
    watch_.expect(member, now);
  }
  changes_.take_up(records.stopping, now);
  std::vector<NodeId> left;  // their predecessor got only half-way
  for (const NodeId node : run_.expelled) {
    if (run_.members.contains(node)) left.push_back(node);
    refuse_for_ever(node);
  }
  fence_all(left, kExpelled, now);
  tell_expelled(now);
}

void Coordinator::expel(const std::vector<NodeId>& nodes, Instant now, const std::function<void()>& done) {
  outbox_.set_now(now);
  std::vector<NodeId> members;
  for (const NodeId node : nodes) {
    const auto record = admitted_.expel(node);
    if (!record) continue;
    outbox_.put(put_node(*record));
    run_.expelled.insert(node);
    const auto member = run_.members.find(node);
    const bool is_member = member != run_.members.end();
    if (is_member) members.push_back(node);
    outbox_.note("expelled", is_member ? peer_of(member->second.record) : net::PeerId{node, {}},
                 "somebody ran 'gossamer node expel'");
  }
  fence_all(members, kExpelled, now);
  tell_expelled(now);
  for (const NodeId node : nodes) refuse_for_ever(node);
  outbox_.then(done);
}

// Without members nobody has to know before the next view.
void Coordinator::tell_expelled(Instant now) {
  if (run_.expelled != run_.view.expelled() && !run_.view.members().empty()) changes_.want_in_order(now);
}

// Its certificate may still hold for days, so each life that it claims is refused.
void Coordinator::refuse_for_ever(NodeId node) {
  outbox_.refuse({node, Incarnation(std::numeric_limits<std::uint64_t>::max())});
}

void Coordinator::keep_token(const std::string& id, const std::string& text) {
  const auto [kept, added] = tokens_.try_emplace(id, text);
  if (!added && kept->second == text) return;
  kept->second = text;
  outbox_.put(put_token(id, text));
}

void Coordinator::forget_token(const std::string& id) {
  if (tokens_.erase(id) != 0) outbox_.put(remove_token(id));
}

void Coordinator::stop(const std::string& reason, Instant now, std::function<void()> durable) {
  outbox_.set_now(now);
  if (all_heard(now)) {
    changes_.stop(reason, now);
  } else {
    changes_.stop_unheard(reason, now);
  }
  if (durable) outbox_.then(std::move(durable));
}

bool Coordinator::all_heard(Instant now) const {
  return std::ranges::all_of(run_.view.members(),
                             [&](const auto& one) { return run_.hears(one.first, now); });
}

bool Coordinator::awaits_rest(Instant now) const {
  const auto hears = [&](NodeId node) { return run_.hears(node, now); };
  return phase() == Phase::kFreezing && std::ranges::any_of(changes_.awaited(), hears);
}

std::string Coordinator::shortage(Instant now) const {
  if (!changes_.shortage().empty() && !changes_.ending()) return changes_.shortage();
  const bool ends = changes_.ending() && phase() != Phase::kStopping;
  std::string silent = watch_.waits_for(ends ? Watch::Wait::kForTheEnd : Watch::Wait::kForTheirReturn, now);
  if (ends && !silent.empty()) return silent;
  if (!changes_.shortage().empty()) return changes_.shortage();
  if (!silent.empty()) return silent;
  std::vector<std::uint64_t> restless;
  if (phase() != Phase::kFreezing || changes_.awaited().empty()) return departing(run_);
  for (const NodeId node : changes_.awaited()) restless.push_back(node.value);
  return fmt::format("node {} has not come to rest", fmt::join(restless, ", "));
}

bool Coordinator::stopped() const {
  return phase() == Phase::kStopping && run_.members.empty() && !outbox_.waiting() && !last_word_;
}

std::vector<MemberFacts> Coordinator::members() const {
  std::vector<MemberFacts> facts;
  auto relayed = links_.relayed();
  for (const auto& [node, member] : run_.members) {
    facts.push_back({.record = &member.record,
                     .pace = member.pace.pace().value_or(Pace{}),
                     .link = links_.statistics(node),
                     .steps = member.steps,
                     .relayed_to = std::move(relayed[node])});
  }
  return facts;
}

LedMember* Coordinator::find(net::PeerId peer) {
  const auto found = run_.members.find(peer.node);
  if (found == run_.members.end() || found->second.record.incarnation() != peer.incarnation.value)
    return nullptr;
  return &found->second;
}

void Coordinator::on(const net::LinkEvent& event, Instant now) {
  outbox_.set_now(now);
  if (const auto* const arrived = std::get_if<net::Arrived>(&event)) {
    if (arrived->message.channel == kControlChannel) on_message(arrived->from, arrived->message, now);
    return outbox_.consume(arrived->receipt);
  }
  if (const auto* const up = std::get_if<net::LinkUp>(&event)) {
    LedMember* const member = find(up->peer);
    if (member == nullptr) return outbox_.refuse(up->peer);
    if (member->detector) watch_.heard(*member, now);
    return watch_.schedule(*member);
  }
  if (const auto* const other = std::get_if<net::Incompatible>(&event)) {
    // The peer has heard the reason and will not come. It is fenced so that the others do not wait for it,
    // and people learn of it.
    if (find(other->peer) != nullptr) fence(other->peer.node, other->reason.message(), now);
    return;
  }
  if (const auto* const fault = std::get_if<net::PeerAtFault>(&event))
    return blame(fault->peer, fault->error, now);
  std::optional<net::PeerId> gone;
  if (const auto* const broken = std::get_if<net::LinkBroken>(&event)) gone = broken->peer;
  if (const auto* const ended = std::get_if<net::LinkEnded>(&event)) gone = ended->peer;
  LedMember* const member = gone ? find(*gone) : nullptr;
  if (member == nullptr || !member->detector) return;
  watch_.closed(*member, now);
  if (std::holds_alternative<net::LinkEnded>(event)) changes_.link_ended(*member);
  watch_.schedule(*member);
}

void Coordinator::blame(net::PeerId peer, const Error& error, Instant now) {
  outbox_.set_now(now);
  if (find(peer) == nullptr) return;
  reach(ControlProbe::kAtFault);
  fence(peer.node, printable(error.message()), now);
}

void Coordinator::on_message(net::PeerId from, const net::Message& message, Instant now) {
  LedMember* member = find(from);
  if (member == nullptr) return reach(ControlProbe::kFormerLife);  // or gone already
  if (!member->words.take(net::counted_bytes(message), now)) return fence(from.node, kSaysTooMuch, now);
  const auto said = unpack_to_coordinator(message);
  if (!said.ok()) {
    reach(ControlProbe::kMalformed);
    return fence(from.node, said.error().message(), now);
  }
  if (said->has_here() && !member->words.take_here(now)) return fence(from.node, kSaysTooMuch, now);
  if (options_.witness != nullptr) options_.witness->heard(from, *said);
  if (!member->here && !said->has_here())
    return reach(ControlProbe::kBeforeHere);  // sent before it knew of us
  watch_.heard(*member, now);
  dispatch(*member, *said, now);
  fence_reported(now);
  member = find(from);
  if (member != nullptr) watch_.schedule(*member);
}

void Coordinator::dispatch(LedMember& member, const ToCoordinator& said, Instant now) {
  const auto fence_if = [&](const Books::Objection& wrong) {
    if (wrong) fence(NodeId(member.record.node()), *wrong, now);
  };
  if (said.has_lease() || said.has_claim() || said.has_commit()) {
    if (const auto wrong = books_.asks(member, now)) return fence_if(wrong);
  }
  for (const auto* const marks : {&said.beat().progress(), &said.frozen().progress()}) {
    if (const auto wrong = books_.too_many(*marks)) return fence_if(wrong);
  }
  switch (said.kind_case()) {
    case ToCoordinator::kHere: return here(member, said.here(), now);
    case ToCoordinator::kBeat: return beat(member, said.beat(), now);
    case ToCoordinator::kReady: return ready(member, now);
    case ToCoordinator::kDrain: return changes_.drain(member, now);
    case ToCoordinator::kLeave: return leave(member, said.leave(), now);
    case ToCoordinator::kFrozen: return frozen(member, said.frozen(), now);
    case ToCoordinator::kLease: return fence_if(books_.lease(member, said.lease(), now));
    case ToCoordinator::kClaim: return fence_if(books_.claim(member, said.claim()));
    case ToCoordinator::kCommit: return books_.commit(member, said.commit());
    case ToCoordinator::KIND_NOT_SET: break;
  }
  CHECK(false, static_cast<int>(said.kind_case()));
}

void Coordinator::here(LedMember& member, const membership::Here& said, Instant now) {
  watch_.come(member, now);
  changes_.here(member, said, now);
  introduce(member);
  changes_.introduced(member, now);
}

void Coordinator::introduce(const LedMember& member) {
  for (const auto& [node, other] : run_.members) {
    outbox_.introduce(member, other);
    outbox_.introduce(other, member);
  }
}

void Coordinator::beat(LedMember& member, const membership::Beat& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  ToMember seen;
  seen.mutable_beat_seen()->set_sent_ns(said.sent_ns());
  outbox_.say(peer, std::move(seen));  // rests on no decision
  if (!options_.guarded(Defect::kChatter) && run_.installed.epoch() != 0) changes_.say_placement(member);
  changes_.beats(member, said, now);
  member.pace.add({.speed = said.speed(), .own_work = said.own_work(), .step_s = said.step_seconds()});
  member.steps = said.has_steps() ? std::optional(said.steps()) : std::nullopt;
  const auto names =
      static_cast<std::size_t>(said.unreachable_size()) + static_cast<std::size_t>(said.lost_size()) +
      static_cast<std::size_t>(said.hears_size()) + static_cast<std::size_t>(said.quiet_size());
  if (names > kMostNames) return fence(peer.node, "it names more nodes than there can be", now);
  const auto others = [&](const auto& named, const auto& known) {
    std::set<NodeId> nodes;
    for (const std::uint64_t node : named) {
      if (known.contains(NodeId(node)) && NodeId(node) != peer.node) nodes.insert(NodeId(node));
    }
    return nodes;
  };
  watch_.works({.installed = Epoch(run_.installed.epoch()),
                .committed = books_.marks() ? std::optional(books_.marks()->committed()) : std::nullopt},
               now);
  if (run_.view.members().contains(peer.node))
    watch_.beats(peer.node, {.work_ms = said.work_ms(), .bytes = said.moved_bytes()}, now);
  const std::set<NodeId> unreachable = others(said.unreachable(), run_.view.members());
  watch_.says(peer.node,
              {.unreachable = unreachable,
               .hears = others(said.hears(), run_.members),
               .quiet = others(said.quiet(), run_.members)},
              now);
  if (!unreachable.empty() && phase() != Phase::kStopping) {
    const std::vector<NodeId> missing = watch_.missing(now);
    if (!missing.empty() && changes_.can_lose({missing.begin(), missing.end()}, now))
      fence_all(missing, "it did not come, and nobody reaches it", now);
  }
  accuse(peer.node, said, now);
  if (changes_.steps_go_on() && (!unreachable.empty() || watch_.quarrel_is_ripe(now)))
    let_go(watch_.unreachable(now), now);
  LedMember* const still = find(peer);
  if (still == nullptr || !applied(*still, said.progress(), now)) return;
  changes_.lost_links(*still, said, now);
  if (phase() == Phase::kSettled && changes_.ending() && all_heard(now))
    changes_.stop(changes_.stop_asked().reason(), now);
}

void Coordinator::ready(const LedMember& member, Instant now) {
  if (member.record.state() != membership::JOINING) return;
  const auto began = member.began ? Arrivals::Began::kHere : Arrivals::Began::kBefore;
  arrivals_.ready(NodeId(member.record.node()), began, now);
  let_serve(now);
}

// Lets members serve that arrived, together. The others would rest for that, and those that are only missed
// here could not. One that has fallen silent since could not either: it serves once it is heard.
void Coordinator::let_serve(Instant now) {
  if (!arrivals_.next_wakeup()) return;
  arrivals_wait_ = watch_.misses_living(now);
  if (arrivals_wait_) return;
  std::set<NodeId> joining;
  for (const auto& [node, member] : run_.members) {
    if (member.record.state() == membership::JOINING && !member.wants_to_serve) joining.insert(node);
  }
  const auto hears = [&](NodeId node) { return run_.hears(node, now); };
  const std::vector<NodeId> nodes = arrivals_.take(joining, hears, now);
  if (nodes.empty()) return;
  if (nodes.size() > 1) reach(ControlProbe::kArrivedTogether);
  for (const NodeId node : nodes) run_.members.at(node).wants_to_serve = true;
  changes_.ready(run_.members.at(nodes.front()), now);
}

// Takes up what the member says about rules that others have broken.
void Coordinator::accuse(NodeId by, const membership::Beat& said, Instant now) {
  for (const membership::Broke& broke : said.broke()) {
    const net::PeerId peer{NodeId(broke.node()), Incarnation(broke.incarnation())};
    if (peer.node == by || find(peer) == nullptr) continue;
    const std::string rule = printable(broke.rule().substr(0, Accusations::kMostRuleBytes));
    const bool is_new = watch_.accuses(by, peer.node, rule);
    const bool lost = std::ranges::find(said.lost(), broke.node()) != said.lost().end();
    if (lost && Epoch(said.epoch()) == run_.view.epoch())
      watch_.loses(by, peer.node, broke.times(), run_.view.epoch(), now);
    if (is_new) outbox_.note("accused", peer, fmt::format("{} says: {}", certificate_name(by), rule));
  }
  if (said.broke().empty()) return;
  if (const auto verdict = watch_.guilty()) {
    reach(ControlProbe::kGuilty);
    fence(verdict->node, fmt::format("it broke a rule, as others say: {}", verdict->rule), now);
  }
}

void Coordinator::leave(LedMember& member, const membership::Leave& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  outbox_.note("leaving", peer, printable(said.reason()));
  member.leaves = true;
  fence(peer.node, "it left", now);  // the end of its link tells it that it may go
}

void Coordinator::frozen(LedMember& member, const membership::Frozen& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  if (!changes_.awaits(peer, said)) return;
  if (!can_be_said(said, run_, workload_))
    return fence(peer.node, "it says at rest what no member can say", now);
  if (!workload_.readable(said.report())) return fence(peer.node, "its report cannot be read", now);
  if (!applied(member, said.progress(), now)) return;
  books_.forget_others(peer.incarnation, said.progress());
  changes_.rests(member, said, now);
  watch_.look_again(now);
}

// Takes up marks. False: the member was fenced for them.
bool Coordinator::applied(const LedMember& member, const Books::Progress& progress, Instant now) {
  const auto wrong = books_.applied(member, progress, now);
  if (wrong) fence(peer_of(member.record).node, *wrong, now);
  return !wrong;
}

void Coordinator::fence_all(const std::vector<NodeId>& nodes, std::string_view why, Instant now) {
  if (nodes.empty()) return;
  const bool in_view = std::any_of(nodes.begin(), nodes.end(), [this](NodeId node) {
    return run_.members.at(node).record.state() != membership::JOINING;
  });
  const bool left = std::ranges::all_of(nodes, [this](NodeId node) { return run_.members.at(node).leaves; });
  const auto in_which = left ? Changes::Fenced::kLeft : Changes::Fenced::kInView;
  const auto where = in_view ? in_which : Changes::Fenced::kJoining;
  changes_.about_to_fence(where, now);
  for (const NodeId node : nodes) bury(node, why, now);
  changes_.fenced(where, now);
  watch_.look_again(now);
}

void Coordinator::fence_reported(Instant now) {
  Fencing due = changes_.take_fencing();
  std::erase_if(due.nodes, [this](NodeId node) { return !run_.members.contains(node); });
  fence_all(due.nodes, due.why, now);
}

// Lets members go that have lost a dispute. They stay until the others have all that they hold.
void Coordinator::let_go(const std::vector<NodeId>& losers, Instant now) {
  if (losers.empty()) return;
  for (const NodeId node : losers) {
    outbox_.note("disputed", peer_of(run_.members.at(node).record), std::string(kUnreachable));
  }
  if (!changes_.may_lose()) return fence_all(losers, kUnreachable, now);
  changes_.want_change(now);
}

// Looks again whether members that have to go are still needed.
void Coordinator::look_at_departures(Instant now) {
  if (phase() != Phase::kSettled || !run_.departures.is_due(now)) return;
  if (watch_.misses_living(now)) return run_.departures.put_off(now);  // it could not rest
  run_.departures.looks();
  changes_.want_change(now);
}

void Coordinator::bury(NodeId node, std::string_view why, Instant now) {
  const auto found = run_.members.find(node);
  CHECK(found != run_.members.end(), node.value);
  const net::PeerId peer = peer_of(found->second.record);
  outbox_.note("lost", peer, std::string(why));
  watch_.forget(found->second, now);
  if (changes_.ending() && !found->second.leaves) last_word_ = now + kLastWord;
  // While the store is away no node hears of the life that it asked for, and asks again. Such a life never
  // came.
  arrivals_.gone(node, found->second.here ? found->second.began : std::nullopt, now);
  // A life that began before this lead may have been introduced then.
  const bool introduced =
      (found->second.here || !found->second.began) && found->second.record.state() == membership::JOINING;
  run_.members.erase(found);
  changes_.gone(peer);
  if (introduced) outbox_.withdraw(peer);
  books_.free_everything_of(peer.incarnation);
  outbox_.refuse(peer);
}

void Coordinator::tick(Instant now) {
  outbox_.set_now(now);
  // A member that was told of the end has saved on its own disk by then, so fencing it loses nothing. One
  // that was not may have the only copy of the newest steps.
  const Duration told = phase() == Phase::kStopping ? kEndingPatience : kToldPatience;
  const Patience patience{.elsewhere = changes_.told() ? told : options_.patience,
                          .here = changes_.ending() ? kEndingPatience : options_.patience};
  const auto can_lose = [&](const std::set<NodeId>& silent) { return changes_.can_lose(silent, now); };
  for (const Fencing& one : watch_.due(patience, can_lose, now)) fence_all(one.nodes, one.why, now);
  books_.tick(now);
  let_serve(now);
  const bool works = changes_.steps_go_on() && !changes_.ending() && !run_.holdings.empty();
  if (watch_.stands_still(works, [&] { return all_heard(now); }, now)) changes_.want_change(now);
  look_at_departures(now);
  changes_.tick([&] { return all_heard(now); }, now);
  const RestClock::Hearing hearing{
      .hears = [&](NodeId node) { return run_.hears(node, now); },
      .missed_alone = [&](NodeId node) { return watch_.misses_alone(node, now); }};
  const std::set<NodeId> restless = changes_.take_restless(hearing, now);
  fence_all({restless.begin(), restless.end()}, kRestless, now);
  fence_reported(now);
  if (last_word_ && *last_word_ <= now) last_word_.reset();
  if (changes_.take_stop_end(now) || joining_ones_stay(now)) {
    const auto all = run_.members | std::views::keys;
    fence_all({all.begin(), all.end()}, "it did not leave in time", now);
  }
}

// Whether the run ends, and for too long nobody has been left but members that join. These have nothing to
// save.
bool Coordinator::joining_ones_stay(Instant now) {
  const bool others = any_is(run_, membership::SERVING) || any_is(run_, membership::DRAINING);
  if (phase() != Phase::kStopping || others || run_.members.empty()) {
    joining_leave_until_.reset();
  } else if (!joining_leave_until_) {
    joining_leave_until_ = now + kJoiningLeaveTime;
  }
  return joining_leave_until_ && *joining_leave_until_ <= now;
}

std::optional<Instant> Coordinator::next_wakeup() const {
  std::optional<Instant> wake = sooner(last_word_, joining_leave_until_);
  if (phase() == Phase::kSettled) wake = sooner(wake, run_.departures.next_look());
  if (!arrivals_wait_) wake = sooner(wake, arrivals_.next_wakeup());
  for (const auto& due : {watch_.next_wakeup(), books_.next_wakeup(), changes_.next_wakeup()}) {
    wake = sooner(wake, due);
  }
  return wake;
}

}  // namespace gossamer::cluster
