// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/member_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "commands/run/member_report.h"
#include "commands/train/sparse_training.h"
#include "commands/train_fleet/fleet_data.h"
#include "commands/train_fleet/part_file.h"
#include "commands/train_fleet/test_fleet_run.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/model/model_file.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;
using ::testing::HasSubstr;
using testing::train_alone;

sparse_engine::TrainConfig tiny_config() {
  sparse_engine::TrainConfig config;
  config.data.train = "/train";
  config.model.hidden = 16;
  config.train.batch = 8;
  config.train.steps = 30;
  config.train.warmup_steps = 1;
  config.train.input_dropout = 0.2;
  config.text.min_df = 1;
  return config;
}

std::string sentences() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i % 3);
    text += i % 2 == 0 ? "the deer" + n + " eats green grass\n" : "the owl" + n + " hunts small mice\n";
  }
  return text;
}

std::string records_of_text() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += "{\"text\": \"" + std::string(i % 2 == 0 ? "deer meat" : "owl call") + " number " +
            std::to_string(i % 5) + "\", \"labels\": [" + std::to_string(i % 2) + "]}\n";
  }
  return text;
}

// Trains in this process, and keeps what a lead knows of the run.
class KeepingRunner final : public testing::TestRunner {
 public:
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths& paths,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const engine::TrainHooks& hooks) override {
    kept = testing::fleet_run(paths, inputs);
    return sparse_engine::train(inputs, hooks);
  }

  FleetRun kept;
};

// A run of one process in /run, and what a coordinator and a member make of its directory.
struct Prepared {
  Prepared(const std::string& data, const sparse_engine::TrainConfig& config) {
    write(machine.disk, "/train", data);
    const auto stop = [] { return false; };
    const auto done = run_training(machine.host(), {.directory = "/run",
                                                    .resume = run::Continue::kNo,
                                                    .config = config,
                                                    .settings = {},
                                                    .stop_requested = stop,
                                                    .runner = &runner});
    EXPECT_TRUE(done.ok()) << done.error().message();
    auto prepared = prepare_lead(machine.disk, runner.kept, {.members = 4, .one_machine = true});
    EXPECT_TRUE(prepared.ok()) << prepared.error().message();
    if (prepared.ok()) lead = *std::move(prepared);
  }
  Result<std::shared_ptr<const sparse_engine::FleetJob>> job() {
    return make_member_job(host, fleet_configuration_bytes(lead.configuration), supplied(), NodeId(7));
  }
  // What a member has of the coordinator's files.
  [[nodiscard]] node::Supplied supplied() {
    return {.supply = lead.supply, .elsewhere = elsewhere, .tell = [this](std::string report) {
              told.push_back(std::move(report));
            }};
  }

  SimMachine machine;
  const run::NodeHost host = machine.host();
  KeepingRunner runner;
  FleetLead lead;
  bool elsewhere = false;
  std::vector<std::string> told;  // reports
};

// The length of the difference, divided by the length.
double distance(std::span<const float> got, std::span<const float> want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0;
  double length = 0;
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    length += want[i] * want[i];
  }
  return std::sqrt(difference / length);
}

// Output rows in another order give the same except for rounding. A single shard gives the same bits.
void expect_same_job(const std::string& data, const sparse_engine::TrainConfig& config) {
  Prepared prepared(data, config);
  const auto job = prepared.job();
  ASSERT_TRUE(job.ok()) << job.error().message();
  EXPECT_EQ((*job)->shape.shards(), prepared.lead.shape.shards());
  sparse::Network network = train_alone(**job);
  const auto model = sparse_engine::load_model(prepared.machine.disk, "/run/model");
  ASSERT_TRUE(model.ok()) << model.error().message();
  const sparse::Network& want = model->network;
  const double most = (*job)->order.identity() ? 0 : 1e-5;
  network.drop_moments();
  sparse::order_by_label(network);
  EXPECT_LE(distance(network.embedding.all_weights(), want.embedding.all_weights()), most);
  EXPECT_LE(distance(network.output.all_weights(), want.output.all_weights()), most);
}

// A member trains from the coordinator's bytes what one process trains: samples, weighting, initial
// weights, schedule, dropout, negatives.
TEST(MemberJob, IsThatOfOneProcess) {
  expect_same_job(two_classes(40), tiny_config());
  sparse_engine::TrainConfig config = tiny_config();
  config.train.negatives = sparse::Negatives::kUniform;
  config.train.sampled = 1;
  config.predict.held_out = 16;
  expect_same_job(two_classes(64), config);
  expect_same_job(records_of_text(), tiny_config());
}

// A member trains the same on a plain text too, with windows as samples.
TEST(MemberJob, TrainsWordsAlike) {
  sparse_engine::TrainConfig config = tiny_config();
  config.data.format = data::RecordFormat::kText;
  config.model.activation = kernels::Activation::kIdentity;
  config.model.dropout = 0;
  config.train.input_dropout = 0;
  config.word2vec = {.window = 2, .sample = 0, .min_count = 1};
  config.predict.instances = false;
  expect_same_job(sentences(), config);
}

// The user's keys of the fleet come to members and to the coordinator.
TEST(MemberJob, DoesAsTheKeysSay) {
  sparse_engine::TrainConfig config = tiny_config();
  const Prepared usual(two_classes(40), config);
  EXPECT_EQ(usual.lead.workload.copies, 1U);
  config.cluster = {.codec = net::Codec::kInt8,
                    .exchange = sparse_engine::ExchangeKind::kDslide,
                    .snapshot_every = 7,
                    .copies = 3};
  Prepared prepared(two_classes(40), config);
  EXPECT_EQ(prepared.lead.workload.copies, 3U);
  EXPECT_GT(prepared.lead.workload.shard_bytes, usual.lead.workload.shard_bytes);
  const auto job = prepared.job();
  ASSERT_TRUE(job.ok()) << job.error().message();
  EXPECT_EQ(name((*job)->codec), "int8");
  EXPECT_EQ((*job)->exchange, sparse_engine::ExchangeKind::kDslide);
  EXPECT_EQ((*job)->snapshot_every, 7U);
}

// A member delivers under its own name, and tells of its steps.
TEST(MemberJob, DeliversAndReports) {
  Prepared prepared(two_classes(40), tiny_config());
  const auto job = prepared.job();
  ASSERT_TRUE(job.ok()) << job.error().message();
  (*job)->stepped(
      {.epoch = Epoch(1), .step = StepNumber(0), .rank = 0, .members = 1, .loss = 0.5, .sent = {}});
  sparse::Network network = train_alone(**job);
  network.part = sparse_engine::with_shards(sparse_engine::no_part((*job)->shape), (*job)->shape, {0, 1});
  network.part.columns = {0, 32};
  ASSERT_TRUE((*job)->deliver(network).ok());
  EXPECT_THAT(*prepared.machine.disk.list("/run/nodes/parts"), ::testing::ElementsAre("part-7-30"));
  ASSERT_EQ(prepared.told.size(), 1U);
  const auto report = read_report(prepared.told.front());
  ASSERT_TRUE(report.ok() && *report);
  EXPECT_EQ(std::get<engine::MemberStep>(**report).loss, 0.5);
}

// A job goes on from what another member saved. A job that begins with that step
// has its state, in whatever part.
TEST(MemberJob, GoesOnFromACheckpoint) {
  Prepared prepared(two_classes(40), tiny_config());
  EXPECT_EQ(prepared.lead.workload.start, StepNumber());
  const auto job = prepared.job();
  ASSERT_TRUE(job.ok()) << job.error().message();
  EXPECT_FALSE((*job)->restore);
  sparse::Network trained = train_alone(**job);
  (*job)->checkpoints.save(StepNumber(20), trained);
  (*job)->checkpoints.finish();
  auto later = prepare_lead(prepared.machine.disk, prepared.runner.kept,
                            {.members = 2, .one_machine = true, .start = StepNumber(20)});
  ASSERT_TRUE(later.ok()) << later.error().message();
  EXPECT_EQ(later->workload.start, StepNumber(20));
  EXPECT_EQ(later->configuration.run, prepared.lead.configuration.run);
  const auto goes_on = make_member_job(prepared.host, fleet_configuration_bytes(later->configuration),
                                       {.supply = later->supply}, NodeId(9));
  ASSERT_TRUE(goes_on.ok()) << goes_on.error().message();
  EXPECT_EQ((*goes_on)->start, StepNumber(20));
  auto network = sparse_engine::starting_network(
      **goes_on, sparse::whole(trained.shape, later->configuration.shard_shift));
  ASSERT_TRUE(network.ok()) << network.error().message();
  EXPECT_EQ(distance((*network)->output.all_weights(), trained.output.all_weights()), 0);
  EXPECT_EQ(distance((*network)->embedding.all_moment2(), trained.embedding.all_moment2()), 0);
  // A step that was not saved gives nothing, and the error says so.
  later->configuration.start = StepNumber(21);
  const auto nowhere = make_member_job(prepared.host, fleet_configuration_bytes(later->configuration),
                                       {.supply = later->supply}, NodeId(9));
  ASSERT_TRUE(nowhere.ok());
  const auto nothing = sparse_engine::starting_network(**nowhere, sparse::whole(trained.shape));
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().message(), HasSubstr("step 21"));
}

// Members elsewhere are told of every file of the data by content. With copies of these files alone, under a
// directory of their own, they train the same.
TEST(MemberJob, DataMayLieElsewhere) {
  for (const std::string& data : {two_classes(40), records_of_text()}) {
    Prepared prepared(data, tiny_config());
    host::Disk& disk = prepared.machine.disk;
    node::Supply& supply = prepared.lead.supply;
    EXPECT_EQ(supply.deliver, "/run/nodes/parts");
    ASSERT_FALSE(supply.files.empty());
    ASSERT_TRUE(disk.make_directories("/own/data").ok());
    for (const node::Supply::File& file : supply.files) {
      const node::StoredPlace place = supply.place_of(file);
      EXPECT_TRUE(node::find_stored(disk, place, file.manifest));
      const auto bytes = host::read_text(disk, place.path);
      ASSERT_TRUE(bytes.ok());
      EXPECT_EQ(file.bytes, bytes->size());
      write(disk, "/own/data/" + file.name, *bytes);
    }
    ASSERT_TRUE(disk.remove_all("/run/cache").ok());
    supply.directory = "/own/data";
    supply.deliver = "/own/deliver";
    prepared.elsewhere = true;
    const auto job = prepared.job();
    ASSERT_TRUE(job.ok()) << job.error().message();
    EXPECT_TRUE((*job)->checkpoints.lasts);
    // Members that ask for checkpoints by time must not be blamed for it.
    EXPECT_EQ((*job)->checkpoints.every, from_seconds(60 * tiny_config().checkpoint.every_minutes));
    EXPECT_GT((*job)->checkpoints.every.ns, 0);
  }
}

// A member elsewhere has delivered its part of the result for good once the coordinator has the file: not
// while it lies where the delivery looks for it, nor on its way. So it is in a run without checkpoints.
TEST(MemberJob, DeliveredPartLastsOnceBrought) {
  for (const bool checkpoints : {true, false}) {
    Prepared prepared(two_classes(40), tiny_config());
    host::Disk& disk = prepared.machine.disk;
    for (const char* const made : {"/own/deliver", "/own/deliver/outgoing"})
      ASSERT_TRUE(disk.make_directories(made).ok());
    prepared.lead.supply.deliver = "/own/deliver";
    prepared.elsewhere = true;
    if (!checkpoints) prepared.lead.configuration.checkpoints.clear();
    const auto job = prepared.job();
    ASSERT_TRUE(job.ok()) << job.error().message();
    const auto& lasts = (*job)->checkpoints.lasts;
    ASSERT_TRUE(lasts);
    EXPECT_TRUE(lasts());
    sparse::Network network = train_alone(**job);
    ASSERT_TRUE((*job)->deliver(network).ok());
    const std::string name = part_name({.node = NodeId(7), .step = StepNumber(30)});
    EXPECT_FALSE(lasts()) << "it lies there";
    ASSERT_TRUE(disk.rename("/own/deliver/" + name, "/own/deliver/outgoing/1-" + name).ok());
    EXPECT_FALSE(lasts()) << "it is on its way";
    ASSERT_TRUE(disk.remove_all("/own/deliver/outgoing/1-" + name).ok());
    EXPECT_TRUE(lasts());
  }
}

// A member elsewhere goes on from a checkpoint whose files were supplied, and delivers its own.
TEST(MemberJob, CheckpointsComeAndGo) {
  Prepared prepared(two_classes(40), tiny_config());
  host::Disk& disk = prepared.machine.disk;
  sparse::Network trained = [&] {
    const auto job = prepared.job();
    EXPECT_TRUE(job.ok()) << job.error().message();
    EXPECT_FALSE((*job)->checkpoints.lasts);
    sparse::Network network = train_alone(**job);
    (*job)->checkpoints.save(StepNumber(20), network);
    (*job)->checkpoints.finish();
    return network;
  }();
  const std::size_t data_files = prepared.lead.supply.files.size();
  auto later = prepare_lead(disk, prepared.runner.kept, {.members = 2, .start = StepNumber(20)});
  ASSERT_TRUE(later.ok()) << later.error().message();
  ASSERT_EQ(later->supply.files.size(), data_files + 1);
  for (const char* const made : {"/own/data", "/own/deliver"}) ASSERT_TRUE(disk.make_directories(made).ok());
  for (node::Supply::File& file : later->supply.files) {
    const auto bytes = host::read_text(disk, later->supply.place_of(file).path);
    ASSERT_TRUE(bytes.ok());
    write(disk, "/own/data/" + file.name, *bytes);
  }
  for (node::Supply::File& file : later->supply.files) file.path.clear();
  later->supply.directory = "/own/data";
  later->supply.deliver = "/own/deliver";
  ASSERT_TRUE(disk.remove_all("/run/checkpoints").ok());
  const auto goes_on = make_member_job(prepared.host, fleet_configuration_bytes(later->configuration),
                                       {.supply = later->supply, .elsewhere = true}, NodeId(9));
  ASSERT_TRUE(goes_on.ok()) << goes_on.error().message();
  auto network = sparse_engine::starting_network(
      **goes_on, sparse::whole(trained.shape, later->configuration.shard_shift));
  ASSERT_TRUE(network.ok()) << network.error().message();
  EXPECT_EQ(distance((*network)->output.all_weights(), trained.output.all_weights()), 0);
  (*goes_on)->checkpoints.save(StepNumber(25), **network);
  (*goes_on)->checkpoints.finish();
  EXPECT_THAT(*disk.list("/own/deliver"), ::testing::Contains(HasSubstr("step-000000000025.9")));
}

// The records of an imported directory, which a run does not copy, are among the data.
// Nothing is written beside them.
TEST(MemberJob, RecordsOfAnImportedDirectory) {
  Prepared prepared(two_classes(40), tiny_config());
  host::Disk& disk = prepared.machine.disk;
  const CachePlace place{.directory = "/other/cache", .records = "/run/cache/train.cache"};
  node::Supply supply{.directory = "", .deliver = "/run/nodes/parts"};
  ASSERT_TRUE(add_data(disk, supply, place).ok());
  ASSERT_EQ(supply.files.size(), 1U);
  EXPECT_EQ(supply.files[0].name, "records");
  EXPECT_EQ(supply.place_of(supply.files[0]).path, place.records);
  EXPECT_THAT(*disk.list("/other/cache"), ::testing::ElementsAre("records.manifest"));
  const CachePlace found = cache_of(supply);
  EXPECT_EQ(found.directory, place.directory);
  EXPECT_EQ(found.records, place.records);
}

// Data that are not those of the coordinator train nothing. A directory without data leads no run.
TEST(MemberJob, RefusesOtherData) {
  Prepared prepared(two_classes(40), tiny_config());
  prepared.lead.configuration.labels = 3;
  const auto job = prepared.job();
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().kind, ErrorKind::kBadData);
  EXPECT_THAT(job.error().expected, HasSubstr("3 labels"));
  ASSERT_TRUE(prepared.machine.disk.remove_all("/run/cache").ok());
  EXPECT_EQ(prepared.job().error().kind, ErrorKind::kUsage);
  const auto none = prepare_lead(prepared.machine.disk, prepared.runner.kept, {.members = 4});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace gossamer::commands
