// SPDX-License-Identifier: Apache-2.0
#include "plain_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"

namespace gossamer::costs {
namespace {

// Machines have been up for ten days and have addresses of the usual length, as both go into messages.
constexpr simulation::ClockError kClock{.offset = {864'000'000'000'000}, .rate = 1};
constexpr std::uint64_t kMemory = 16'000'000'000;
constexpr std::uint16_t kPort = 7070;
constexpr Duration kPatience{60'000'000'000};

std::string machine_of(NodeId node) { return fmt::format("10.0.1.{}", 100 + node.value); }

membership::Listening listening(NodeId node) {
  const auto port = [&](int next) {
    return host::Endpoint{.host = machine_of(node), .port = static_cast<std::uint16_t>(kPort + next)};
  };
  return cluster::listening_of({.node = node, .control = port(0), .bulk = port(1)});
}

void count_frame(const host::NetworkEvent& event, Book& book) {
  if (const auto* const received = std::get_if<host::Received>(&event))
    book.frames.add(total_bytes(received->frame));
}

void listen(host::Network& network, const membership::Listening& at) {
  const net::PeerAddress address = cluster::address_of({}, at);
  const bool both = network.listen(address.control, host::Lane::kControl).ok() &&
                    network.listen(address.bulk, host::Lane::kBulk).ok();
  CHECK(both);
}

}  // namespace

PlainMember::PlainMember(host::Timeline& timeline, host::SimInternet& internet, NodeId node,
                         cluster::MemberProcess::Options options, Book& book)
    : SimProcess(timeline, internet, machine_of(node), machine_of(node), certificate_name(node), kClock),
      book_(book) {
  options.listening = listening(node);
  listen(network(), options.listening);
  process_ = std::make_unique<cluster::MemberProcess>(std::move(options), network(), now());
  go_on();
}

PlainMember::~PlainMember() {
  process_.reset();
  silence();
}

bool PlainMember::linked_with(NodeId node) const { return process_->links()->statistics(node).up; }

bool PlainMember::linked_with_all() const {
  const cluster::Member& self = *process_->member();
  return std::all_of(self.view().members().begin(), self.view().members().end(), [&](const auto& one) {
    return one.first == self.self().node || linked_with(one.first);
  });
}

bool PlainMember::installed() const {
  const cluster::Member* const self = process_->member();
  return self != nullptr && self->serving() && self->installed().epoch() == self->view().epoch().value;
}

void PlainMember::work() {
  ++step_.value;
  for (const membership::Holding& held : member()->installed().holdings()) {
    if (NodeId(held.node()) == member()->self().node)
      member()->applied(cluster::TrackId(held.thing()), step_);
  }
  after(from_milliseconds(100), [this] { work(); });
}

void PlainMember::lease() {
  const cluster::LeaseKeys keys{cluster::LeaseSpace(1), 1000, 1001};
  (void)member()->lease(membership::LeaseAsk::GRANT, keys, from_seconds(10), now());
}

void PlainMember::claim() {
  (void)member()->claim(cluster::TrackId(0), StepNumber(0), {SampleId(0), SampleId(1)}, now());
}

void PlainMember::on_event(const cluster::ProcessEvent& event) {
  if (std::holds_alternative<cluster::LifeBegun>(event)) return member()->ready(now());
  const auto* const one = std::get_if<cluster::MemberEvent>(&event);
  if (one == nullptr) return;
  if (const auto* const view = std::get_if<cluster::ViewChanged>(one); view != nullptr && view->freeze) {
    std::vector<std::uint64_t> copies;
    for (const membership::Holding& held : member()->installed().holdings()) {
      if (NodeId(held.node()) == member()->self().node) copies.push_back(held.thing());
    }
    return member()->frozen(std::to_string(step_.value), copies, now());
  }
  if (!std::holds_alternative<cluster::ViewInstalled>(*one)) return;
  step_ = std::max(step_, simulation::resume_of(member()->installed().decision()).value_or(step_));
}

void PlainMember::on_network(host::NetworkEvent event) {
  if (process_ == nullptr) return;
  count_frame(event, book_);
  if (const auto* const answered = std::get_if<host::Answered>(&event);
      answered != nullptr && answered->answer.ok())
    book_.answers[member() == nullptr ? "Begin" : "Lead"].add(answered->answer->size());
  process_->on(std::move(event), now());
  go_on();
}

void PlainMember::on_timer() {
  process_->tick(now());
  go_on();
}

void PlainMember::go_on() {
  for (auto events = process_->take_events(); !events.empty(); events = process_->take_events()) {
    for (const cluster::ProcessEvent& event : events) on_event(event);
  }
  arm(process_->next_wakeup());
}

PlainCoordinator::PlainCoordinator(host::Timeline& timeline, host::SimInternet& internet,
                                   cluster::CoordinatorProcess::Options options, host::SimStoreMedium& medium,
                                   cluster::Workload& workload, Book& book)
    : SimProcess(timeline, internet, machine_of(cluster::kCoordinatorNode),
                 machine_of(cluster::kCoordinatorNode), certificate_name(cluster::kCoordinatorNode), kClock),
      book_(book),
      store_(medium.open()) {
  options.coordinator.listening = listening(cluster::kCoordinatorNode);
  listen(network(), options.coordinator.listening);
  options.coordinator.coordinators = {options.coordinator.listening.control()};
  options.coordinator.witness = this;
  options.keep_every = store_->keep_every();
  options.lead_time = store_->lead_time();
  process_ = std::make_unique<cluster::CoordinatorProcess>(std::move(options), network(), workload, now());
  go_on();
}

PlainCoordinator::~PlainCoordinator() {
  process_.reset();
  silence();
}

void PlainCoordinator::on_network(host::NetworkEvent event) {
  if (process_ == nullptr) return;
  count_frame(event, book_);
  if (const auto* const asked = std::get_if<host::Asked>(&event))
    book_.questions[asked->method].add(asked->body.size());
  process_->on(std::move(event), now());
  go_on();
}

void PlainCoordinator::on_timer() {
  process_->tick(now());
  go_on();
}

void PlainCoordinator::go_on() {
  while (auto call = process_->next_call(now()))
    process_->answered(cluster::carry_out(*store_, *call), now());
  arm(process_->next_wakeup());
}

void PlainCoordinator::heard(net::PeerId, const membership::ToCoordinator& said) {
  book_.to_coordinator[said.kind_case()].add(said.ByteSizeLong());
}

void PlainCoordinator::said(net::PeerId, const membership::ToMember& said) {
  book_.to_members[said.kind_case()].add(said.ByteSizeLong());
}

PlainFleet::PlainFleet(const Options& options)
    : options_(options),
      timeline_(options.seed),
      internet_(timeline_, options.seed),
      medium_(timeline_.clock(), {.lease = std::nullopt}),
      workload_(options.things) {
  internet_.set_default_path({.delay = options.delay});
  start_coordinator();
  for (std::size_t i = 0; i < options.members; ++i) start_member();
  run_until([this] { return settled(); });
}

void PlainFleet::run_until(const std::function<bool()>& holds) {
  const Instant end = timeline_.now() + kPatience;
  while (!holds()) CHECK(timeline_.step() && timeline_.now() < end, timeline_.now().ns);
}

bool PlainFleet::settled() const {
  const cluster::Coordinator& led = leader();
  return led.phase() == cluster::Coordinator::Phase::kSettled &&
         led.view().members().size() == members_.size() && led.installed() == led.view().epoch() &&
         std::all_of(members_.begin(), members_.end(), [&](const auto& one) {
           return one->installed() && one->member()->view().epoch() == led.view().epoch();
         });
}

void PlainFleet::start_member() {
  const NodeId node(cluster::kCoordinatorNode.value + ++nodes_);
  cluster::MemberProcess::Options options;
  options.run = "run";
  options.name = fmt::format("machine-{}", node.value);
  options.coordinators = {{.host = machine_of(cluster::kCoordinatorNode), .port = kPort}};
  options.memory_bytes = kMemory;
  options.program = "gossamer";
  options.seed = options_.seed + node.value;
  members_.push_back(std::make_unique<PlainMember>(timeline_, internet_, node, std::move(options), book_));
}

void PlainFleet::start_coordinator() {
  cluster::CoordinatorProcess::Options options;
  options.coordinator.run = "run";
  options.coordinator.first_members = options_.members;
  options.coordinator.tracks = workload_.tracks();
  options.coordinator.batch = simulation::kBatch;
  options.candidate = {.name = "coordinator", .address = machine_of(cluster::kCoordinatorNode)};
  options.program = "gossamer";
  options.seed = options_.seed + 1000 * ++coordinator_lives_;
  coordinator_ =
      std::make_unique<PlainCoordinator>(timeline_, internet_, std::move(options), medium_, workload_, book_);
}

}  // namespace gossamer::costs
