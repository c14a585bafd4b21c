// SPDX-License-Identifier: Apache-2.0
#include "simulation/counting_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace gossamer::simulation {
namespace {

using cluster::LeaseOutcome;

constexpr Duration kLeaseTime{3'000'000'000};
constexpr std::string_view kWish = " rest";  // behind a part of a step

std::uint64_t number_in(const std::string& text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  CHECK(read.ec == std::errc(), text);
  return number;
}

}  // namespace

std::optional<StepNumber> resume_of(const std::string& decision) {
  return decision.empty() ? std::nullopt : std::optional(StepNumber(number_in(decision)));
}

std::vector<placement::Thing> CountingWorkload::things() const {
  std::vector<placement::Thing> things;
  for (std::size_t i = 0; i < things_; ++i)
    things.push_back({.id = placement::ThingId(i), .bytes = 1, .work = 1});
  return things;
}

std::vector<cluster::TrackId> CountingWorkload::tracks() const {
  std::vector<cluster::TrackId> tracks;
  for (std::size_t i = 0; i < things_; ++i) tracks.emplace_back(i);
  return tracks;
}

bool CountingWorkload::readable(const std::string& report) const {
  return !report.empty() && report.size() <= 19 &&
         report.find_first_not_of("0123456789") == std::string::npos;
}

namespace {

// Compares the steps of holders with the same placement: the fewest and the most may differ by one.
std::optional<Error> contradiction(const cluster::Rest& rest) {
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> steps;  // by epoch: least and most
  std::set<NodeId> holders;
  for (const auto& [thing, node] : rest.before) holders.insert(node);
  for (const NodeId node : holders) {
    const auto report = rest.reports.find(node);
    // A node that begins anew without things is no holder. Its former life was one.
    if (report == rest.reports.end() || report->second.copies().empty()) continue;
    const std::uint64_t taken = number_in(report->second.report());
    auto& [least, most] = steps.try_emplace(report->second.installed(), taken, taken).first->second;
    least = std::min(least, taken);
    most = std::max(most, taken);
    if (most - least <= 1) continue;
    return Error{.what = "members contradict each other",
                 .got = fmt::format("{} and {} steps", least, most),
                 .expected = "at most one more than others have taken with it",
                 .fix = "find out which of them lies"};
  }
  return std::nullopt;
}

}  // namespace

cluster::Decision CountingWorkload::decide(const cluster::Rest& rest) {
  if (auto failure = contradiction(rest)) return {.failure = std::move(failure)};
  StepNumber resume = rest.committed.value_or(StepNumber());
  for (const auto& [node, report] : rest.reports)
    resume = std::max(resume, StepNumber(number_in(report.report())));
  return {.bytes = std::to_string(resume.value), .committed = resume};
}

CountingEngine::CountingEngine(World world, cluster::MemberProcess& process, std::uint64_t seed,
                               double slowness)
    : world_(std::move(world)), process_(process), rng_(seed, Purpose::kFault, 7), slowness_(slowness) {}

void CountingEngine::later(Instant now, double least_ms, double most_ms, Action action) {
  const double wait = (least_ms + (most_ms - least_ms) * static_cast<double>(rng_.uniform())) * slowness_;
  timers_.emplace(now + from_milliseconds(wait), std::move(action));
}

void CountingEngine::tick(Instant now) {
  while (!timers_.empty() && timers_.begin()->first <= now && !process_.member()->ended())
    timers_.extract(timers_.begin()).mapped()(now);
}

std::optional<Instant> CountingEngine::next_wakeup() const {
  return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first);
}

// Events before the end of a life may be told when its member is gone. They are dropped.
void CountingEngine::on(const cluster::ProcessEvent& event, Instant now) {
  if (process_.member() == nullptr && !std::holds_alternative<cluster::LifeEnded>(event)) return;
  std::visit([&](const auto& one) { on_one(one, now); }, event);
}

void CountingEngine::on_one(const cluster::LifeBegun&, Instant now) {
  timers_.clear();
  running_ = false;
  installed_ = {};
  step_ = {};
  resumed_ = {};
  things_.clear();
  partners_.clear();
  parts_.clear();
  lease_request_ = 0;
  lease_ = {};
  claim_requests_.clear();
  if (leaving_) return process_.member()->leave(*leaving_, now);
  later(now, 20, 400, [this](Instant when) { process_.member()->ready(when); });
  work_on_leases(now);
  work_on_claims(now);
}

void CountingEngine::on_one(const cluster::LifeEnded&, Instant) {
  timers_.clear();
  running_ = false;
  lease_ = {};
}

void CountingEngine::on_one(const cluster::MemberEvent& event, Instant now) {
  if (const auto* const view = std::get_if<cluster::ViewChanged>(&event)) return on_view(*view, now);
  if (std::holds_alternative<cluster::ViewInstalled>(event)) return on_install(now);
  if (const auto* const lease = std::get_if<cluster::LeaseAnswered>(&event)) return on_lease(*lease, now);
  if (const auto* const claim = std::get_if<cluster::ClaimAnswered>(&event)) return on_claim(*claim, now);
  if (const auto* const stop = std::get_if<cluster::StopRequested>(&event))
    later(now, 0, 30,
          [this, reason = stop->reason](Instant when) { process_.member()->leave(reason, when); });
}

void CountingEngine::drain(const std::string& reason, Instant now) {
  leaving_ = reason;
  if (process_.member() != nullptr) process_.member()->drain(reason, now);
}

void CountingEngine::on_view(const cluster::ViewChanged& event, Instant now) {
  if (!event.freeze) return leave_if_empty(now);
  if (event.can_wait && takes_part_) {
    told_ = true;
    return;
  }
  if (takes_part_ && part_done_ && world_.cut_short) world_.cut_short(step_);
  rest_soon(now);
}

void CountingEngine::rest_soon(Instant now) {
  running_ = false;
  takes_part_ = false;
  told_ = false;
  later(now, 0, 30, [this, epoch = process_.member()->view().epoch()](Instant when) {
    if (process_.member()->view().epoch() == epoch && installed_ != epoch) rest(when);
  });
}

// All that have taken the step have seen the same wishes. One that was told of no change says so.
void CountingEngine::rest_after_step(Instant now) {
  if (told_) {
    process_.member()->ended_step();
    return rest_soon(now);
  }
  running_ = false;
  takes_part_ = false;
  process_.member()->rests_by_wish();
}

// If members need not rest, a placement follows only if one of the things must move. So it leaves by itself.
void CountingEngine::leave_if_empty(Instant now) {
  const cluster::Member& member = *process_.member();
  const auto self = member.view().members().find(member.self().node);
  const bool draining = self != member.view().members().end() && self->second.state() == membership::DRAINING;
  if (!lockstep() && leaving_ && draining && things_.empty()) process_.member()->leave(*leaving_, now);
}

void CountingEngine::rest(Instant now) {
  std::vector<std::uint64_t> copies;
  for (const auto& [thing, next] : things_) copies.push_back(thing);
  process_.member()->frozen(std::to_string(step_.value), copies, now);
}

void CountingEngine::on_install(Instant now) {
  cluster::Member& member = *process_.member();
  for (const auto& [thing, next] : things_) member.dropped(cluster::TrackId(thing));
  const membership::Install& installed = member.installed();
  const std::optional<StepNumber> goes_on = resume_of(installed.decision());
  if (!goes_on) return;  // it will be told to stop
  const StepNumber resume = *goes_on;
  if (resume < step_) world_.invariants.goes_back(member.self().incarnation, step_, resume);
  installed_ = Epoch(installed.epoch());
  resumed_ = resume;
  things_.clear();
  partners_.clear();
  std::vector<std::uint64_t> held;
  for (const membership::Holding& holding : installed.holdings()) {
    const NodeId node(holding.node());
    if (node == member.self().node && member.serving()) {  // not the holdings of a former life
      things_[holding.thing()] = resume;
      held.push_back(holding.thing());
      member.applied(cluster::TrackId(holding.thing()), resume);
    }
    const auto record = member.view().members().find(node);
    if (record != member.view().members().end()) partners_.insert(cluster::peer_of(record->second));
  }
  world_.invariants.took_up(member.self().incarnation, installed_, held, resume);
  step_ = resume;
  part_done_ = false;
  takes_part_ = false;
  told_ = false;
  std::erase_if(parts_, [&](const auto& one) { return one.first.first < installed_; });
  for (auto* const wishes : {&wished_, &own_wishes_})
    std::erase_if(*wishes, [&](const auto& one) { return one.first < installed_; });
  if (leaving_ && things_.empty()) return process_.member()->leave(*leaving_, now);
  if (!lockstep() || things_.empty() || member.view().epoch() != installed_) return;
  // Things that it did not hold before are restored first.
  takes_part_ = true;
  later(now, 10, 200, [this, epoch = installed_](Instant when) {
    // Told of a change that waits, it begins all the same: others wait for it in the step that they are in.
    if (epoch != installed_ || !takes_part_ || (process_.member()->view().epoch() != epoch && !told_)) return;
    running_ = true;
    begin_step(when);
  });
}

bool CountingEngine::has_witnesses(FunctionRef<bool(net::PeerId)> speaks) const {
  const cluster::Member& member = *process_.member();
  return step_ > resumed_ && std::any_of(partners_.begin(), partners_.end(), [&](const net::PeerId& partner) {
           return partner != member.self() && member.view().find(partner) != nullptr && speaks(partner);
         });
}

void CountingEngine::begin_step(Instant now) {
  later(now, 150, 350, [this, epoch = installed_, step = step_](Instant when) {
    if (running_ && epoch == installed_ && step == step_) send_parts(when);
  });
}

void CountingEngine::send_parts(Instant now) {
  cluster::Member& member = *process_.member();
  member.measured({.work = 1, .took = from_seconds(slowness_), .cpu = {}, .process_cpu = {}, .all_cpu = {}},
                  now);
  part_done_ = true;
  if (told_) own_wishes_.insert({installed_, step_});
  if (told_) wished_.insert({installed_, step_});
  for (const net::PeerId& partner : partners_) {
    if (partner != member.self() && partner != withheld_from_) send_part(partner, step_, now);
  }
  parts_[{installed_, step_}].insert(member.self());
  try_step(now);
}

// As an engine with large parts now and then, so that work waits for either lane.
void CountingEngine::send_part(const net::PeerId& partner, StepNumber step, Instant now) {
  const host::Lane lane = step.value % 4 == 3 ? host::Lane::kBulk : host::Lane::kControl;
  const std::string_view wish = own_wishes_.contains({installed_, step}) ? kWish : "";
  net::Message part{.channel = kPartChannel,
                    .body = fmt::format("{} {}{}", installed_.value, step.value, wish),
                    .payload = {}};
  (void)process_.member()->send(partner, lane, std::move(part), now);
}

void CountingEngine::withhold(std::optional<net::PeerId> from, Instant now) {
  const auto before = std::exchange(withheld_from_, from);
  if (!before || before == from || !running_ || !partners_.contains(*before)) return;
  // This member may have had all parts of the step before, and taken it.
  if (step_ > resumed_) send_part(*before, StepNumber(step_.value - 1), now);
  if (part_done_) send_part(*before, step_, now);
}

void CountingEngine::on_one(const net::Arrived& event, Instant now) {
  process_.links()->consumed(event.receipt, now);
  if (event.message.channel != kPartChannel) return;
  const std::size_t space = event.message.body.find(' ');
  const Epoch epoch(number_in(event.message.body.substr(0, space)));
  const bool wish = event.message.body.ends_with(kWish);
  const std::size_t end = event.message.body.size() - (wish ? kWish.size() : 0);
  const StepNumber step(number_in(event.message.body.substr(space + 1, end - space - 1)));
  if (epoch < installed_) return;
  if (wish) wished_.insert({epoch, step});
  parts_[{epoch, step}].insert(event.from);
  try_step(now);
}

void CountingEngine::try_step(Instant now) {
  if (!running_ || !part_done_) return;
  const auto heard = parts_.find({installed_, step_});
  if (heard == parts_.end() ||
      !std::includes(heard->second.begin(), heard->second.end(), partners_.begin(), partners_.end()))
    return;
  parts_.erase(heard);
  cluster::Member& member = *process_.member();
  const StepNumber next(step_.value + 1);
  for (auto& [thing, applied] : things_) {
    CHECK(applied == step_, applied.value, step_.value);
    world_.invariants.applied(thing, step_, member.self().incarnation);
    applied = next;
    member.applied(cluster::TrackId(thing), next);
  }
  const bool rests = wished_.contains({installed_, step_});
  step_ = next;
  part_done_ = false;
  if (rests) return rest_after_step(now);
  begin_step(now);
}

void CountingEngine::work_on_leases(Instant from) {
  later(from, 300, 1500, [this](Instant now) {
    cluster::Member& member = *process_.member();
    if (lease_request_ == 0) {
      using Ask = membership::LeaseAsk;
      const bool holds = lease_.valid(now);
      Ask::Wish wish = Ask::GRANT;
      if (holds) wish = rng_.below(4) == 0 ? Ask::RELEASE : Ask::RENEW;
      if (!holds) {
        const std::uint64_t key = rng_.below(kLeaseKeys - 1);
        lease_keys_ = {cluster::LeaseSpace(1), key, key + 1 + rng_.below(2)};
        lease_ = {};
      }
      if (wish == Ask::RELEASE) lease_.dropped(now);
      lease_request_ = member.lease(wish, lease_keys_, kLeaseTime, now);
      lease_asked_ = now;
    }
    work_on_leases(now);
  });
}

void CountingEngine::on_lease(const cluster::LeaseAnswered& event, Instant now) {
  if (event.number != lease_request_) return;
  lease_request_ = 0;
  const bool given =
      event.answer.outcome == LeaseOutcome::kGranted || event.answer.outcome == LeaseOutcome::kRenewed;
  if (!given) return;
  lease_.granted(event.sent, event.answer.duration);
  if (!lease_.valid(now)) return;
  const cluster::LeaseKeys keys = lease_keys_;
  world_.invariants.believes(keys, process_.member()->self().incarnation, world_.believes);
}

Duration CountingEngine::waits(Instant now) const {
  Instant oldest = lease_request_ != 0 ? lease_asked_ : now;
  for (const auto& [number, request] : claim_requests_) oldest = std::min(oldest, request.asked);
  return now - oldest;
}

bool CountingEngine::believes(const cluster::LeaseKeys& keys, Instant now) const {
  return lease_keys_ == keys && lease_.valid(now);
}

bool CountingEngine::claims_open_step(const Durable& durable) const {
  for (std::uint64_t track = 0; track < world_.things; ++track) {
    const auto own = claim_steps_.find(track);
    const StepNumber step = own == claim_steps_.end() ? StepNumber() : own->second;
    if (step >= durable.next_claimed_step(cluster::TrackId(track))) return true;
  }
  return false;
}

void CountingEngine::work_on_claims(Instant from) {
  later(from, 200, 900, [this](Instant now) {
    const std::uint64_t track = rng_.below(world_.things);
    const StepNumber step = claim_steps_[track];
    // Claims mostly a part of a step. Now and then it claims all samples that are left, so that steps become
    // whole.
    const bool all = rng_.below(4) == 0;
    const std::uint64_t first = all ? 0 : rng_.below(kBatch);
    const std::uint64_t count = all ? kBatch : std::min(kBatch - first, 1 + rng_.below(6));
    const SampleId begin(step.value * kBatch + first);
    cluster::Member& member = *process_.member();
    if (!lockstep())
      member.measured(
          {.work = 1, .took = from_seconds(slowness_), .cpu = {}, .process_cpu = {}, .all_cpu = {}}, now);
    const std::uint64_t number =
        member.claim(cluster::TrackId(track), step, {begin, SampleId(begin.value + count)}, now);
    claim_requests_[number] = {track, step, now};
    work_on_claims(now);
  });
}

void CountingEngine::on_claim(const cluster::ClaimAnswered& event, Instant now) {
  const auto asked = claim_requests_.find(event.number);
  if (asked == claim_requests_.end()) return;
  const auto [track, step, when] = asked->second;
  claim_requests_.erase(asked);
  cluster::Member& member = *process_.member();
  for (const cluster::Claim& one : event.answer.granted) world_.invariants.counted(one);
  for (const cluster::Claim& one : event.answer.taken) {
    if (one.by == member.self().incarnation) world_.invariants.counted(one);
  }
  if (event.answer.outcome == cluster::ClaimOutcome::kCommitted)
    claim_steps_[track] = std::max(claim_steps_[track], StepNumber(step.value + 1));
  if (event.answer.outcome == cluster::ClaimOutcome::kAnswered && rng_.below(3) == 0)
    (void)member.commit(cluster::TrackId(track), step, now);
}

}  // namespace gossamer::simulation
