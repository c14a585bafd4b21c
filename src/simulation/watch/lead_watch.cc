// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/lead_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/control/coordinator.h"
#include "cluster/control/coordinator_process.h"
#include "cluster/membership/doubts.h"

namespace gossamer::simulation {
namespace {

using cluster::Coordinator;
using cluster::CoordinatorProcess;
using cluster::Doubts;
using cluster::Watch;

// A member that is heard ten times a second is not suspected before.
constexpr Duration kHeardLately{250'000'000};
// A member whose connection is open does not seem dead before.
constexpr Duration kMaybeDead{1'500'000'000};
// A connection without a frame is closed after 10 s, and then the member is suspected at least.
constexpr Duration kSurelySilent{15'000'000'000};
// A word that was under way before the silence may come later, but not so often.
constexpr std::uint64_t kBeatsOfWord = 3;
constexpr Duration kComesWithin{10'000'000'000};        // after a takeover, anew with each that comes
constexpr Duration kPatienceOfAll = from_seconds(600);  // members wait so long for a coordinator
// The leader looks once its connections have closed, which may be later than the end of its patience.
constexpr Duration kLooksWithin{3'000'000'000};

}  // namespace

LeadWatch::LeadWatch(Options options, const Durable& durable)
    : options_(std::move(options)), durable_(durable), alone_for_(CoordinatorProcess::kAloneFor) {}

void LeadWatch::began(Instant now) {
  began_ = last_came_ = now;
  gone_.clear();
  decided_.clear();
  silent_before_ = durable_.silent();
  backs_.clear();
  ends_ = {};
  back_together_.reset();
  lives_.clear();
}

// A leader that gave way is more patient the next time. Other ends of a lead count likewise.
void LeadWatch::ended(Instant now) {
  if (began_ && !lack(now, kHeardLately).hears_all)
    alone_for_.ns = std::min(2 * alone_for_.ns, kPatienceOfAll.ns + CoordinatorProcess::kAloneFor.ns);
  began_.reset();
}

void LeadWatch::heard(net::PeerId from, const membership::ToCoordinator& said, Instant now) {
  if (durable_.machine_of(from.incarnation) == options_.machine) return;
  if (said.has_here() && lives_.try_emplace(from.incarnation, from.node).second) {
    backs_.insert(now);
    last_came_ = now;
  }
  const auto life = lives_.find(from.incarnation);
  if (life == lives_.end()) return;  // what is said before Here does not count
  hear(life->first, life->second, now);
  if (said.has_beat()) take_up(life->second, said.beat(), served(from.incarnation), now);
}

// A joining member is no witness: a node may begin lives to be one. What it says stands until its next beat,
// and counts if it serves by then.
void LeadWatch::take_up(Life& life, const membership::Beat& beat, bool serves, Instant now) const {
  std::map<NodeId, Word> hears;
  for (const std::uint64_t one : beat.hears()) {
    const auto before = life.hears.find(NodeId(one));
    Word& word = hears[NodeId(one)];
    word = before == life.hears.end() ? Word{.since = now} : before->second;
    if (serves) ++word.beats;
  }
  life.hears = std::move(hears);
  life.quiet.clear();
  for (const std::uint64_t one : beat.quiet()) life.quiet.emplace(one);
  // Work on which members rest counts only if the member knows that they are to rest.
  if (beat.work_ms() > life.work_ms && Epoch(beat.epoch()) >= durable_.begun()) life.worked = now;
  life.work_ms = beat.work_ms();
}

void LeadWatch::linked(net::PeerId peer, Instant now) {
  const auto life = lives_.find(peer.incarnation);
  if (life != lives_.end()) hear(life->first, life->second, now);
}

void LeadWatch::hear(Incarnation one, Life& life, Instant now) {
  silent_before_.erase(one);
  const bool was_away = life.down && now - life.heard >= kSurelySilent;
  if (life.down || now - life.heard >= kMaybeDead) backs_.insert(now);
  if (was_away && serving().many_silent()) back_together_ = now;
  life.heard = now;
  life.down = false;
}

void LeadWatch::broken(net::PeerId peer) {
  const auto life = lives_.find(peer.incarnation);
  if (life != lives_.end()) life->second.down = true;
}

std::optional<std::string> LeadWatch::fenced(net::PeerId peer, std::string_view why, Instant now) {
  const auto gone = lives_.extract(peer.incarnation);
  gone_.insert(peer.incarnation);
  const Incarnation one = peer.incarnation;
  if (!began_ || !durable_.served(one) || durable_.machine_of(one) == options_.machine) return std::nullopt;
  const auto worked = gone.empty() ? std::nullopt : gone.mapped().worked;
  if (why == Coordinator::kRestless && worked && now - *worked < options_.freeze_time) {
    return fmt::format("incarnation {} is fenced for coming to rest late, and worked {:.1f} s before",
                       one.value, (now - *worked).seconds());
  }
  const Instant last = gone.empty() ? *began_ : gone.mapped().heard;
  if (why == Coordinator::kRestless && now - last >= kSurelySilent) {
    const auto what = missed_with_others(now);
    if (what) {
      return fmt::format("incarnation {} is fenced for coming to rest late, after a silence of {:.1f} s, {}",
                         one.value, (now - last).seconds(), *what);
    }
  }
  if (why != Watch::kSilent && why != Watch::kNotInTime) return std::nullopt;
  const bool ends = durable_.stopping() || ends_ != Instant();
  if (now - last >= patience_of(one, ends ? Coordinator::kEndingPatience : kPatienceOfAll))
    return std::nullopt;
  if (!has_survivor(now)) {
    return fmt::format("incarnation {} is fenced for its silence of {:.1f} s, and no other is heard",
                       one.value, (now - last).seconds());
  }
  const auto what = contradicted(peer.node, last, now);
  if (!what) return std::nullopt;
  return fmt::format("incarnation {} is fenced for its silence, {}", one.value, *what);
}

// A silence goes on over leads. Each gives a minute at least.
Duration LeadWatch::patience_of(Incarnation one, Duration all) const {
  const auto before = silent_before_.find(one);
  if (before == silent_before_.end()) return all;
  return std::max(all - before->second, std::min(all, from_seconds(60)));
}

bool LeadWatch::has_survivor(Instant now) const {
  return std::ranges::any_of(
      lives_, [&](const auto& one) { return now - std::max(one.second.heard, resumed_) < kSurelySilent; });
}

bool LeadWatch::hears_holder(Instant now) const {
  return std::ranges::any_of(lives_, [&](const auto& one) {
    const Life& life = one.second;
    return !life.down && now - life.heard <= kHeardLately && durable_.served(one.first) &&
           durable_.holds(life.node);
  });
}

// Only lives that served are judged, so somebody serves, and lives that join do not count.
LeadWatch::Group LeadWatch::serving() const {
  Group group;
  for (const auto& [one, life] : lives_) {
    if (!durable_.served(one)) continue;
    ++group.all;
    if (life.down) ++group.silent;
  }
  return group;
}

// Whether others are silent, too, or have just come back. The member that is fenced is not among
// lives_ any more.
std::optional<std::string> LeadWatch::missed_with_others(Instant now) const {
  if (!has_survivor(now)) return "and no other is heard";
  const Group with_it = serving().with_silent();
  if (with_it.many_silent()) return fmt::format("with {} of {}", with_it.silent, with_it.all);
  if (back_together_ && now - *back_together_ < Doubts::kComeBack)
    return fmt::format("{:.1f} s after another that was silent with it came back",
                       (now - *back_together_).seconds());
  return std::nullopt;
}

std::optional<std::string> LeadWatch::contradicted(NodeId node, Instant last, Instant now) const {
  std::size_t hear = 0;
  std::size_t quiet = 0;
  for (const auto& [by, life] : lives_) {
    if (life.quiet.contains(node) && served(by)) ++quiet;
    const auto word = life.hears.find(node);
    if (word == life.hears.end() || life.down || now - life.heard > kHeardLately) continue;
    // Others are asked once the silence is so long.
    const bool asked = word->second.since > last + Watch::kAskAfter;
    if (asked && word->second.beats >= kBeatsOfWord) ++hear;
  }
  if (hear > quiet) return fmt::format("though {} others hear it, and it is quiet for {}", hear, quiet);
  const Group with_it = serving().with_silent();
  const bool others = std::ranges::any_of(lives_, [](const auto& one) { return !one.second.down; });
  const bool together = with_it.many_silent() && others;
  const auto back = backs_.upper_bound(last);
  const bool others_had_time = back != backs_.end() && now - *back >= Doubts::kComeBack;
  if (!together || quiet > hear || others_had_time) return std::nullopt;
  if (now - last >= Doubts::kAbandoned && !hears_holder(now)) return std::nullopt;
  return fmt::format("with {} of {}, and the others have not said that it is quiet", with_it.silent,
                     with_it.all);
}

// Lives that join do not count: they have nothing. Where one has come, the others have some time to come.
LeadWatch::Lack LeadWatch::lack(Instant now, Duration time) const {
  const Instant from = std::max({*began_, resumed_, ends_});
  const auto heard = [&](Incarnation one) {
    const auto life = lives_.find(one);
    return life != lives_.end() && now - std::max(from, life->second.heard) <= time;
  };
  const auto hears = [&](Incarnation one) {
    const auto life = lives_.find(one);
    return life != lives_.end() && now - life->second.heard <= time;
  };
  std::vector<Incarnation> serving = durable_.serving();
  std::erase_if(serving, [&](Incarnation one) {
    return gone_.contains(one) || durable_.machine_of(one) == options_.machine;
  });
  const bool time_to_come = !lives_.empty() && now - std::max(from, last_came_) <= kComesWithin + time;
  Lack lack{.missed = 0, .all = serving.size(), .hears_all = std::ranges::all_of(serving, hears)};
  if (now - from <= time) return lack;
  for (const Incarnation one : serving) {
    if (!heard(one) && (lives_.contains(one) || !time_to_come)) ++lack.missed;
  }
  return lack;
}

std::optional<std::string> LeadWatch::stays(Instant now, bool rests) {
  if (!began_) return std::nullopt;
  if (lack(now, kHeardLately).hears_all) alone_for_ = CoordinatorProcess::kAloneFor;
  Duration limit = alone_for_ + kLooksWithin;
  const Lack soon = lack(now, limit);
  if (rests && soon.missed < soon.all) limit = limit + options_.freeze_time;
  const Lack missed = lack(now, limit);
  if (2 * missed.missed <= missed.all) return std::nullopt;
  return fmt::format("a coordinator that has missed {} of {} for {:.1f} s leads on, though another stands by",
                     missed.missed, missed.all, limit.seconds());
}

}  // namespace gossamer::simulation
