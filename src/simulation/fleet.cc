// SPDX-License-Identifier: Apache-2.0
#include "simulation/fleet.h"

#include <fmt/format.h>
#include <gossamer/membership.pb.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"
#include "cluster/control/control_message.h"
#include "simulation/fault_injection.h"

namespace gossamer::simulation {
namespace {

constexpr Duration kLookEvery{20'000'000};
constexpr std::uint64_t kContactsEvery = 50;  // looks
constexpr std::uint64_t kMemoryEvery = 5;     // looks

membership::Listening coordinator_listening(const std::string& machine) {
  return cluster::listening_of(
      {.node = cluster::kCoordinatorNode, .control = {machine, 7000}, .bulk = {machine, 7001}});
}

host::SimStoreOptions store_options(StoreKind kind, cluster::Defect defect) {
  host::SimStoreOptions options;
  if (kind == StoreKind::kFile) options.lease.reset();
  if (defect == cluster::Defect::kNoGuard) options.guard = host::StoreGuard::kNone;
  return options;
}

// Tells of a member's link with its coordinator, for people.
void tell_link(const Trace& say, const std::string& machine, const net::LinkEvent& event) {
  const auto tell = [&](NodeId node, const std::string& what) {
    if (node == cluster::kCoordinatorNode) say(machine, "coordinator's link: " + what);
  };
  if (const auto* const up = std::get_if<net::LinkUp>(&event)) tell(up->peer.node, "up");
  if (const auto* const broken = std::get_if<net::LinkBroken>(&event))
    tell(broken->peer.node, "broken: " + broken->reason.message());
  if (const auto* const failed = std::get_if<net::OpenFailed>(&event))
    tell(failed->node, "cannot be opened: " + failed->reason.message());
  if (const auto* const ended = std::get_if<net::LinkEnded>(&event))
    tell(ended->peer.node, "ended: " + ended->reason.message());
}

}  // namespace

Fleet::Fleet(Options options)
    : options_(std::move(options)),
      timeline_(options_.seed),
      internet_(timeline_, options_.seed),
      lines_(internet_, {.seed = options_.seed, .longest = options_.scatter, .between = options_.path}),
      rng_(options_.seed, Purpose::kFault, 12),
      medium_(timeline_.clock(), store_options(options_.store, options_.defect)),
      claim_watch_(options_.batch, durable_),
      invariants_([this](Incarnation one) { return durable_.fenced(one); }) {
  medium_.watch([this](std::span<const host::Change> changes) { stored(changes); });
  for (const std::string& machine : coordinator_machines()) start_coordinator(machine);
  look();
}

Trace Fleet::trace() {
  if (!options_.trace) return {};
  return [this](const std::string& who, const std::string& what) {
    options_.trace((timeline_.now() - Instant{}).seconds(), who, what);
  };
}

// Takes up a commit. It is carried out as a whole, so a repeated one begins with changes that were there
// before.
void Fleet::stored(std::span<const host::Change> changes) {
  for (const host::Change& change : changes) {
    durable_.applied(change);
    if (auto wrong = claim_watch_.applied(change)) invariants_.broke(*std::move(wrong));
  }
  const auto written = [&](const char* key) {
    return std::ranges::find(changes, key, &host::Change::key) != changes.end();
  };
  if (written("epoch")) {
    membership::Epoch record;
    CHECK(record.ParseFromString(medium_.entries().at("epoch")));
    invariants_.stored(Epoch(record.number()));
  }
  // The members of a failed run leave one by one, and the last one may be a liar: its step counts no more.
  if (options_.resume_of && written("installed") && !durable_.failed()) {
    membership::Installed record;
    CHECK(record.ParseFromString(medium_.entries().at("installed")));
    if (const auto step = options_.resume_of(record.decision()))
      invariants_.resumes(Epoch(record.epoch()), *step);
  }
  if (written("installed") && !durable_.stopping()) marked_.others_went_on(durable_);
  if (written("committed")) invariants_.committed(durable_.committed(), durable_.installed());
}

std::vector<std::string> Fleet::coordinator_machines() const {
  if (options_.store == StoreKind::kFile) return {"c1"};
  return {"c1", "c2"};
}

ClockError Fleet::draw_clock() {
  if (!options_.clock_error) return {};
  return {.offset = from_seconds(1000 * static_cast<double>(rng_.uniform())),
          .rate = 1 + *options_.clock_error * (2 * static_cast<double>(rng_.uniform()) - 1)};
}

std::string Fleet::certificate(NodeId node) const {
  return options_.identity == Identity::kCertified ? certificate_name(node) : std::string();
}

cluster::CoordinatorProcess::Options Fleet::coordinator_options(const std::string& machine) {
  cluster::CoordinatorProcess::Options options;
  options.coordinator = {
      .run = "run",
      .configuration = options_.configuration,
      .listening = coordinator_listening(machine),
      .coordinators = {},
      .generation = {},
      .first_members = options_.first_members,
      .view_change = options_.view_change,
      .tracks = options_.tracks,
      .batch = options_.batch,
      .placement = options_.placement,
      .freeze_time = options_.freeze_time,
      .machine = machine,
      .defect = options_.defect,
      .probes = options_.probes,
  };
  for (const std::string& one : coordinator_machines())
    options.coordinator.coordinators.push_back(coordinator_listening(one).control());
  options.candidate = {.name = machine, .address = machine + ":7000"};
  options.program = "test";
  options.seed = options_.seed + ++coordinator_lives_;
  options.link_probes = options_.link_probes;
  if (options_.others) {
    // A coordinator that has not noticed yet that another one leads gets messages, too.
    options.others = [this, machine](const net::Arrived& arrived) {
      SimCoordinator* const its = coordinators_.at(machine).get();
      its->consumed(arrived.receipt);
      if (its == leading()) options_.others(arrived);
    };
  }
  return options;
}

void Fleet::start_coordinator(const std::string& machine) {
  const Trace note = [this](const std::string& who, const std::string& what) {
    log_ += fmt::format("{:8.3f} {} {}\n", (timeline_.now() - Instant{}).seconds(), who, what);
    if (const Trace out = trace()) out(who, what);
  };
  lines_.add(machine);
  coordinators_[machine] = std::make_unique<SimCoordinator>(
      timeline_, internet_,
      SimCoordinator::Options{.machine = machine,
                              .certificate = certificate(cluster::kCoordinatorNode),
                              .clock = draw_clock(),
                              .process = coordinator_options(machine)},
      SimCoordinator::Run{medium_, options_.workload, durable_, claim_watch_, invariants_, traffic_,
                          [this](Incarnation one) { return marked_.liar(one); },
                          [this](Incarnation one) { marked_.framed(one); }},
      note);
}

std::string Fleet::join(SimMember::Options options) {
  return start_member(std::move(options), NodeId(cluster::kCoordinatorNode.value + ++nodes_));
}

std::string Fleet::draw_machine() {
  ++machines_;
  if (!options_.machines_again || free_machines_.empty() || rng_.below(2) == 0)
    return fmt::format("m{}", machines_);
  std::string machine = std::move(free_machines_.back());
  free_machines_.pop_back();
  return machine;
}

std::string Fleet::start_member(SimMember::Options options, NodeId node) {
  std::string machine = draw_machine();
  lines_.add(machine);
  SimMember::Place place{.machine = machine,
                         .node = node,
                         .certificate = certificate(node),
                         .coordinators = coordinator_machines(),
                         .clock = draw_clock(),
                         .seed = options_.seed * 1000 + machines_,
                         .defect = options_.defect,
                         .probes = options_.probes,
                         .link_probes = options_.link_probes,
                         .watch_links = [this, machine](const net::LinkEvent& event) {
                           if (const auto* const arrived = std::get_if<net::Arrived>(&event))
                             heard(machine, *arrived);
                           if (const Trace say = trace()) tell_link(say, machine, event);
                         }};
  if (options_.trace)
    place.told = [this](SimMember& process, const cluster::ProcessEvent& event) { told(process, event); };
  options.watch = [this, watch_engine = std::move(options.watch)](SimMember& process) {
    watch(process);
    if (watch_engine) watch_engine(process);
  };
  members_[machine] = std::make_unique<SimMember>(timeline_, internet_, std::move(options), place);
  return machine;
}

// A message of an engine arrives at a member.
void Fleet::heard(const std::string& machine, const net::Arrived& arrived) {
  if (arrived.message.channel == cluster::kControlChannel) return;
  const cluster::Member& hears = *member(machine).member();
  if (!hears.view().fenced().contains(arrived.from.incarnation)) return;
  invariants_.broke(fmt::format("incarnation {} hears the fenced incarnation {}",
                                hears.self().incarnation.value, arrived.from.incarnation.value));
}

void Fleet::told(SimMember& process, const cluster::ProcessEvent& event) {
  const auto say = [&](const std::string& what) { trace()(process.machine(), what); };
  if (const auto* const begun = std::get_if<cluster::LifeBegun>(&event)) {
    say(fmt::format("begins as node {} incarnation {}", begun->self.node.value,
                    begun->self.incarnation.value));
  } else if (const auto* const ended = std::get_if<cluster::LifeEnded>(&event)) {
    say(fmt::format("ends{}: {}", ended->again ? ", will begin again" : "",
                    ended->error ? ended->error->message() : "it left"));
  }
  const auto* const one = std::get_if<cluster::MemberEvent>(&event);
  const cluster::Member* const member = process.member();
  if (one == nullptr || member == nullptr) return;
  if (const auto* const changed = std::get_if<cluster::ViewChanged>(one)) {
    say(fmt::format("has the view of epoch {}{}", member->view().epoch().value,
                    changed->freeze ? ", freezes" : ""));
  } else if (std::holds_alternative<cluster::ViewInstalled>(*one)) {
    const auto step = options_.resume_of ? options_.resume_of(member->installed().decision()) : std::nullopt;
    say(fmt::format("installs epoch {}{}", member->installed().epoch(),
                    step ? fmt::format(" at step {}", step->value) : ""));
  }
}

void Fleet::watch(SimMember& process) {
  const cluster::Member* const member = process.member();
  if (member == nullptr) return;
  Seen& seen = seen_[process.machine()];
  if (member->view().epoch() != std::exchange(seen.view, member->view().epoch()))
    invariants_.saw_view(member->view().epoch(), member->view().bytes());
  const Epoch installed(member->installed().epoch());
  if (installed != std::exchange(seen.installed, installed))
    invariants_.saw_install(installed, member->installed().SerializeAsString());
}

std::vector<std::string> Fleet::member_machines() const {
  std::vector<std::string> machines;
  for (const auto& [machine, member] : members_) machines.push_back(machine);
  return machines;
}

SimMember* Fleet::find(const std::string& machine) {
  const auto found = members_.find(machine);
  return found == members_.end() ? nullptr : found->second.get();
}

void Fleet::kill(std::string machine) {
  const auto found = members_.find(machine);
  if (found == members_.end()) return;
  note_failures();
  past_lives_ += found->second->lives();
  const bool comes_again = found->second->has_own_machine() && internet_.is_there(machine);
  members_.erase(found);
  if (comes_again) free_machines_.push_back(std::move(machine));
}

void Fleet::kill_for(const std::string& machine, Duration time) {
  const NodeId node = member(machine).node();
  kill(machine);
  timeline_.after(time, [this, node] { start_member(options_.new_member(), node); });
}

void Fleet::kill_coordinator_for(const std::string& machine, Duration time,
                                 std::function<void(SimCoordinator&)> back) {
  if (coordinators_.erase(machine) == 0) return;
  timeline_.after(time, [this, machine, back = std::move(back)] {
    start_coordinator(machine);
    back(*coordinators_.at(machine));
  });
}

void Fleet::lose_coordinator(const std::string& machine, Machine what) {
  coordinators_.erase(machine);
  const bool alone =
      std::ranges::none_of(members_, [&](const auto& one) { return one.second->where() == machine; });
  if (what == Machine::kSilent && alone) internet_.vanish(machine);
}

void Fleet::pause_for(const std::string& machine, Duration lasts) {
  SimMember& process = member(machine);
  if (process.paused()) return;
  process.pause();
  timeline_.after(lasts, [this, machine] {
    if (SimMember* const still = find(machine)) still->resume();
  });
}

std::string Fleet::where(const std::string& machine) {
  const SimMember* const process = find(machine);
  return process == nullptr ? machine : process->where();
}

void Fleet::cut_for(const std::string& one, const std::string& other, Duration lasts) {
  const std::string a = where(one);
  const std::string b = where(other);
  if (a == b) return;
  internet_.cut(a, b);
  internet_.cut(b, a);
  timeline_.after(lasts, [this, a, b] {
    internet_.heal(a, b);
    internet_.heal(b, a);
  });
}

void Fleet::cut_off_for(const std::string& machine, Duration lasts) {
  for (const std::string& other : coordinator_machines()) {
    if (other != machine) cut_for(machine, other, lasts);
  }
  for (const std::string& other : member_machines()) {
    if (other != machine) cut_for(machine, other, lasts);
  }
}

void Fleet::note_struck(SimMember& member, Struck how) {
  // An engine that hangs is told of a life later.
  const cluster::Member* const its = member.member();
  const auto life = its != nullptr ? std::optional(its->self().incarnation) : member.life();
  if (life) marked_.strike(*life, how);
}

void Fleet::inject(const Fault& fault) {
  ++injected_;
  carry_out(fault, *this);
}

void Fleet::replace_done() {
  for (const std::string& machine : member_machines()) {
    if (!member(machine).done()) continue;
    kill(machine);
    if (!durable_.stopping()) timeline_.after(from_seconds(1), [this] { start_new_member(); });
  }
}

std::uint64_t Fleet::lives() const {
  std::uint64_t lives = past_lives_;
  for (const auto& [machine, member] : members_) lives += member->lives();
  return lives;
}

void Fleet::run_for(double seconds) { timeline_.run_until(timeline_.now() + from_seconds(seconds)); }

void Fleet::stop(const std::string& reason) { leading()->stop(reason); }

SimCoordinator* Fleet::find_coordinator(const std::string& machine) {
  const auto found = coordinators_.find(machine);
  return found == coordinators_.end() ? nullptr : found->second.get();
}

SimCoordinator* Fleet::leading() {
  SimCoordinator* last = nullptr;  // one that was paused may not know yet that it leads no more
  for (const auto& [machine, coordinator] : coordinators_) {
    if (coordinator->leader() == nullptr || coordinator->paused()) continue;
    if (last == nullptr || coordinator->leader()->generation() > last->leader()->generation())
      last = coordinator.get();
  }
  return last;
}

cluster::Coordinator* Fleet::leader() {
  SimCoordinator* const led = leading();
  return led == nullptr ? nullptr : led->leader();
}

void Fleet::send(net::PeerId to, host::Lane lane, net::Message message) {
  if (SimCoordinator* const led = leading()) led->send(to, lane, std::move(message));
}

std::optional<std::string> Fleet::unsettled() {
  if (leader() == nullptr) return "nobody leads";
  const cluster::Coordinator& coordinator = *leader();
  const cluster::View& view = coordinator.view();
  // With announced views a placement lasts longer than a view.
  const bool older =
      options_.view_change == cluster::ViewChange::kFrozen && coordinator.installed() != view.epoch();
  if (coordinator.phase() != cluster::Coordinator::Phase::kSettled || older) {
    return fmt::format("epoch {} is not installed, but {}: {}", view.epoch().value,
                       coordinator.installed().value, coordinator.shortage(timeline_.now()));
  }
  for (const auto& [machine, member] : members_) {
    if (member->member() == nullptr || !member->member()->serving())
      return fmt::format("{} does not serve", machine);
    if (member->member()->view().epoch() != view.epoch() || member->member()->view().bytes() != view.bytes())
      return fmt::format("{} has another view than its coordinator", machine);
  }
  if (view.members().size() != members_.size())
    return fmt::format("{} members are alive, {} are in the view", members_.size(), view.members().size());
  return std::nullopt;
}

bool Fleet::somebody_comes() const {
  return std::ranges::any_of(members_, [](const auto& one) {
    return one.second->member() == nullptr || !one.second->member()->serving();
  });
}

Calm Fleet::calm() {
  const SimCoordinator* const leads = leading();
  // A change that was decided counts, though the store may not have it yet.
  const Epoch decided = leader() == nullptr ? Epoch() : leader()->view().epoch();
  const auto* const probes = options_.probes;
  return {.at = timeline_.now(),
          .generation = medium_.generation(),
          .led_since = leads == nullptr ? timeline_.now() : leads->led_since(),
          .epoch = std::max(decided, durable_.begun()),
          .fenced = durable_.lives_fenced(),
          .lives = lives(),
          .rebalanced = probes == nullptr ? 0 : probes->count(cluster::ControlProbe::kRebalanced),
          .members = members_.size(),
          .traffic = traffic_};
}

void Fleet::note_failure(const std::string& what) {
  if (!failure_) failure_ = what;
}

void Fleet::note_failures() {
  for (const auto& [machine, member] : members_) {
    if (const auto failed = member->engine().failure()) note_failure(machine + ": " + failed->message());
  }
  if (invariants_.violation()) note_failure(*invariants_.violation());
  if (leader() != nullptr && leader()->failure())
    note_failure("coordinator: " + leader()->failure()->message());
}

void Fleet::look_at_memory() {
  for (const auto& [machine, member] : members_) {
    const cluster::Member* const its = member->member();
    if (its != nullptr && !marked_.hostile(its->self().incarnation)) judge_memory(machine, *member->links());
  }
  for (const auto& [machine, coordinator] : coordinators_) {
    if (coordinator->links() != nullptr) judge_memory(machine, *coordinator->links());
  }
}

// What a coordinator has to say is not judged. It is believed.
void Fleet::judge_memory(const std::string& machine, const net::Links& links) {
  for (const auto& [where, member] : members_) {
    if (where == machine || member->member() == nullptr) continue;
    const NodeId node = member->member()->self().node;
    const std::uint64_t held = links.statistics(node).held_bytes;
    if (held <= kMostHeld) continue;
    invariants_.broke(
        fmt::format("{} holds {} bytes because of node {} on {}", machine, held, node.value, where));
  }
}

// Notes failures now and then, so that no member takes its failure with it.
void Fleet::look() {
  note_failures();
  if (++looks_ % kContactsEvery == 0) {
    if (const auto what = contact_watch_.look(*this)) invariants_.broke(*what);
  }
  if (looks_ % kMemoryEvery == 0) look_at_memory();
  timeline_.after(kLookEvery, [this] { look(); });
}

std::optional<std::string> Fleet::failure() {
  note_failures();
  return failure_;
}

}  // namespace gossamer::simulation
