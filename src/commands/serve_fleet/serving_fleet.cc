// SPDX-License-Identifier: Apache-2.0
#include "commands/serve_fleet/serving_fleet.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "commands/ask_fleet/query_asker.h"
#include "commands/ask_fleet/query_desk.h"
#include "commands/serve_fleet/serving_job.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/serve/fleet_predictor.h"
#include "host/api/files.h"
#include "node/coordinator_node.h"
#include "node/node_processes.h"
#include "node/run_configuration.h"

namespace gossamer::commands {
namespace {

using Found = sparse_engine::FleetQueries::Answer;

constexpr Duration kLookEvery{50'000'000};
// How long nodes of this machine may take to leave. They hold nothing that is not on the disk.
constexpr Duration kLeaveTime{3'000'000'000};
// The same for members that have joined. They are told once the end is on the lead's disk, and the view has
// changed. That takes long on a busy disk. A member that was not told waits ten minutes for another lead.
constexpr Duration kJoinedLeaveTime{20'000'000'000};

// Asks the members, and looks after the nodes of this machine.
class ServingCompanion final : public node::Companion {
 public:
  ServingCompanion(const ServingLead& serving, QueryDesk& desk,
                   const std::unique_ptr<node::NodeProcesses>& nodes, node::Aside aside)
      : queries_({.shape = serving.shape, .instances = serving.instances ? serving.instances->rows : 0}, desk,
                 std::move(aside)),
        desk_(desk),
        nodes_(nodes) {}

  void connect(net::Links* links) override { queries_.connect(links); }
  void placed(Epoch epoch, const std::string& decision) override { queries_.placed(epoch, decision); }
  void on(net::Arrived arrived, Instant now) override { queries_.on(arrived, now); }
  [[nodiscard]] std::vector<node::Misdeed> take_misdeeds() override { return queries_.take_misdeeds(); }
  void tick(Instant now) override {
    queries_.tick(now);
    if (now < next_look_) return;
    next_look_ = now + kLookEvery;
    if (nodes_ == nullptr) return;
    if (desk_.ending()) return nodes_->end_within(kLeaveTime);
    if (failed_) return;
    // A node that fails later is started again. Queries get errors until it has its part.
    began_ |= queries_.whole();
    auto good = nodes_->look(began_);
    failed_ = !good.ok();
    if (failed_) desk_.fails(good.error());
  }
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return next_look_; }
  [[nodiscard]] std::optional<std::string> over() const override {
    return desk_.ending() ? std::optional<std::string>("there are no more queries") : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> take_remarks() override { return {}; }

 private:
  QueryAsker queries_;
  QueryDesk& desk_;
  const std::unique_ptr<node::NodeProcesses>& nodes_;  // null until they are started
  Instant next_look_;
  bool began_ = false;   // all parts were there once
  bool failed_ = false;  // a node has failed before
};

// Leads the nodes, from their start to their end.
Result<void> lead(const run::NodeHost& host, const ServingFleet::Options& options, const ServingLead& serving,
                  QueryDesk& desk) {
  const std::uint64_t shards = serving.shape.shards();
  sparse_engine::FleetWorkload workload(serving.shape,
                                        {.shard_bytes = serving.bytes / shards + 1, .copies = 0});
  std::unique_ptr<node::NodeProcesses> nodes;
  node::Post wake;
  node::CoordinatorOptions leading{
      .directory = options.directory + "/nodes/coordinator",
      .state = options.directory + "/nodes/state",
      .listen = options.join_at.value_or(host::Endpoint{.host = "127.0.0.1", .port = 0}),
      .first_members = options.nodes,
      .configuration = node::run_configuration_bytes({.engine = std::string(kServingEngine),
                                                      .program = options.program_name,
                                                      .own = serving.configuration}),
      .program = options.program_name,
      .report = {.log = {.level = options.join_at ? node::LogLevel::kInfo : node::LogLevel::kError}},
      .make_companion = [&](const node::Aside& aside, const node::Post& post) {
        wake = post;
        return std::make_unique<ServingCompanion>(serving, desk, nodes, aside);
      }};
  auto node = node::CoordinatorNode::start(host, std::move(leading), workload);
  if (!node.ok()) return node.error();
  auto token = (*node)->new_token("for this lead's nodes");
  if (!token.ok()) return token.error();
  if (!options.join_at) {
    auto started = node::NodeProcesses::start(host, {.run = options.directory,
                                                     .nodes = options.nodes,
                                                     .threads_each = options.threads_each,
                                                     .program = options.program,
                                                     .at = (*node)->address(),
                                                     .token = *token,
                                                     .starts_again = true});
    if (!started.ok()) return started.error();
    nodes = *std::move(started);
  }
  desk.leads({.at = (*node)->address(), .token = *token, .wake = wake});
  std::optional<Instant> leave_until;
  auto done = (*node)->run([&] {
    if (!desk.ending()) return false;
    if (nodes != nullptr) return nodes->all_ended();
    if (!leave_until) leave_until = host.clock.now() + kJoinedLeaveTime;
    return host.clock.now() >= *leave_until;
  });
  // The lead may have ended by itself, and can still be woken. Nothing that it kept outlives it.
  if (!done.ok()) {
    Error error = done.error();
    error.fix = "start it again, on a disk that is whole and has room";
    desk.fails(std::move(error));
  }
  desk.closes();
  desk.wait_for_end();
  return {};
}

// Begins the name of a directory that is not locked yet. Other processes do not look at such names.
constexpr char kUnnamed = '.';

// Removes what killed processes have left.
void remove_left_over(host::Disk& disk, const std::string& parent) {
  const auto names = disk.list(parent);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name.front() == kUnnamed) continue;
    const auto lock = disk.lock(parent + "/" + name);
    if (lock.ok()) static_cast<void>(disk.remove_all(parent + "/" + name));
  }
}

// Makes the directory, and holds its lock.
Result<std::unique_ptr<host::DirectoryLock>> take_fresh(host::Disk& disk, const std::string& directory) {
  const std::string parent = host::parent(directory);
  remove_left_over(disk, parent);
  const std::string unnamed = parent + "/" + kUnnamed + directory.substr(parent.size() + 1);
  if (auto made = disk.make_directories(unnamed); !made.ok()) return made.error();
  auto lock = disk.lock(unnamed);
  if (!lock.ok()) return lock;  // it may be another's
  const auto named = disk.rename(unnamed, directory);
  if (named.ok()) return lock;
  static_cast<void>(disk.remove_all(unnamed));
  return named.error();
}

}  // namespace

ServingFleet::ServingFleet(const run::NodeHost& host, Options options)
    : host_(host), options_(std::move(options)) {}

Result<std::unique_ptr<ServingFleet>> ServingFleet::start(const run::NodeHost& host,
                                                          const sparse_engine::OpenedModel& model,
                                                          Options options) {
  std::unique_ptr<ServingFleet> fleet(new ServingFleet(host, std::move(options)));
  const Options& own = fleet->options_;
  auto lock = take_fresh(host.disk, own.directory);
  if (!lock.ok()) return lock.error();
  fleet->lock_ = *std::move(lock);
  if (auto made = host.disk.make_directories(own.directory + "/nodes/coordinator"); !made.ok())
    return made.error();
  fleet->lead_ = std::make_unique<host::SerialThread>("lead");
  fleet->lead_->give(
      [&host, &own, &desk = fleet->desk_, serving = prepare_serving(model, own.nodes, own.instances)] {
        if (const auto led = lead(host, own, serving, desk); !led.ok()) desk.fails(led.error());
      });
  const QueryDesk::Patience patience{.time = own.start_patience, .stop = own.stop};
  const auto led = fleet->desk_.wait_until_led(host.clock, patience);
  if (!led.ok()) return led.error();
  if (own.joined_at) {
    if (auto told = own.joined_at(led->at, led->token); !told.ok()) return told.error();
  }
  if (auto whole = fleet->desk_.wait_until_whole(host.clock, patience); !whole.ok()) return whole.error();
  return fleet;
}

ServingFleet::~ServingFleet() {
  desk_.end();
  lead_.reset();
  if (lock_ != nullptr) static_cast<void>(host_.disk.remove_all(options_.directory));
}

Result<Found> ServingFleet::ask(const sparse_engine::FleetQueries::Block& block) {
  const QueryDesk::Patience patience{
      .time = options_.patience, .stop = options_.stop, .after_stop = Options::kLastAnswer};
  return desk_.ask(asked_block(++asked_, block), host_.clock, patience);
}

std::unique_ptr<sparse_engine::Predictor> fleet_predictor(ServingFleet& fleet,
                                                          const sparse_engine::Model& model) {
  return sparse_engine::fleet_predictor(
      model, fleet.fuses() ? sparse_engine::PartInstances::kShare : sparse_engine::PartInstances::kNone,
      [&fleet](const sparse_engine::FleetQueries::Block& block) { return fleet.ask(block); });
}

}  // namespace gossamer::commands
