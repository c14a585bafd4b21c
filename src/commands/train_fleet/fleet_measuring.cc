// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_measuring.h"

#include <utility>

#include "engines/sparse/serve/fleet_predictor.h"

namespace gossamer::commands {
namespace {

// Members may be away for as long as the run waits for them.
constexpr Duration kEver = from_seconds(1e9);

Error changed() {
  return {.kind = ErrorKind::kFailed, .where = "evaluation", .what = "the members have changed"};
}

}  // namespace

FleetMeasuring::FleetMeasuring(const run::NodeHost& host, StepRunner::Measure measure,
                               sparse_engine::ModelInParts model)
    : host_(host),
      measure_(std::move(measure)),
      model_(std::move(model)),
      thread_(std::make_unique<host::SerialThread>("measuring")) {}

FleetMeasuring::~FleetMeasuring() { end(); }

void FleetMeasuring::begin_loop(node::Aside aside, node::Post post) {
  asker_ = std::make_unique<QueryAsker>(model_, desk_, std::move(aside));
  desk_.leads({.at = {}, .token = {}, .wake = std::move(post)});
}

void FleetMeasuring::end() {
  ends_ = true;
  desk_.closes();
  thread_.reset();
}

std::set<NodeId> FleetMeasuring::holders() const {
  return asker_->whole() ? asker_->members() : std::set<NodeId>();
}

bool FleetMeasuring::given_up() {
  if (!waits_since_) waits_since_ = host_.clock.now();
  return asker_->epoch() == Epoch() && host_.clock.now() - *waits_since_ >= kReadyPatience;
}

bool FleetMeasuring::done() {
  for (Told& told : told_.wait(Duration())) {
    measuring_ = false;
    measured_epoch_ = told.epoch;
    measured_ = std::move(told.measured);
  }
  if (measuring_ || !asker_->whole()) return false;
  if (measured_ && measured_epoch_ == asker_->epoch()) return true;
  measured_.reset();
  if (!std::exchange(told_of_it_, true))
    host_.say("all steps are done; the nodes measure what they have trained");
  measuring_ = true;
  thread_->give([this, epoch = asker_->epoch()] {
    Result<Measured> measured = measure(epoch);
    told_.push({.epoch = epoch, .measured = std::move(measured)});
  });
  return false;
}

Result<Measured> FleetMeasuring::measure(Epoch epoch) {
  const QueryDesk::Patience patience{.time = kEver, .stop = [this] { return ends_.load(); }};
  if (const auto led = desk_.wait_until_led(host_.clock, patience); !led.ok()) return led.error();
  const auto ask = [&](const sparse_engine::FleetQueries::Block& block) {
    auto found = desk_.ask(asked_block(++asked_, block), host_.clock, patience);
    if (found.ok() && desk_.ready().epoch != epoch) return Result<QueryDesk::Found>(changed());
    return found;
  };
  return measure_(
      [&](const sparse_engine::Model& model) {
        return sparse_engine::fleet_predictor(model, sparse_engine::PartInstances::kNone, ask);
      },
      patience.stop);
}

}  // namespace gossamer::commands
