// SPDX-License-Identifier: Apache-2.0
#include "node/configured_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/check.h"
#include "base/printable.h"
#include "cluster/control/view.h"

namespace gossamer::node {
namespace {

// Deliveries and reports go to coordinators. What they answer, members say to nobody.
bool is_for_coordinators(const net::Arrived& arrived) {
  const std::uint32_t channel = arrived.message.channel;
  return (channel == kDeliveries || channel == net::kReports) &&
         arrived.from.node != cluster::kCoordinatorNode;
}

Error of_coordinators(const net::Arrived& arrived) {
  return {.kind = ErrorKind::kBadData,
          .where = fmt::format("node-{}", arrived.from.node.value),
          .what = "the peer says to a member what members say to their coordinator alone",
          .got = fmt::format("a message on channel {}", arrived.message.channel),
          .expected = "none",
          .fix = "look whether it runs this version"};
}

}  // namespace

ConfiguredEngine::ConfiguredEngine(host::Disk& disk, cluster::MemberProcess& process, Options options)
    : disk_(disk), process_(process), options_(std::move(options)) {
  std::set<std::string> words;
  for (const Kind& kind : options_.kinds)
    CHECK(words.insert(run_words(kind.name, kind.needs)).second, kind.name);
}

void ConfiguredEngine::on(const cluster::ProcessEvent& event, Instant now) {
  follow_links();
  if (const auto* const begun = std::get_if<cluster::LifeBegun>(&event)) return begin(*begun, now);
  const auto* const arrived = std::get_if<net::Arrived>(&event);
  if (arrived != nullptr && took(*arrived, now)) return;
  const auto* const said = std::get_if<cluster::MemberEvent>(&event);
  const auto* const stop = said != nullptr ? std::get_if<cluster::StopRequested>(said) : nullptr;
  if (told_) {
    engine_->on(event, now);
  } else if (stop != nullptr) {
    leave(stop->reason, now);
  }
  // A member that leaves by itself may come back, and needs its files again.
  const cluster::Member* const member = process_.member();
  if (stop != nullptr && supply_ != nullptr && member != nullptr && member->stop()) supply_->run_over();
  if (!std::holds_alternative<cluster::LifeEnded>(event)) return;
  life_.reset();
  told_ = false;
}

// False: it is the engine's.
bool ConfiguredEngine::took(const net::Arrived& arrived, Instant now) {
  if (links_ == nullptr || process_.member() == nullptr) return false;
  const net::PeerId coordinator = process_.member()->coordinator();
  if (is_for_coordinators(arrived)) {
    links_->consumed(arrived.receipt, now);
    process_.member()->blame(arrived.from, of_coordinators(arrived), now);
    return true;
  }
  if (supply_ != nullptr && supply_->on(arrived, coordinator, now)) {
    blame(now);
    return true;
  }
  if (reports_ && reports_->on(arrived, coordinator, *links_, now)) return true;
  if (told_) return false;
  links_->consumed(arrived.receipt, now);
  return true;
}

void ConfiguredEngine::blame(Instant now) {
  if (supply_ == nullptr) return;
  for (const FileExchange::Blamed& one : supply_->take_blamed()) {
    if (process_.member() != nullptr) process_.member()->blame(one.peer, one.error, now);
  }
}

// Links end with a life, sometimes before that is told.
void ConfiguredEngine::follow_links() {
  if (process_.links() == links_) return;
  links_ = process_.links();
  if (supply_ != nullptr) supply_->connect(links_);
}

void ConfiguredEngine::begin(const cluster::LifeBegun& event, Instant now) {
  told_ = false;
  if (kind_ == nullptr && !failure_) choose(event.configuration, now);
  links_ = process_.links();
  if (supply_ != nullptr) supply_->connect(links_);
  if (process_.member() == nullptr) return;
  life_ = event;
  if (failure_) return leave(failure_->message(), now);
  if (leaving_) return leave(*leaving_, now);
  go_on(now);
}

void ConfiguredEngine::choose(const std::string& configuration, Instant now) {
  auto told = read_run_configuration(configuration);
  if (!told.ok()) {
    failure_ = told.error();
    return;
  }
  const auto kind = std::ranges::find_if(options_.kinds, [&](const Kind& known) {
    return known.name == told->engine && known.needs == told->needs();
  });
  if (kind == options_.kinds.end()) {
    failure_ = unknown(configuration);
    return;
  }
  kind_ = &*kind;
  own_ = std::move(told->own);
  if (!told->supply) return;
  Aside aside = options_.aside;
  if (!aside) aside = [this](Work work, Then then) { aside_.emplace_back(std::move(work), std::move(then)); };
  supply_ = std::make_unique<MemberSupply>(disk_, *std::move(told->supply), aside, options_.supply, now);
  reports_.emplace();
  told_reports_ = std::make_shared<host::Mailbox<std::string>>();
}

Error ConfiguredEngine::unknown(std::string_view configuration) const {
  std::vector<std::string> words;
  for (const Kind& known : options_.kinds) words.push_back(run_words(known.name, known.needs));
  constexpr std::size_t kMostShown = 100;
  const std::string_view line = configuration.substr(0, configuration.find('\n'));
  return {.kind = ErrorKind::kRefused,
          .what = "this node cannot do what the run does",
          .got = fmt::format("'{}'", printable(line.substr(0, kMostShown))),
          .expected = fmt::format("one of {}, which {} can do", fmt::join(words, ", "), options_.program),
          .fix = "run the version of the coordinator here"};
}

std::unique_ptr<cluster::Engine> ConfiguredEngine::make_engine() const {
  if (supply_ == nullptr) return kind_->make({});
  Supplied supplied = supply_->supplied();
  supplied.nobody_takes = [this] { return leaving_ && is_unled(process_, now_); };
  supplied.tell = [reports = told_reports_](std::string report) { reports->push(std::move(report)); };
  return kind_->make(supplied);
}

// Tells the engine of this life once the files are here.
void ConfiguredEngine::go_on(Instant now) {
  if (supply_ != nullptr && supply_->failure() && !failure_) return fail(*supply_->failure(), now);
  if (!life_ || failure_ || leaving_ || (supply_ != nullptr && !supply_->here())) return;
  if (engine_ == nullptr) engine_ = make_engine();
  cluster::LifeBegun event = *std::exchange(life_, std::nullopt);
  event.configuration = own_;
  told_ = true;
  engine_->on(event, now);
}

// The coordinator has the files, and so has each member that serves.
std::set<net::PeerId> ConfiguredEngine::donors() const {
  const cluster::Member& member = *process_.member();
  std::set<net::PeerId> donors{member.coordinator()};
  for (const auto& [node, record] : member.view().members()) {
    if (record.state() == membership::SERVING) donors.insert(cluster::peer_of(record));
  }
  donors.erase(member.self());
  return donors;
}

bool is_unled(cluster::MemberProcess& process, Instant now) {
  const cluster::Member* const member = process.member();
  if (member == nullptr || member->stop()) return false;
  const net::LinkStatistics link = process.links()->statistics(member->coordinator().node);
  return !link.up && (!link.last_heard || now - *link.last_heard >= kUnledAfter);
}

void ConfiguredEngine::tick(Instant now) {
  now_ = now;
  follow_links();
  if (supply_ != nullptr) {
    const cluster::Member* const member = process_.member();
    if (member != nullptr && !supply_->here()) supply_->donors(donors());
    supply_->tick(member != nullptr ? member->coordinator() : net::PeerId(), now);
    blame(now);
    take_reports();
    if (member != nullptr && links_ != nullptr)
      reports_->tick(member->self().incarnation, member->coordinator(), *links_, now);
    go_on(now);
  }
  if (told_) engine_->tick(now);
}

std::optional<Instant> ConfiguredEngine::next_wakeup() const {
  std::optional<Instant> wake = engine_ != nullptr ? engine_->next_wakeup() : std::nullopt;
  if (supply_ != nullptr) wake = sooner(wake, supply_->next_wakeup());
  if (reports_ && links_ != nullptr) wake = sooner(wake, reports_->next_wakeup());
  return wake;
}

// A member whose engine has not begun holds nothing.
void ConfiguredEngine::drain(const std::string& reason, Instant now) {
  leaving_ = reason;
  if (told_) return engine_->drain(reason, now);
  leave(reason, now);
}

void ConfiguredEngine::fail(Error error, Instant now) {
  failure_ = std::move(error);
  leave(failure_->message(), now);
}

void ConfiguredEngine::leave(const std::string& reason, Instant now) {
  if (process_.member() != nullptr) process_.member()->leave(reason, now);
}

std::optional<Error> ConfiguredEngine::failure() const {
  return failure_ || engine_ == nullptr ? failure_ : engine_->failure();
}

// One piece at a time, so that it is known whose was done.
cluster::Engine::Work ConfiguredEngine::take_work() {
  if (doing_) return {};
  if (!aside_.empty()) {
    auto [work, then] = std::move(aside_.front());
    aside_.pop_front();
    doing_ = std::move(then);
    return std::move(work);
  }
  Work work = engine_ != nullptr ? engine_->take_work() : Work();
  if (work) doing_ = Then();
  return work;
}

void ConfiguredEngine::worked(Instant now) {
  follow_links();
  const Then then = *std::exchange(doing_, std::nullopt);
  if (then) return then(now);
  engine_->worked(now);
}

// What the node does aside is none of it.
cluster::Engine::Work ConfiguredEngine::take_side_work() {
  return engine_ != nullptr ? engine_->take_side_work() : Work();
}

void ConfiguredEngine::side_worked(Instant now) {
  follow_links();
  engine_->side_worked(now);
}

std::vector<std::string> ConfiguredEngine::take_remarks() {
  std::vector<std::string> remarks;
  if (supply_ != nullptr) {
    remarks = supply_->take_remarks();
    for (std::string& one : reports_->take_remarks()) remarks.push_back(std::move(one));
  }
  if (engine_ != nullptr) {
    for (std::string& one : engine_->take_remarks()) remarks.push_back(std::move(one));
  }
  return remarks;
}

std::optional<cluster::Awaited> ConfiguredEngine::awaits() const {
  return engine_ != nullptr ? engine_->awaits() : std::nullopt;
}

void ConfiguredEngine::take_reports() {
  for (std::string& one : told_reports_->wait({})) reports_->post(std::move(one));
}

cluster::Told ConfiguredEngine::told() {
  if (!reports_) return {};
  take_reports();
  const ReportOutbox::Told told = reports_->told();
  return {.last = told.last, .settled = told.settled};
}

std::optional<Instant> ConfiguredEngine::moved() const {
  return supply_ == nullptr ? std::nullopt : supply_->moved();
}

std::vector<CounterSample> ConfiguredEngine::counters() const {
  return engine_ != nullptr ? engine_->counters() : std::vector<CounterSample>();
}

}  // namespace gossamer::node
