// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_engine.h"

#include <fmt/format.h>
#include <gossamer/check.pb.h>

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/aligned_array.h"
#include "cluster/control/view.h"

namespace gossamer::check {
namespace {

Error failed_check(std::string where, std::string got, std::string expected) {
  return {.where = std::move(where),
          .what = "the fleet check has failed",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "if all members report it, one has sent what was wrong; if one does, look at its machine"};
}

}  // namespace

CheckEngine::Life::Life(const CheckConfig& its_config, net::PeerId self)
    : config(its_config), numbers(its_config), exchanges({.self = self, .channel = kCheckChannel}) {}

// A batch may end a life after other events. These are told when there is no member any more, and are
// dropped.
void CheckEngine::on(const cluster::ProcessEvent& event, Instant now) {
  const bool alive = process_.member() != nullptr && !failure_;
  if (alive || std::holds_alternative<cluster::LifeEnded>(event) ||
      std::holds_alternative<cluster::LifeBegun>(event))
    std::visit([&](const auto& one) { on_one(one, now); }, event);
}

void CheckEngine::on_one(const cluster::LifeBegun& event, Instant now) {
  life_.reset();
  if (process_.member() == nullptr) return;
  if (failure_) return process_.member()->leave(failure_->message(), now);
  if (leaving_) return process_.member()->leave(*leaving_, now);
  const auto config = read_check_config(event.configuration);
  if (!config.ok()) return fail(config.error(), now);
  life_.emplace(*config, event.self);
  process_.member()->ready(now);
}

void CheckEngine::on_one(const cluster::LifeEnded&, Instant) { life_.reset(); }

void CheckEngine::on_one(const cluster::MemberEvent& event, Instant now) {
  if (const auto* const stop = std::get_if<cluster::StopRequested>(&event))
    return process_.member()->leave(stop->reason, now);
  if (!life_) return;
  const auto* const view = std::get_if<cluster::ViewChanged>(&event);
  if (view != nullptr && view->freeze) return rest(now);
  if (std::holds_alternative<cluster::ViewInstalled>(event)) return go_on(now);
  const auto* const lost = std::get_if<cluster::PeerLost>(&event);
  if (lost == nullptr) return;
  cluster::CollectiveEvents events;
  life_->exchanges.lost(lost->peer, events);
  carry_out(std::move(events), now);
}

void CheckEngine::on_one(const net::Arrived& event, Instant now) {
  process_.links()->consumed(event.receipt, now);
  if (!life_ || event.message.channel != kCheckChannel) return;
  if (process_.member()->view().fenced().contains(event.from.incarnation)) return;
  cluster::CollectiveEvents events;
  life_->exchanges.on(event.from, event.message, events);
  carry_out(std::move(events), now);
}

void CheckEngine::tick(Instant now) {
  if (!life_ || process_.member() == nullptr || failure_) return;
  if (life_->next_step && *life_->next_step <= now) begin_step(now);
}

std::optional<Instant> CheckEngine::next_wakeup() const {
  if (!life_ || failure_) return std::nullopt;
  return life_->next_step;
}

void CheckEngine::drain(const std::string& reason, Instant now) {
  leaving_ = reason;
  if (process_.member() != nullptr) process_.member()->drain(reason, now);
}

void CheckEngine::rest(Instant now) {
  cluster::Member& member = *process_.member();
  life_->working = false;
  life_->next_step.reset();
  // Later messages of the old epoch are dropped, and those of the next epoch are kept.
  cluster::CollectiveEvents nobody_asks;
  life_->exchanges.lost(member.self(), nobody_asks);
  check::Report report;
  report.set_installed(life_->installed.value);
  report.set_step(life_->step.value);
  std::vector<std::uint64_t> copies;
  for (const auto& [thing, chain] : life_->chains) {
    check::Report::Held& held = *report.add_held();
    held.set_thing(thing);
    held.set_chain(chain);
    copies.push_back(thing);
  }
  member.frozen(report.SerializeAsString(), std::move(copies), now);
}

// The chains of the things that this member now holds, and in `resume` the step to go on at.
Result<std::map<std::uint64_t, std::uint64_t>> CheckEngine::installed_chains(
    const membership::Install& installed, StepNumber& resume) const {
  const std::string where = fmt::format("epoch {}", installed.epoch());
  check::Decision decision;
  if (!decision.ParseFromString(installed.decision()))
    return failed_check(where, "a decision that cannot be read", "one of a fleet check");
  if (!decision.fault().empty()) return failed_check(where, decision.fault(), "reports that agree");
  resume = StepNumber(decision.resume());
  if (resume < life_->step) {
    return failed_check(where, fmt::format("the order to go back to step {}", resume.value),
                        fmt::format("at least {}, up to which this member has come", life_->step.value));
  }
  std::map<std::uint64_t, std::uint64_t> chains;
  for (const membership::Holding& holding : installed.holdings()) {
    const std::uint64_t thing = holding.thing();
    if (thing >= life_->config.things || decision.chains_size() != static_cast<int>(life_->config.things))
      return failed_check(where, fmt::format("thing {}", thing),
                          fmt::format("{} things with chains", life_->config.things));
    if (NodeId(holding.node()) != process_.member()->self().node) continue;
    const std::uint64_t decided = decision.chains(static_cast<int>(thing));
    const std::uint64_t right = life_->numbers.chain(thing, resume);
    const auto own = life_->chains.find(thing);
    const bool ours = own != life_->chains.end() && life_->step == resume;
    for (const std::uint64_t chain : {decided, ours ? own->second : decided}) {
      if (chain == right) continue;
      return failed_check(where, fmt::format("chain {:016x} of thing {}", chain, thing),
                          fmt::format("{:016x} after {} steps", right, resume.value));
    }
    chains[thing] = decided;
  }
  return chains;
}

void CheckEngine::go_on(Instant now) {
  cluster::Member& member = *process_.member();
  if (Epoch(member.installed().epoch()) <= life_->installed) return;
  StepNumber resume;
  auto chains = installed_chains(member.installed(), resume);
  if (!chains.ok()) return fail(chains.error(), now);
  life_->installed = Epoch(member.installed().epoch());
  life_->step = resume;
  for (const auto& [thing, chain] : life_->chains) member.dropped(cluster::TrackId(thing));
  for (const auto& [thing, chain] : *chains) member.applied(cluster::TrackId(thing), resume);
  life_->chains = std::move(*chains);
  life_->working = false;
  life_->next_step.reset();
  if (leaving_ && life_->chains.empty()) return member.leave(*leaving_, now);
  // In another view than the installed one, the next freeze is under way.
  if (!life_->chains.empty() && member.view().epoch() == life_->installed) begin_exchanges(now);
}

void CheckEngine::begin_exchanges(Instant now) {
  cluster::Member& member = *process_.member();
  std::set<net::PeerId> holders;
  for (const membership::Holding& holding : member.installed().holdings()) {
    const auto record = member.view().members().find(NodeId(holding.node()));
    if (record != member.view().members().end()) holders.insert(cluster::peer_of(record->second));
  }
  life_->members = holders.size();
  cluster::CollectiveEvents events;
  life_->exchanges.install({.epoch = life_->installed, .members = {holders.begin(), holders.end()}}, {},
                           events);
  life_->working = true;
  const bool over = life_->config.steps != 0 && life_->step.value >= life_->config.steps;
  if (!over) life_->next_step = now;
  carry_out(std::move(events), now);
}

Slice CheckEngine::form_input(Instant now) {
  auto input = std::make_shared<AlignedArray<float>>(life_->config.elements);
  const host::Clock* const clock = options_.clock;
  const Instant before = clock == nullptr ? Instant{} : clock->now();
  for (const auto& [thing, chain] : life_->chains)
    life_->numbers.add_input(thing, life_->step, input->span());
  const Duration taken = clock == nullptr ? Duration{} : clock->now() - before;
  const auto work = static_cast<double>(life_->chains.size());
  if (taken.ns > 0)
    process_.member()->measured({.work = work, .took = taken, .cpu = {}, .process_cpu = {}, .all_cpu = {}},
                                now);
  if (options_.defect == CheckDefect::kWrongSum && options_.defect_step == life_->step)
    input->span().front() += 1;
  const auto bytes = std::as_bytes(std::as_const(*input).span());
  return {std::move(input), bytes};
}

void CheckEngine::begin_step(Instant now) {
  life_->next_step.reset();
  life_->step_begun = now;
  cluster::CollectiveEvents events;
  life_->exchanges.begin(cluster::OperationId(life_->step.value),
                         {.kind = cluster::OperationKind::kAllReduce,
                          .parts = cluster::equal_parts(life_->config.elements, life_->members)},
                         {form_input(now)}, events);
  carry_out(std::move(events), now);
}

void CheckEngine::carry_out(cluster::CollectiveEvents events, Instant now) {
  const bool large = life_->config.elements * sizeof(float) > host::kBulkBytes;
  const host::Lane lane = large ? host::Lane::kBulk : host::Lane::kControl;
  for (cluster::CollectiveEvent& event : events) {
    if (failure_) return;
    if (auto* const send = std::get_if<cluster::Send>(&event)) {
      counters_.sent_bytes += net::counted_bytes(send->message);
      // False for a peer that is no member any more: then the view is changing.
      (void)process_.member()->send(send->to, lane, std::move(send->message), now);
    } else if (const auto* const completed = std::get_if<cluster::Completed>(&event)) {
      if (life_->working) apply(completed->result.front(), now);
    } else if (auto* const broken = std::get_if<cluster::RuleBroken>(&event)) {
      fail(std::move(broken->error), now);
    } else {
      life_->working = false;  // until the view has changed
    }
  }
}

void CheckEngine::apply(const Slices& sum, Instant now) {
  std::vector<float> numbers(life_->config.elements);
  copy_front(sum, std::as_writable_bytes(std::span(numbers)));
  if (const auto wrong = life_->numbers.find_wrong(life_->step, numbers)) {
    return fail(failed_check(fmt::format("step {}", life_->step.value),
                             fmt::format("{} as element {} of the sum", wrong->got, wrong->element),
                             fmt::format("{}", wrong->expected)),
                now);
  }
  const std::uint64_t digest = check_digest(numbers);
  const bool twice = options_.defect == CheckDefect::kStepTwice && options_.defect_step == life_->step;
  ++life_->step;
  for (auto& [thing, chain] : life_->chains) {
    chain = next_chain(chain, digest);
    if (twice) chain = next_chain(chain, digest);
    process_.member()->applied(cluster::TrackId(thing), life_->step);
  }
  ++counters_.steps;
  counters_.step_ns += static_cast<std::uint64_t>((now - life_->step_begun).ns);
  if (life_->step.value == life_->config.steps) return finish(now);
  const Instant rested = now + from_milliseconds(static_cast<double>(life_->config.pause_ms));
  life_->next_step = std::max(rested, life_->step_begun + kStepTime);
}

// Checks the chains at the end, because nobody else will look at them again.
void CheckEngine::finish(Instant now) {
  for (const auto& [thing, chain] : life_->chains) {
    const std::uint64_t right = life_->numbers.chain(thing, life_->step);
    if (chain == right) continue;
    return fail(failed_check("the end", fmt::format("chain {:016x} of thing {}", chain, thing),
                             fmt::format("{:016x} after {} steps", right, life_->step.value)),
                now);
  }
}

std::optional<StepNumber> CheckEngine::step() const {
  if (!life_) return std::nullopt;
  return life_->step;
}

void CheckEngine::fail(Error error, Instant now) {
  failure_ = std::move(error);
  if (life_) {
    life_->working = false;
    life_->next_step.reset();
  }
  process_.member()->leave(failure_->message(), now);
}

}  // namespace gossamer::check
