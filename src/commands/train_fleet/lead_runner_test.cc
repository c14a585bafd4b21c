// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/lead_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>

#include "commands/train_fleet/fleet_configuration.h"
#include "commands/train_fleet/fleet_plan.h"
#include "commands/train_fleet/measured_file.h"
#include "commands/train_fleet/part_file.h"
#include "commands/train_fleet/sparse_led.h"
#include "commands/train_fleet/test_fleet_run.h"
#include "host/api/durable_directories.h"
#include "host/api/files.h"
#include "node/admission/credentials.h"
#include "node/places.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;
using ::testing::HasSubstr;

constexpr const char* kRun = "/simulated/run";
constexpr const char* kLeads = "it leads";
constexpr std::size_t kNodes = 2;
constexpr std::uint64_t kSteps = 6;

// 24 labels have records, of those that there are.
std::string records(std::size_t labels) {
  std::string text = "96 40 " + std::to_string(labels) + "\n";
  for (int i = 0; i < 96; ++i) {
    const std::string label = std::to_string(i % 24);
    text += label + " " + label + ":1 " + std::to_string(24 + i % 16) + ":2\n";
  }
  return text;
}

// Where a run has its trained network at the end, and whether it keeps checkpoints.
struct Kind {
  bool own = true;          // its members are own processes
  bool instances = true;    // its network comes into one memory
  bool checkpoints = true;  // else its parts are all there is
  std::size_t labels = 24;
};

sparse_engine::TrainConfig config_of(const Kind& kind) {
  sparse_engine::TrainConfig config;
  config.data.train = "/data/train.txt";
  config.data.test = "/data/train.txt";
  config.model.hidden = 32;
  config.train.batch = 8;
  config.train.steps = kSteps;
  config.train.warmup_steps = 1;
  config.predict.instances = kind.instances;
  config.checkpoint = {.every_steps = kind.checkpoints ? 4U : 0U, .every_minutes = 0, .keep = 1};
  return config;
}

void put_data(host::Disk& disk, const Kind& kind) {
  ASSERT_TRUE(host::make_durable_directories(disk, "/data").ok());
  write(disk, "/data/train.txt", records(kind.labels));
}

Result<TrainResult> train(const run::NodeHost& host, const Kind& kind, StepRunner& runner) {
  const auto stop = [] { return false; };
  return run_training(host, {.directory = kRun,
                             .resume = run::Continue::kResume,
                             .config = config_of(kind),
                             .settings = {},
                             .stop_requested = stop,
                             .runner = &runner});
}

// A lead and its members up to a moment at which the lead is killed.
class KilledFleet final : public testing::TestRunner {
 public:
  enum class Moment {
    kDelivered,  // members have delivered all that they have trained
    kHalfway,    // they have saved a checkpoint of step 4, and the run has ended
    kMeasured,   // another member had delivered as well, was lost, and the lead has measured what is left
  };
  KilledFleet(SimMachine& machine, const Kind& kind, Moment moment)
      : machine_(machine), kind_(kind), moment_(moment) {}

  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths& paths,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const engine::TrainHooks&) override {
    const run::NodeHost host = machine_.host();
    host::Disk& disk = inputs.disk;
    const std::string directory = node::lead_directory(kRun);
    for (const std::string& one : {paths.parts(), directory})
      EXPECT_TRUE(host::make_durable_directories(disk, one).ok());
    const run::LeadFile file{.engine = "sparse", .start = StepNumber(), .nodes = kind_.own ? kNodes : 0};
    EXPECT_TRUE(run::keep_lead_file(disk, directory, file).ok());
    const auto lead = prepare_lead(disk, testing::fleet_run(paths, inputs),
                                   {.members = kind_.own ? kNodes : 16, .one_machine = kind_.own});
    EXPECT_TRUE(lead.ok()) << lead.error().message();
    for (std::size_t i = 0; i < kNodes; ++i) {
      const auto job = make_member_job(host, fleet_configuration_bytes(lead->configuration),
                                       {.supply = lead->supply}, NodeId(i + 1));
      EXPECT_TRUE(job.ok()) << job.error().message();
      sparse::Network network = testing::train_alone(**job);
      network.part = part_of_node(i, lead->shape);
      if (moment_ == Moment::kHalfway) {
        (*job)->checkpoints.save(StepNumber(4), network);
        (*job)->checkpoints.finish();
      } else {
        deliver(**job, i, network);
      }
      if (moment_ == Moment::kMeasured && i + 1 == kNodes) {
        lose_one(disk, paths, **job);
        SparseLed led(host, paths, inputs, {});
        EXPECT_EQ(*led.delivered(kind_.own ? kNodes : 16), true);
        measure(led);
        EXPECT_EQ(list_parts(disk, paths.parts(), lead->shape, StepNumber(kSteps))->size(), kNodes);
      }
    }
    if (moment_ == Moment::kHalfway) end(disk, directory);
    return Error{.what = "killed"};
  }

 private:
  // The first node has all columns, and every other shard.
  static sparse::NetworkPart part_of_node(std::size_t i, const sparse_engine::FleetShape& shape) {
    std::set<std::size_t> shards;
    for (std::size_t shard = i; shard < shape.shards(); shard += kNodes) shards.insert(shard);
    sparse::NetworkPart part = sparse_engine::with_shards(sparse_engine::no_part(shape), shape, shards);
    if (i == 0) part.columns = {0, 32};
    return part;
  }
  static void deliver(const sparse_engine::FleetJob& job, std::size_t i, sparse::Network& network) {
    for (StepNumber step; step.value < kSteps; ++step)
      job.stepped({.epoch = Epoch(1), .step = step, .rank = i, .members = kNodes, .loss = 0.5, .sent = {}});
    EXPECT_TRUE(job.deliver(network).ok());
  }
  // A member has delivered all, with other numbers, before it was lost.
  static void lose_one(host::Disk& disk, const run::RunPaths& paths, const sparse_engine::FleetJob& job) {
    const sparse::NetworkPart all = sparse::whole(job.shape.network, job.shape.shard_shift);
    const auto network = sparse_engine::initial_network(job, all);
    const PartHeader header{.node = NodeId(kNodes + 1), .step = StepNumber(kSteps), .part = all};
    EXPECT_TRUE(save_part(disk, paths.parts(), header, *network).ok());
  }
  static void measure(SparseLed& led) {
    std::set<NodeId> holders;
    for (std::size_t i = 0; i < kNodes; ++i) {
      EXPECT_EQ(*led.find_parts(holders), false);
      holders.insert(NodeId(i + 1));
    }
    EXPECT_EQ(*led.find_parts(holders), true);
    led.keep_measured(Measured{.metrics_json = R"({"P@1":12.5})", .text = "the figures"});
  }
  void end(host::Disk& disk, const std::string& directory) const {
    const host::Validity validity{.now_seconds = machine_.clock.wall_seconds(), .days = 1};
    EXPECT_TRUE(node::create_run_credentials(disk, directory, "before", validity).ok());
    EXPECT_TRUE(host::replace_file(disk, std::string(kRun) + "/nodes/ended", "").ok());
  }

  SimMachine& machine_;
  const Kind kind_;
  const Moment moment_;
};

// A run directory as the killed lead left it.
void prepare(SimMachine& machine, const Kind& kind, KilledFleet::Moment moment) {
  put_data(machine.disk, kind);
  KilledFleet killed(machine, kind, moment);
  const auto done = train(machine.host(), kind, killed);
  ASSERT_FALSE(done.ok());
  ASSERT_EQ(done.error().what, "killed");
}

Result<TrainResult> resume(const run::NodeHost& host, const Kind& kind) {
  // No such program can be started.
  node::CoordinatorOptions lead;
  lead.listen = {.host = "127.0.0.1", .port = 0};
  std::optional<OwnNodes> own;
  if (kind.own) own = {.nodes = kNodes, .program = "/none"};
  // What leads members from anywhere goes as far as this, and no farther: nobody would come.
  const auto leads = [](const host::Endpoint&, const std::string&) -> Result<void> {
    return Error{.kind = ErrorKind::kFailed, .what = kLeads};
  };
  LeadRunner runner(host, {.lead = std::move(lead), .leads = leads, .own = std::move(own)});
  return train(host, kind, runner);
}

std::map<std::string, std::string> model_in(host::Disk& disk) {
  std::map<std::string, std::string> files;
  const std::string model = std::string(kRun) + "/model";
  const auto names = disk.list(model);
  EXPECT_TRUE(names.ok()) << names.error().message();
  if (!names.ok()) return files;
  for (const std::string& name : *names) files[name] = *host::read_text(disk, model + "/" + name);
  return files;
}

std::uint64_t used_bytes(host::Disk& disk, const std::string& directory) {
  std::uint64_t bytes = 0;
  const auto names = disk.list(directory.empty() ? "/" : directory);
  EXPECT_TRUE(names.ok());
  if (!names.ok()) return 0;
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    const auto size = disk.file_size(path);
    bytes += size.ok() ? *size : used_bytes(disk, path);
  }
  return bytes;
}

// After kill -9 or a loss of power at any operation of the disk after the last step, --resume finishes the
// run with the same model, and no node takes a step again. Parts and checkpoint are there until the run is
// finished.
TEST(LeadRunner, KilledAtEveryDiskOperationAfterTheLastStep) {
  for (const Kind& kind :
       {Kind(), Kind{.checkpoints = false}, Kind{.instances = false}, Kind{.own = false}}) {
    SimMachine rehearsal;
    prepare(rehearsal, kind, KilledFleet::Moment::kDelivered);
    rehearsal.disk.restart_count({});
    const auto undisturbed = resume(rehearsal.host(), kind);
    ASSERT_TRUE(undisturbed.ok()) << undisturbed.error().message();
    EXPECT_EQ(nlohmann::json::parse(undisturbed->summary)["steps"], kSteps);
    EXPECT_EQ(nlohmann::json::parse(undisturbed->summary)["nodes"], kNodes);
    EXPECT_FALSE(*rehearsal.disk.exists(run::RunPaths(kRun).parts()));
    const auto expected = model_in(rehearsal.disk);
    const std::uint64_t operations = rehearsal.disk.operations();
    for (std::uint64_t k = 0; k < operations; ++k) {
      SCOPED_TRACE(::testing::Message() << k << (kind.own ? " own" : "") << (kind.instances ? " whole" : "")
                                        << (kind.checkpoints ? " kept" : ""));
      SimMachine machine;
      prepare(machine, kind, KilledFleet::Moment::kDelivered);
      machine.disk.restart_count({.seed = k + 1, .crash_at_operation = k});
      static_cast<void>(resume(machine.host(), kind).ok());
      const auto left = machine.disk.after_crash();
      const auto done = resume(machine.host_with(*left), kind);
      ASSERT_TRUE(done.ok()) << done.error().message();
      ASSERT_EQ(model_in(*left), expected);
      EXPECT_EQ(nlohmann::json::parse(done->summary)["steps"], kSteps);
      EXPECT_EQ(nlohmann::json::parse(done->summary)["metrics"],
                nlohmann::json::parse(undisturbed->summary)["metrics"]);
    }
  }
}

// The same where an operation of the disk fails, or all that write fail from there on, as the disk is full.
// Once there is room, --resume makes the same model without a node.
TEST(LeadRunner, ADiskThatFailsAfterTheLastStep) {
  for (const Kind& kind : {Kind{.checkpoints = false}, Kind{.own = false}}) {
    SimMachine rehearsal;
    prepare(rehearsal, kind, KilledFleet::Moment::kDelivered);
    rehearsal.disk.restart_count({});
    ASSERT_TRUE(resume(rehearsal.host(), kind).ok());
    const auto expected = model_in(rehearsal.disk);
    const std::uint64_t operations = rehearsal.disk.operations();
    std::uint64_t failed = 0;
    for (std::uint64_t k = 0; k < operations; ++k) {
      SCOPED_TRACE(::testing::Message() << k << (kind.own ? " own" : ""));
      SimMachine machine;
      prepare(machine, kind, KilledFleet::Moment::kDelivered);
      machine.disk.restart_count({.seed = k + 1, .fail_at_operation = k});
      failed += resume(machine.host(), kind).ok() ? 0 : 1;
      machine.disk.restart_count({});
      const auto done = resume(machine.host(), kind);
      ASSERT_TRUE(done.ok()) << done.error().message();
      ASSERT_EQ(model_in(machine.disk), expected);
      EXPECT_EQ(nlohmann::json::parse(done->summary)["steps"], kSteps);
    }
    EXPECT_GT(failed, 10U);
    for (std::uint64_t room = 0; room < 20; ++room) {
      SCOPED_TRACE(::testing::Message() << room << " kB of room" << (kind.own ? " own" : ""));
      SimMachine machine;
      prepare(machine, kind, KilledFleet::Moment::kDelivered);
      machine.disk.restart_count(
          {.seed = room + 1, .capacity_bytes = used_bytes(machine.disk, "") + room * 2048});
      static_cast<void>(resume(machine.host(), kind).ok());
      machine.disk.restart_count({});
      const auto done = resume(machine.host(), kind);
      ASSERT_TRUE(done.ok()) << done.error().message();
      ASSERT_EQ(model_in(machine.disk), expected);
    }
  }
}

// What an earlier process has measured with its members is not measured again.
TEST(LeadRunner, WhatWasMeasuredStays) {
  SimMachine machine;
  const Kind kind{.instances = false};
  prepare(machine, kind, KilledFleet::Moment::kDelivered);
  const Measured measured{.metrics_json = R"({"P@1":12.5})", .text = "the figures", .seconds = 3};
  ASSERT_TRUE(save_measured(machine.disk, run::RunPaths(kRun).parts(), StepNumber(kSteps), measured).ok());
  const auto done = resume(machine.host(), kind);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(nlohmann::json::parse(done->summary)["metrics"].dump(), measured.metrics_json);
  EXPECT_EQ(nlohmann::json::parse(done->summary)["eval_seconds"], 3);
  EXPECT_TRUE(machine.said("the figures"));
}

// The model is made of the parts that were measured, not of those of a member that was lost before. That
// holds for a later process, too.
TEST(LeadRunner, TheModelIsTheOneThatWasMeasured) {
  const Kind kind{.instances = false};
  SimMachine undisturbed;
  prepare(undisturbed, kind, KilledFleet::Moment::kDelivered);
  ASSERT_TRUE(resume(undisturbed.host(), kind).ok());
  SimMachine machine;
  prepare(machine, kind, KilledFleet::Moment::kMeasured);
  const auto done = resume(machine.host(), kind);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(nlohmann::json::parse(done->summary)["metrics"].dump(), R"({"P@1":12.5})");
  EXPECT_EQ(model_in(machine.disk), model_in(undisturbed.disk));
}

// A trained network can be used by a command with another number of nodes: the lead's file says how it was
// cut.
TEST(LeadRunner, AnotherNumberOfNodesTakesTheParts) {
  SimMachine machine;
  Kind kind{.checkpoints = false, .labels = 1024};
  ASSERT_NE(fleet_shard_shift(kind.labels, kNodes), fleet_shard_shift(kind.labels, 16));
  prepare(machine, kind, KilledFleet::Moment::kDelivered);
  kind.own = false;
  const auto done = resume(machine.host(), kind);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(nlohmann::json::parse(done->summary)["steps"], kSteps);
}

// A new fleet takes the place of one that has ended, and the authority of the run stays. Until the store
// knows the new fleet, the run counts as ended: a crash at any operation leaves one that begins anew once
// more, from the same step. (Here no store can be opened, so that moment does not come.)
TEST(LeadRunner, AFleetThatHasNotBegunBeginsOnceMore) {
  const Kind kind{.own = false};
  const std::string directory = node::lead_directory(kRun);
  const std::string authority = node::credentials_directory(directory) + "/authority-key.pem";
  bool begun = false;
  for (std::uint64_t k = 0; !begun; ++k) {
    SCOPED_TRACE(k);
    SimMachine machine;
    prepare(machine, kind, KilledFleet::Moment::kHalfway);
    const std::string key = *host::read_text(machine.disk, authority);
    machine.disk.restart_count({.seed = k + 1, .crash_at_operation = k});
    const auto stopped = resume(machine.host(), kind);
    ASSERT_FALSE(stopped.ok());
    begun = machine.disk.operations() <= k;
    if (begun) {
      EXPECT_THAT(stopped.error().message(), HasSubstr(kLeads));
    }
    const auto left = machine.disk.after_crash();
    ASSERT_TRUE(*left->exists(std::string(kRun) + "/nodes/ended"));
    const auto again = resume(machine.host_with(*left), kind);
    ASSERT_FALSE(again.ok());
    EXPECT_THAT(again.error().message(), HasSubstr(kLeads));
    EXPECT_EQ(run::read_lead_file(*left, directory)->start, StepNumber(4));
    EXPECT_EQ(*host::read_text(*left, authority), key);
  }
}

// Machines have certificates of a run that was led for them. Own nodes would end these, so the command says
// how the run is led on, and nothing has changed.
TEST(LeadRunner, OwnNodesEndNoAuthority) {
  SimMachine machine;
  Kind kind{.own = false};
  prepare(machine, kind, KilledFleet::Moment::kHalfway);
  const std::string authority =
      node::credentials_directory(node::lead_directory(kRun)) + "/authority-key.pem";
  const std::string key = *host::read_text(machine.disk, authority);
  kind.own = true;
  const auto refused = resume(machine.host(), kind);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message(), HasSubstr("gossamer coordinator --resume --out /simulated/run"));
  EXPECT_EQ(*host::read_text(machine.disk, authority), key);
  kind.own = false;
  const auto led = resume(machine.host(), kind);
  ASSERT_FALSE(led.ok());
  EXPECT_THAT(led.error().message(), HasSubstr(kLeads));
}

// A fleet of an older version has its keys and its start in two files. It can be led on all the same.
TEST(LeadRunner, ReadsAnOlderVersionsFleet) {
  SimMachine machine;
  const Kind kind{.own = false};
  prepare(machine, kind, KilledFleet::Moment::kHalfway);
  const std::string directory = node::lead_directory(kRun);
  ASSERT_TRUE(machine.disk.remove_all(std::string(kRun) + "/nodes/ended").ok());
  ASSERT_TRUE(machine.disk.remove_all(run::lead_file_path(directory)).ok());
  write(machine.disk, directory + "/run.toml",
        "engine = \"sparse\"\nfirst = 2\nstore = \"\"\nstandby = \"\"\n");
  write(machine.disk, std::string(kRun) + "/nodes/start", "four\n");
  const auto unreadable = resume(machine.host(), kind);
  ASSERT_FALSE(unreadable.ok());
  EXPECT_EQ(unreadable.error().kind, ErrorKind::kBadData);
  write(machine.disk, std::string(kRun) + "/nodes/start", "4\n");
  const auto led = resume(machine.host(), kind);
  ASSERT_FALSE(led.ok());
  EXPECT_THAT(led.error().message(), HasSubstr(kLeads));
  EXPECT_TRUE(*machine.disk.exists(std::string(kRun) + "/nodes/start")) << "the fleet is not another one";
}

// A fleet of another engine is not led on, and no fleet takes its place.
TEST(LeadRunner, RefusesAFleetOfAnotherEngine) {
  for (const bool own : {true, false}) {
    SimMachine machine;
    const Kind kind{.own = own};
    prepare(machine, kind, KilledFleet::Moment::kHalfway);
    const std::string path = run::lead_file_path(node::lead_directory(kRun));
    write(machine.disk, path, "engine = \"toy\"\nfirst = 2\n");
    const auto led = resume(machine.host(), kind);
    ASSERT_FALSE(led.ok());
    EXPECT_EQ(led.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(led.error().where, path);
    EXPECT_EQ(led.error().what, "the run in this directory is of engine 'toy'");
    EXPECT_TRUE(*machine.disk.exists(path));
  }
}

// Own members take memory of this machine, and members elsewhere none.
TEST(LeadRunner, OwnMembersTakeMemory) {
  SimMachine machine;
  const sparse_engine::DataShape shape{
      .records = 100, .features = 40, .labels = 24, .feature_entries = 200, .label_entries = 100};
  const sparse_engine::Recipe recipe{.hidden = 32, .steps = kSteps};
  const run::NodeHost host = machine.host();
  const auto needed = [&](std::optional<OwnNodes> own) {
    const LeadRunner runner(host, {.lead = {}, .own = std::move(own)});
    return runner.memory_needed(config_of({}), recipe, shape);
  };
  EXPECT_EQ(needed(std::nullopt), 0U);
  EXPECT_GT(needed(OwnNodes{.nodes = 1}), 0U);
  EXPECT_GT(needed(OwnNodes{.nodes = 3}), needed(OwnNodes{.nodes = 2}));
}

}  // namespace
}  // namespace gossamer::commands
