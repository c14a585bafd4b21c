// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_lead.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>

#include "cluster/control/records.h"
#include "engines/run/lockstep_workload.h"
#include "host/api/durable_directories.h"
#include "host/posix/clock.h"
#include "host/posix/sqlite_store.h"
#include "node/places.h"
#include "run/test_machine.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {
namespace {

// A run of 20 steps. A checkpoint is whole once it has node 1's file.
class LedRun final : public LedTraining {
 public:
  LedRun(host::Disk& disk, std::string checkpoints) : disk_(disk), checkpoints_(std::move(checkpoints)) {}
  [[nodiscard]] Facts led_facts() const override {
    return {.run_id = "r", .fingerprint = "f", .steps = 20, .checkpoints = 3};
  }
  [[nodiscard]] Result<Start> find_start(EventSink) override {
    looks_for_start();
    const auto files = tensors::list_fleet_files(disk_, checkpoints_);
    if (!files.ok()) return files.error();
    Start start;
    for (const auto& [step, names] : *files) {
      if (checkpoint(step)) start.from.next_step = step;
    }
    return start;
  }
  [[nodiscard]] Result<DoneSteps> take_trained(const engine::TrainHooks&) override { return DoneSteps(); }
  [[nodiscard]] std::optional<tensors::CheckpointInfo> checkpoint(StepNumber step) const override {
    const auto there =
        disk_.exists(checkpoints_ + "/" + tensors::fleet_file_name({.step = step, .node = NodeId(1)}));
    if (!there.ok() || !*there) return std::nullopt;
    const auto files =
        tensors::open_fleet_files(disk_, checkpoints_, "f", step, [](std::string_view, EventFields) {});
    return files.ok() && files->has_value() ? std::optional((*files)->info) : std::nullopt;
  }
  [[nodiscard]] Result<Led> lead(const FleetWanted& wanted) override {
    auto workload = std::make_unique<engine::LockstepWorkload>(
        engine::LockstepWorkload::Options{.start = wanted.start, .steps = 20});
    auto tracks = workload->tracks();
    return Led{.workload = std::move(workload), .tracks = std::move(tracks), .configuration = {}};
  }
  [[nodiscard]] std::optional<DeliveredFile> read_delivered(std::string_view) const override { return {}; }
  [[nodiscard]] Result<void> check_delivered(const std::string&, const DeliveredFile&,
                                             std::span<const Owned>) const override {
    return {};
  }
  [[nodiscard]] Result<bool> delivered(std::size_t) override {
    if (const auto why = fails()) return *why;
    return false;
  }
  [[nodiscard]] std::size_t parts() const override { return 0; }
  [[nodiscard]] Result<void> take_delivered() override { return {}; }

  // Called before it looks for the checkpoint that a fleet begins with.
  std::function<void()> looks_for_start = [] {};
  // Called now and then while it leads: why the run is to end.
  std::function<std::optional<Error>()> fails = [] { return std::nullopt; };

 private:
  host::Disk& disk_;
  const std::string checkpoints_;
};

// A run that nobody has joined, with its directory on a simulated disk and its store in a file. Checkpoints
// appear as if members had brought them. A fleet that has not begun is given up for a newer one.
class RunLeadTest : public ::testing::Test {
 protected:
  RunLeadTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    for (const std::string& directory : {paths_.checkpoints(), std::string("/state")})
      EXPECT_TRUE(host::make_durable_directories(*disk_, directory).ok());
  }
  ~RunLeadTest() override {
    std::filesystem::remove_all(root_);
    std::filesystem::remove_all(root_ + ".kept");
  }
  RunLeadTest(const RunLeadTest&) = delete;
  RunLeadTest& operator=(const RunLeadTest&) = delete;

  // Puts the run back to where it was when this was called.
  [[nodiscard]] std::function<void()> back_to_here() {
    const std::shared_ptr<host::SimDisk> kept = disk_->after_crash();
    std::filesystem::copy(root_, root_ + ".kept", std::filesystem::copy_options::recursive);
    return [this, kept] {
      disk_ = kept->after_crash();
      std::filesystem::remove_all(root_);
      std::filesystem::copy(root_ + ".kept", root_, std::filesystem::copy_options::recursive);
      told_.clear();
    };
  }
  // A file of a checkpoint, where members put or deliver it.
  [[nodiscard]] std::string file_path(std::uint64_t step, const std::string& directory,
                                      std::uint64_t node) const {
    return directory + "/" + tensors::fleet_file_name({.step = StepNumber(step), .node = NodeId(node)});
  }
  void put_checkpoint(std::uint64_t step, const std::string& directory, std::uint64_t node = 1) {
    std::array<std::byte, 4> bytes{};
    const tensors::CheckpointInfo info{
        .next_step = StepNumber(step), .run_id = "r", .config_fingerprint = "f", .workers = 1};
    const std::array<tensors::NamedTensor, 1> section{tensors::NamedTensor{"a", bytes}};
    ASSERT_TRUE(tensors::write_fleet_file(*disk_, directory, NodeId(node), info, section).ok());
  }
  // What happens while a process leads.
  struct Life {
    std::function<bool()> stop = [] { return true; };
    std::function<void()> looks_for_start = [] {};
    std::function<std::optional<Error>()> fails = [] { return std::nullopt; };
  };
  Result<DoneSteps> lead(const Life& life) {
    node::CoordinatorOptions options;
    options.state = "/state";
    options.listen = {.host = "127.0.0.1", .port = 0};
    options.store = "sqlite:" + root_ + "/store";
    options.report.log.level = node::LogLevel::kError;
    options.first_members = options.file.first = 2;
    const auto leads = [](const host::Endpoint&, const std::string&) { return Result<void>(); };
    const run::NodeHost host = machine_.host_with(*disk_);
    const run::NodeHost real{.disk = host.disk,
                             .clock = clock_,
                             .compute = host.compute,
                             .kernels = host.kernels,
                             .console = host.console};
    RunLead lead(real, "led", {.lead = std::move(options), .leads = leads});
    LedRun training(*disk_, paths_.checkpoints());
    training.looks_for_start = life.looks_for_start;
    training.fails = life.fails;
    const std::function<void(const engine::TrainProgress&)> no_step = [](const auto&) {};
    const std::function<void(std::string_view, EventFields)> note =
        [this](std::string_view event, EventFields) { told_.emplace_back(event); };
    return lead.train(paths_, training, {.on_step = no_step, .stop_requested = life.stop, .events = note});
  }
  [[nodiscard]] std::ptrdiff_t told(std::string_view event) const { return std::ranges::count(told_, event); }
  [[nodiscard]] bool ended() const {
    const auto there = disk_->exists(paths_.root + "/nodes/ended");
    return there.ok() && *there;
  }
  [[nodiscard]] run::LeadFile lead_file() const {
    auto file = run::read_lead_file(*disk_, node::lead_directory(paths_.root));
    return file.ok() ? *std::move(file) : run::LeadFile();
  }
  [[nodiscard]] StepNumber start() const { return lead_file().start.value_or(StepNumber()); }
  // All steps before it are done, by the store.
  [[nodiscard]] StepNumber committed() const {
    host::SqliteStore store(root_ + "/store");
    const auto generation = store.campaign({.name = "test", .address = ""});
    EXPECT_TRUE(generation.ok() && generation->has_value());
    const auto entries = store.load();
    if (!entries.ok()) return StepNumber();
    const auto records = cluster::read_records(*entries);
    EXPECT_TRUE(records.ok());
    return records.ok() ? records->marks.committed : StepNumber();
  }
  // Stops as soon as this process leads a fleet, or so many: the store has it.
  [[nodiscard]] std::function<bool()> once_it_leads(std::size_t fleets = 1) {
    const std::string path = node::lead_directory(paths_.root) + "/events.jsonl";
    const auto leads = [this, path] {
      const auto text = host::read_text(*disk_, path);
      std::size_t count = 0;
      for (std::size_t at = text.ok() ? text->find("\"leads\"") : std::string::npos; at != std::string::npos;
           at = text->find("\"leads\"", at + 1))
        ++count;
      return count;
    };
    return [leads, fleets, before = leads()] { return leads() >= before + fleets; };
  }

  const std::string root_ = ::testing::TempDir() + "run_lead_" + std::to_string(getpid());
  const run::RunPaths paths_{"/runs/led"};
  const host::PosixClock clock_;
  run::testing::SimMachine machine_;  // but for its disk and clock
  std::unique_ptr<host::SimDisk> disk_ = std::make_unique<host::SimDisk>();
  std::vector<std::string> told_;
};

// A fleet was given up for a newer checkpoint, and the process ends before the store has the next fleet. The
// run does not go on with the fleet in the store, whose members would begin with another step than it says.
// The next process begins another one.
TEST_F(RunLeadTest, AFleetThatWasGivenUpIsNotLedOn) {
  bool put = false;
  const auto given_up = [&] {
    if (!std::exchange(put, true)) put_checkpoint(4, paths_.checkpoints());
    return told("waits_for_members") > 0;
  };
  const auto stopped = lead({.stop = given_up});
  ASSERT_TRUE(stopped.ok()) << stopped.error().message();
  EXPECT_FALSE(stopped->all);
  EXPECT_EQ(start(), StepNumber(4));
  EXPECT_EQ(committed(), StepNumber(0));
  EXPECT_TRUE(ended());
  const auto again = lead({.stop = once_it_leads()});
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(start(), StepNumber(4));
  EXPECT_EQ(committed(), StepNumber(4));
  EXPECT_FALSE(ended());
}

// A process that leads two fleets, one after the other, leaves the second one to the next process. A run
// whose members are gone goes on with any machine, so the next process waits for one member, too.
TEST_F(RunLeadTest, TheSecondFleetOfAProcessIsLedOn) {
  ASSERT_TRUE(lead({.stop = once_it_leads()}).ok());
  EXPECT_EQ(lead_file().first, 2U);
  bool put = false;
  const auto second = [&, leads = once_it_leads(2)] {
    if (!std::exchange(put, true)) put_checkpoint(4, paths_.checkpoints());
    return leads();
  };
  ASSERT_TRUE(lead({.stop = second}).ok());
  EXPECT_EQ(told("waits_for_members"), 1);
  EXPECT_EQ(lead_file().first, 1U);
  EXPECT_EQ(committed(), StepNumber(4));
  EXPECT_FALSE(ended());
}

// The same where the process is killed, or the power fails, at any operation of the disk until the lead waits
// for its store: the lead's file and the store name one step, or the run counts as ended.
TEST_F(RunLeadTest, KilledAtEveryDiskOperationAsAFleetBeginsAnew) {
  ASSERT_TRUE(lead({.stop = once_it_leads()}).ok());
  put_checkpoint(4, paths_.checkpoints());
  const auto back = back_to_here();
  bool all = false;
  for (std::uint64_t k = 0; !all; ++k) {
    SCOPED_TRACE(k);
    back();
    bool counts = false;
    const auto looks_for_start = [&] {
      counts = true;
      disk_->restart_count({.seed = k + 1, .crash_at_operation = k});
    };
    const auto stop = [&] {
      all = counts && disk_->operations() <= k;
      return counts;
    };
    static_cast<void>(lead({.stop = stop, .looks_for_start = looks_for_start}).ok());
    disk_ = disk_->after_crash();
    EXPECT_TRUE(ended() || start() == committed()) << start().value << " and " << committed().value;
  }
  EXPECT_EQ(start(), StepNumber(4));
  EXPECT_TRUE(ended());
}

// A fleet is led on by another process. What the run had cost by its newest checkpoint counts, though the
// fleet began with an older one, and the newest one has no record of the cost yet.
TEST_F(RunLeadTest, CostsOfTheProcessBeforeCount) {
  ASSERT_TRUE(lead({.stop = once_it_leads()}).ok());
  for (const std::uint64_t step : {4U, 8U, 12U}) {
    put_checkpoint(step, paths_.checkpoints());
    const tensors::CheckpointInfo info{.next_step = StepNumber(step),
                                       .run_id = "r",
                                       .config_fingerprint = "f",
                                       .cost = {.train_seconds = 10.0 * static_cast<double>(step)}};
    if (step == 12) continue;
    ASSERT_TRUE(tensors::write_run_record(*disk_, paths_.checkpoints(), info).ok());
  }
  const auto stopped = lead({});
  ASSERT_TRUE(stopped.ok()) << stopped.error().message();
  EXPECT_EQ(stopped->cost_before.train_seconds, 80);
}

// Members left while nobody led, and the fleet is given up for an older checkpoint than they have. A process
// that ends then forgets nobody: the next one waits for them, if they had anything. Once the run has ended,
// nobody waits for them.
TEST_F(RunLeadTest, TheNextProcessKnowsOwnersThatNobodyHeard) {
  ASSERT_TRUE(lead({.stop = once_it_leads()}).ok());
  const std::string path = node::lead_directory(paths_.root) + "/owners";
  const auto keep = [&](const wire::OwnerBook& book) {
    EXPECT_TRUE(host::replace_file(*disk_, path, book.SerializeAsString()).ok());
  };
  const auto settled = [&] {
    wire::OwnerBook read;
    EXPECT_TRUE(read.ParseFromString(*host::read_text(*disk_, path)));
    return read.settled();
  };
  wire::OwnerBook book;
  wire::OwnerBook::Owner& owner = *book.add_installs()->add_owners();
  owner.set_node(7);
  owner.add_things(0);
  keep(book);
  bool put = false;
  const auto given_up = [&] {
    if (!std::exchange(put, true)) put_checkpoint(4, paths_.checkpoints());
    return told("waits_for_members") > 0;
  };
  ASSERT_TRUE(lead({.stop = given_up}).ok());
  EXPECT_TRUE(ended());
  EXPECT_FALSE(settled());
  ASSERT_TRUE(lead({.stop = once_it_leads()}).ok());
  EXPECT_FALSE(settled());
  owner.clear_things();
  keep(book);
  ASSERT_TRUE(lead({.stop = [&] {
                if (put) put_checkpoint(8, paths_.checkpoints());
                put = false;
                return told("waits_for_members") > 1;
              }}).ok());
  EXPECT_TRUE(settled()) << "nobody had anything";
  ASSERT_TRUE(lead({.stop = once_it_leads()}).ok());
  owner.add_things(0);
  keep(book);
  const auto fails = [] { return Error{.what = "the run is to end"}; };
  EXPECT_FALSE(lead({.stop = [] { return false; }, .fails = fails}).ok());
  EXPECT_TRUE(ended());
  EXPECT_TRUE(settled());
}

// A run ends, and a file that a member has delivered a moment ago is not among the checkpoints yet. It is a
// whole checkpoint, or a piece of one. Wherever the process is killed, or the power fails: once the run
// counts as ended, the file is among them. The next fleet begins without what lies elsewhere.
TEST_F(RunLeadTest, KilledAtEveryDiskOperationAsARunEnds) {
  ASSERT_TRUE(lead({.stop = once_it_leads()}).ok());
  const auto back = back_to_here();
  for (const std::uint64_t node : {1U, 2U}) {
    const std::string delivered = file_path(4, paths_.parts(), node);
    bool all = false;
    for (std::uint64_t k = 0; !all; ++k) {
      SCOPED_TRACE(::testing::Message() << k << " of node " << node);
      back();
      bool counts = false;
      const auto fails = [&]() -> std::optional<Error> {
        put_checkpoint(4, paths_.parts(), node);
        counts = true;
        disk_->restart_count({.seed = k + 1, .crash_at_operation = k});
        return Error{.what = "the run is to end"};
      };
      EXPECT_FALSE(lead({.stop = [&] { return counts && disk_->operations() > k; }, .fails = fails}).ok());
      all = disk_->operations() <= k;
      disk_ = disk_->after_crash();
      const bool taken = *disk_->exists(file_path(4, paths_.checkpoints(), node));
      EXPECT_TRUE(taken || *disk_->exists(delivered));
      EXPECT_TRUE(taken || !ended());
    }
    EXPECT_TRUE(ended());
  }
}

}  // namespace
}  // namespace gossamer::commands
