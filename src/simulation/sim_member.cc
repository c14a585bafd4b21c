// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_member.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "cluster/control/view.h"

namespace gossamer::simulation {
namespace {

constexpr Duration kBatchTime{20'000'000};

}  // namespace

SimMember::SimMember(host::Timeline& timeline, host::SimInternet& internet, Options options,
                     const Place& place)
    : SimProcess(timeline, internet, place.machine,
                 options.local ? place.coordinators.front() : place.machine, place.certificate, place.clock),
      options_(std::move(options)),
      told_(place.told),
      node_(place.node),
      rng_(place.seed, Purpose::kFault, 17) {
  const auto listen = [&](host::Lane lane) {
    const auto bound = network().listen({where(), 0}, lane);
    CHECK(bound.ok());
    return *bound;
  };
  const membership::Listening listening = cluster::listening_of(
      {.node = {}, .control = listen(host::Lane::kControl), .bulk = listen(host::Lane::kBulk)});
  cluster::MemberProcess::Options process;
  process.run = "run";
  process.name = machine();
  process.machine = where();
  for (const std::string& coordinator : place.coordinators)
    process.coordinators.push_back({coordinator, 7000});
  if (options_.hidden) {
    internet.hide(where());
  } else {
    if (!options_.local) internet.show(where());
    process.listening = listening;
  }
  process.memory_bytes = options_.memory_bytes;
  process.program = "test";
  process.seed = place.seed;
  process.defect = place.defect;
  process.probes = place.probes;
  process.link_probes = place.link_probes;
  process.watch_links = place.watch_links;
  process.falsify = [this](membership::ToCoordinator& said) {
    // A life that just begins speaks before there is a member.
    if (falsify_ && member() != nullptr) falsify_(said);
  };
  process.work_time = [this] { return work_time(); };
  process_ = std::make_unique<cluster::MemberProcess>(std::move(process), network(), now());
  engine_ = options_.make_engine(*process_);
  go_on();
}

SimMember::~SimMember() {
  engine_.reset();
  process_.reset();
  silence();
}

void SimMember::drain(const std::string& reason) {
  engine_->drain(reason, now());
  go_on();
}

void SimMember::save_and_leave(const std::string& reason) {
  engine_->on(cluster::MemberEvent(cluster::StopRequested{reason}), now());
  go_on();
}

void SimMember::leave(const std::string& reason) {
  if (member() != nullptr) member()->leave(reason, now());
  go_on();
}

void SimMember::hang(Duration lasts) {
  stop_counting(main_);
  stop_counting(side_);
  hung_until_ = std::max(hung_until_, timeline().now() + lasts);
  after(lasts, [this] { go_on(); });  // handles the events that came meanwhile
}

void SimMember::work_for(Duration lasts) {
  hang(lasts);
  main_.since = timeline().now();
  after(lasts, [this] { stop_counting(main_); });
}

void SimMember::say(net::Message message) {
  if (member() == nullptr) return;
  (void)links()->send(member()->coordinator(), host::Lane::kControl, std::move(message), now());
  go_on();
}

void SimMember::say_to(NodeId node, host::Lane lane, net::Message message) {
  if (member() == nullptr) return;
  (void)links()->send({node, {}}, lane, std::move(message), now());
  go_on();
}

void SimMember::deafen(Duration lasts) {
  if (deaf_until_ != Instant()) return;
  deaf_until_ = timeline().now() + lasts;
  after(lasts, [this] { hear(); });
}

void SimMember::hear() {
  if (timeline().now() < deaf_until_) return;
  for (host::NetworkEvent& event : std::exchange(unheard_, {})) on_network(std::move(event));
}

void SimMember::on_network(host::NetworkEvent event) {
  if (process_ == nullptr) return;
  if (timeline().now() < deaf_until_ || !unheard_.empty()) {
    unheard_.push_back(std::move(event));
    return;
  }
  process_->on(std::move(event), now());
  if (options_.driver == Driver::kPrompt) return go_on();
  if (std::exchange(batch_begun_, true)) return;
  after(kBatchTime, [this] {
    batch_begun_ = false;
    on_timer();
  });
}

void SimMember::on_timer() {
  process_->tick(now());
  if (timeline().now() >= hung_until_) engine_->tick(now());
  go_on();
}

Duration SimMember::time_of(const Queue& queue) {
  return queue.since ? queue.before + (timeline().now() - *queue.since) : queue.before;
}

void SimMember::stop_counting(Queue& queue) {
  queue.before = time_of(queue);
  queue.since.reset();
}

// It is done at once, and told of when its time is over.
void SimMember::begin(const cluster::Engine::Work& work, Queue& queue, WorkDone tell_done) {
  if (!work) return;
  work();
  queue.since = timeline().now();
  const auto drawn = [&] {
    const Duration range = options_.longest_work - options_.shortest_work;
    const std::uint64_t more = range.ns > 0 ? rng_.below(static_cast<std::uint64_t>(range.ns)) : 0;
    return options_.shortest_work + Duration{static_cast<std::int64_t>(more)};
  };
  after(work.lasts() ? *work.lasts() : drawn(), [this, &queue, tell_done] { worked(queue, tell_done); });
}

void SimMember::worked(Queue& queue, WorkDone tell_done) {
  const Instant today = timeline().now();
  if (today < hung_until_)
    return after(hung_until_ - today, [this, &queue, tell_done] { worked(queue, tell_done); });
  stop_counting(queue);
  (engine_.get()->*tell_done)(now());
  if (options_.watch) options_.watch(*this);
  go_on();
}

void SimMember::tell(const cluster::ProcessEvent& event) {
  if (const auto* const begun = std::get_if<cluster::LifeBegun>(&event)) {
    ++lives_;
    life_ = begun->self.incarnation;
  }
  if (std::holds_alternative<cluster::LifeEnded>(event)) life_.reset();
  if (told_) told_(*this, event);
  engine_->on(event, now());
  if (options_.watch) options_.watch(*this);
}

void SimMember::go_on() {
  if (timeline().now() < hung_until_) return arm(process_->next_wakeup());
  for (auto events = process_->take_events(); !events.empty(); events = process_->take_events()) {
    for (const cluster::ProcessEvent& event : events) tell(event);
  }
  begin(engine_->take_work(), main_, &cluster::Engine::worked);
  begin(engine_->take_side_work(), side_, &cluster::Engine::side_worked);
  std::optional<Instant> wake = process_->next_wakeup();
  const auto other = engine_->next_wakeup();
  if (other && (!wake || *other < *wake)) wake = other;
  arm(wake);
}

}  // namespace gossamer::simulation
