// SPDX-License-Identifier: Apache-2.0
#include "node/files/supplied_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "base/human_bytes.h"
#include "cluster/control/view.h"
#include "commands/train_fleet/fleet_data.h"

namespace gossamer::node {

SuppliedEngine::SuppliedEngine(const NodeHost& host, cluster::MemberProcess& process,
                               std::unique_ptr<cluster::Engine> engine, Options options)
    : host_(host),
      process_(process),
      options_(std::move(options)),
      engine_(std::move(engine)),
      exchange_(
          host.disk,
          {.aside = [this](Work work, Then then) { aside_.emplace_back(std::move(work), std::move(then)); },
           .seed = options_.seed,
           .bytes_per_second = options_.bytes_per_second},
          host.clock.now()) {}

DataPlaces SuppliedEngine::own_places() const {
  return {
      .cache = {.directory = own("data"), .records = told_->cache.records.empty() ? "" : own("data/records")},
      .begin_from = own("data")};
}

void SuppliedEngine::on(const cluster::ProcessEvent& event, Instant now) {
  follow_links();
  if (const auto* const begun = std::get_if<cluster::LifeBegun>(&event)) return begin(*begun, now);
  const auto* const arrived = std::get_if<net::Arrived>(&event);
  if (arrived != nullptr && took(*arrived, now)) return;
  const auto* const said = std::get_if<cluster::MemberEvent>(&event);
  const auto* const stop = said != nullptr ? std::get_if<cluster::StopRequested>(said) : nullptr;
  if (passed_on_) {
    engine_->on(event, now);
  } else if (stop != nullptr && process_.member() != nullptr) {
    process_.member()->leave(stop->reason, now);
  }
  if (stop != nullptr) over_ = true;
  if (!std::holds_alternative<cluster::LifeEnded>(event)) return;
  life_.reset();
  passed_on_ = false;
}

// Takes a message. False when it is for the engine.
bool SuppliedEngine::took(const net::Arrived& arrived, Instant now) {
  if (links_ == nullptr || process_.member() == nullptr) return false;
  const std::uint32_t channel = arrived.message.channel;
  if (channel == kChunkRequests || channel == kChunkAnswers) return exchange_.on(arrived, now);
  if (channel == kDeliveries && delivery_ != nullptr)
    return delivery_->on(arrived, process_.member()->coordinator(), *links_, now);
  if (passed_on_) return false;
  links_->consumed(arrived.receipt, now);
  return true;
}

// When the run is over, its data are of no use any more.
SuppliedEngine::~SuppliedEngine() {
  if (!over_ || delivery_ == nullptr) return;
  for (const char* const name : {"data", "deliver"}) static_cast<void>(host_.disk.remove_all(own(name)));
}

// Links end with a life, sometimes before this engine hears of its end.
void SuppliedEngine::follow_links() {
  if (process_.links() == links_) return;
  links_ = process_.links();
  exchange_.connect(links_);
}

void SuppliedEngine::begin(const cluster::LifeBegun& event, Instant now) {
  links_ = process_.links();
  exchange_.connect(links_);
  passed_on_ = false;
  if (process_.member() == nullptr) return;
  life_ = event;
  if (failure_) return process_.member()->leave(failure_->message(), now);
  if (leaving_) return process_.member()->leave(*leaving_, now);
  if (!told_) begin_supply(event.configuration, now);
  pass_on(now);
}

// Begins to supply data. A configuration that cannot be read is left for the engine to refuse.
void SuppliedEngine::begin_supply(const std::string& configuration, Instant now) {
  auto told = read_fleet_configuration(configuration);
  configuration_ = configuration;
  if (!told.ok()) return;
  told_ = *std::move(told);
  began_ = now;
  next_say_ = now + kSayEvery;
  if (find_in_place()) {
    for (const StoredFile& file : stored_) static_cast<void>(exchange_.give(file));
    return;
  }
  look_for_own();
  if (missing_.empty()) supplied(now);
}

bool SuppliedEngine::find_in_place() {
  const auto deliver = host_.disk.exists(told_->deliver);
  if (!deliver.ok() || !*deliver) return false;
  for (const DataFile& file : told_->data) {
    auto found = find_stored(host_.disk, data_place(told_->places(), file.name), file.manifest);
    if (!found) {
      stored_.clear();
      return false;
    }
    stored_.push_back(*std::move(found));
  }
  return true;
}

void SuppliedEngine::look_for_own() {
  for (const DataFile& file : told_->data) {
    const StoredPlace place = data_place(own_places(), file.name);
    if (auto found = find_stored(host_.disk, place, file.manifest)) {
      stored_.push_back(*std::move(found));
    } else {
      missing_.push_back(file);
      exchange_.get({.id = file.manifest, .path = place.path, .most_bytes = file.bytes});
    }
  }
}

void SuppliedEngine::fetched(FileExchange::Got got, Instant now) {
  if (failure_) return;
  if (!got.file.ok()) return fail(got.file.error(), now);
  fetched_bytes_ += got.file->manifest.bytes();
  stored_.push_back(*std::move(got.file));
  std::erase_if(missing_, [&](const DataFile& file) { return file.manifest == got.id; });
  if (!missing_.empty()) return;
  remarks_.push_back(
      fmt::format("data: all here, {} in {:.1f} s", human_bytes(fetched_bytes_), (now - began_).seconds()));
  supplied(now);
  pass_on(now);
}

// Tells the engine that all its files lie below this node's own directory.
void SuppliedEngine::supplied(Instant now) {
  for (const StoredFile& file : stored_) {
    if (auto given = exchange_.give(file); !given.ok()) return fail(given.error(), now);
  }
  FleetConfiguration own_told = *told_;
  own_told.cache = own_places().cache;
  own_told.begin_from = own_places().begin_from;
  own_told.deliver = own("deliver");
  if (!own_told.checkpoints.empty()) own_told.checkpoints = own_told.deliver;
  configuration_ = fleet_configuration_bytes(own_told);
  auto delivery = FileDelivery::start(
      host_.disk, exchange_,
      [this](Work work, Then then) { aside_.emplace_back(std::move(work), std::move(then)); },
      {.directory = own_told.deliver, .growing = growing_files()});
  if (!delivery.ok()) return fail(delivery.error(), now);
  delivery_ = *std::move(delivery);
}

void SuppliedEngine::pass_on(Instant now) {
  if (!life_ || failure_ || !missing_.empty()) return;
  cluster::LifeBegun event = *std::exchange(life_, std::nullopt);
  event.configuration = configuration_;
  passed_on_ = true;
  engine_->on(event, now);
}

// Names the donors: members that serve have the data, and so does the coordinator.
void SuppliedEngine::meet_donors(Instant now) {
  if (missing_.empty() || process_.member() == nullptr) return;
  const cluster::Member& member = *process_.member();
  std::set<net::PeerId> donors{member.coordinator()};
  for (const auto& [node, record] : member.view().members()) {
    if (record.state() == membership::SERVING) donors.insert(cluster::peer_of(record));
  }
  donors.erase(member.self());
  for (const DataFile& file : missing_) exchange_.donors(file.manifest, donors);
  if (next_say_ <= now) say_progress(now);
}

void SuppliedEngine::say_progress(Instant now) {
  next_say_ = now + kSayEvery;
  std::uint64_t here = fetched_bytes_;
  std::uint64_t all = fetched_bytes_;
  for (const DataFile& file : missing_) {
    here += exchange_.progress(file.manifest).here;
    all += file.bytes;
  }
  remarks_.push_back(fmt::format("data: {} of {} here", human_bytes(here), human_bytes(all)));
}

void SuppliedEngine::tick(Instant now) {
  follow_links();
  if (links_ != nullptr) {
    meet_donors(now);
    exchange_.tick(now);
    if (delivery_ != nullptr && process_.member() != nullptr)
      delivery_->tick(process_.member()->coordinator(), *links_, now);
  }
  for (FileExchange::Got& got : exchange_.take_got()) fetched(std::move(got), now);
  if (passed_on_) engine_->tick(now);
}

std::optional<Instant> SuppliedEngine::next_wakeup() const {
  std::optional<Instant> wake = engine_->next_wakeup();
  const auto sooner = [&](std::optional<Instant> other) {
    if (other && (!wake || *other < *wake)) wake = other;
  };
  sooner(exchange_.next_wakeup());
  if (delivery_ != nullptr) sooner(delivery_->next_wakeup());
  if (!missing_.empty() && links_ != nullptr) sooner(next_say_);
  return wake;
}

void SuppliedEngine::drain(const std::string& reason, Instant now) {
  leaving_ = reason;
  if (passed_on_) return engine_->drain(reason, now);
  // The engine holds nothing yet.
  if (process_.member() != nullptr) process_.member()->leave(reason, now);
}

void SuppliedEngine::fail(Error error, Instant now) {
  failure_ = std::move(error);
  if (process_.member() != nullptr) process_.member()->leave(failure_->message(), now);
}

std::optional<Error> SuppliedEngine::failure() const { return failure_ ? failure_ : engine_->failure(); }

// Gives one piece of work at a time, so that it is known whose work was done.
cluster::Engine::Work SuppliedEngine::take_work() {
  if (doing_) return {};
  if (!aside_.empty()) {
    auto [work, then] = std::move(aside_.front());
    aside_.pop_front();
    doing_ = std::move(then);
    return std::move(work);
  }
  Work work = engine_->take_work();
  if (work) doing_ = Then();
  return work;
}

void SuppliedEngine::worked(Instant now) {
  follow_links();
  const Then then = *std::exchange(doing_, std::nullopt);
  if (then) return then(now);
  engine_->worked(now);
}

std::vector<std::string> SuppliedEngine::take_remarks() {
  std::vector<std::string> remarks = std::exchange(remarks_, {});
  for (std::string& one : exchange_.take_remarks()) remarks.push_back(std::move(one));
  if (delivery_ != nullptr) {
    for (std::string& one : delivery_->take_remarks()) remarks.push_back(std::move(one));
  }
  return remarks;
}

}  // namespace gossamer::node
