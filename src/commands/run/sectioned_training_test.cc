// SPDX-License-Identifier: Apache-2.0
#include "commands/run/sectioned_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "commands/run/led_configuration.h"
#include "commands/run/member_files.h"
#include "engines/run/lockstep_workload.h"
#include "host/api/files.h"
#include "run/test_machine.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct NoKeys {
  std::uint64_t rows = 1;
};

const settings::KeyTable<NoKeys>& no_keys() {
  static const settings::KeyTable<NoKeys> table({.listed_by = "nobody"},
                                                {settings::key<&NoKeys::rows>("rows", {.max = 9}, "of it")});
  return table;
}

// A run of 20 steps whose state are the sections "a" and "b", four bytes each.
class TwoSections final : public SectionedTraining {
 public:
  TwoSections(const TrainingPlace& place, const std::optional<LeadOptions>& lead, std::uint64_t steps = 20)
      : SectionedTraining(place, "two", lead), steps_(steps) {}
  [[nodiscard]] settings::Values config() const override { return no_keys().defaults(); }
  [[nodiscard]] TrainingFacts facts() const override { return {.batch = 2, .samples = 40}; }
  Result<void> save() override { return {}; }
  [[nodiscard]] std::string section(const std::string& name) const {
    const auto bytes = result(name);
    return bytes.ok() ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
                      : bytes.error().message();
  }

 private:
  Result<void> load() override { return {}; }
  [[nodiscard]] Sections sections() const override {
    return {.all = {{"a", 4}, {"b", 4}}, .steps = steps_, .data = "numbers.txt", .fingerprint = "f"};
  }
  [[nodiscard]] std::optional<std::uint64_t> thing_of(const std::string& section) const override {
    return section == "a"   ? std::optional<std::uint64_t>(0)
           : section == "b" ? 1
                            : std::optional<std::uint64_t>();
  }
  Result<void> supply(node::Supply&) const override { return {}; }
  [[nodiscard]] Led workload(StepNumber start) const override {
    return {.workload =
                std::make_unique<engine::LockstepWorkload>(engine::LockstepWorkload::Options{.start = start}),
            .tracks = {},
            .configuration = {}};
  }

  const std::uint64_t steps_;
};

class SectionedTrainingTest : public ::testing::Test {
 protected:
  SectionedTrainingTest() {
    for (const std::string& directory : {paths_.checkpoints(), paths_.parts()})
      EXPECT_TRUE(machine_.disk.make_directories(directory).ok());
  }
  [[nodiscard]] TrainingPlace place() {
    return {.host = host_,
            .paths = paths_,
            .run_id = "r",
            .config = no_keys().defaults(),
            .stop_requested = never_};
  }
  // What a member of that number has, told as the lead tells it.
  MemberFiles member(std::uint64_t node, Led& led, bool elsewhere = false) {
    node::Supplied supplied{.supply = *led.supply, .elsewhere = elsewhere};
    if (elsewhere) {
      supplied.supply.directory = paths_.checkpoints();  // it got the files into a directory of its own
      supplied.supply.deliver = "/elsewhere";
    }
    MemberFiles files(machine_.disk, supplied, NodeId(node));
    EXPECT_TRUE(files.begin(*read_led_configuration(led.configuration)).ok());
    return files;
  }
  static std::array<tensors::NamedTensor, 1> section(const char* name, std::array<char, 4>& bytes) {
    return {tensors::NamedTensor{name, std::as_writable_bytes(std::span(bytes))}};
  }
  // Two members save both sections before each of these steps.
  void save_both(TwoSections& training, const std::vector<std::uint64_t>& steps) {
    auto led = training.lead({.members = 2, .one_machine = true, .start = {}});
    for (const std::uint64_t step : steps) {
      member(1, *led).save(StepNumber(step), section("a", first_));
      member(2, *led).save(StepNumber(step), section("b", second_));
    }
  }
  // Spoils the first section of a file.
  void damage(const std::string& name, const std::string& directory = "/runs/two/checkpoints") {
    const std::string path = directory + "/" + name;
    std::string bytes = *host::read_text(machine_.disk, path);
    bytes[64] = '\xff';
    ASSERT_TRUE(host::replace_file(machine_.disk, path, bytes).ok());
  }
  [[nodiscard]] std::vector<std::uint64_t> steps_there() {
    std::vector<std::uint64_t> steps;
    const auto files = tensors::list_fleet_files(machine_.disk, paths_.checkpoints());
    for (const auto& [step, names] : *files) steps.push_back(step.value);
    return steps;
  }
  [[nodiscard]] static std::string text_at_start(MemberFiles& files, const std::string& section) {
    const auto bytes = files.at_start(section, 4);
    if (!bytes.ok()) return bytes.error().message();
    return bytes->has_value() ? std::string(reinterpret_cast<const char*>((*bytes)->data()), (*bytes)->size())
                              : "none";
  }

  run::testing::SimMachine machine_;
  const run::NodeHost host_ = machine_.host();
  std::vector<std::string> told_;
  const std::function<void(std::string_view, EventFields)> note_ =
      [this](std::string_view event, EventFields) { told_.emplace_back(event); };
  const std::function<void(const engine::TrainProgress&)> no_step_ = [](const auto&) {};
  const std::function<bool()> never_ = [] { return false; };
  const run::RunPaths paths_{"/runs/two"};
  std::array<char, 4> first_{'w', 'x', 'y', 'z'};
  std::array<char, 4> second_{'1', '2', '3', '4'};
};

const auto kNobody = [](std::string_view, EventFields) {};

// A run goes on from the newest checkpoint that has all sections. Newer files, which lack one, stay: a member
// may bring it.
TEST_F(SectionedTrainingTest, BeginsWithTheNewestWholeCheckpoint) {
  TwoSections training(place(), LeadOptions());
  EXPECT_EQ(training.find_start(kNobody)->from.next_step, StepNumber(0));
  auto led = training.lead({.members = 2, .one_machine = true, .start = {}});
  ASSERT_TRUE(led.ok());
  MemberFiles one = member(1, *led);
  MemberFiles two = member(2, *led);
  for (const std::uint64_t step : {4U, 8U, 12U}) {
    one.save(StepNumber(step), section("a", first_));
    if (step < 12) two.save(StepNumber(step), section("b", second_));
  }
  EXPECT_FALSE(training.checkpoint(StepNumber(12)).has_value());
  const auto start = training.find_start(kNobody);
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->from.next_step, StepNumber(8));
  EXPECT_FALSE(start->trained);
  EXPECT_THAT(steps_there(), ElementsAre(4, 8, 12));
  auto again = training.lead({.members = 2, .one_machine = true, .start = StepNumber(8)});
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->supply->files, IsEmpty());
  MemberFiles third = member(3, *again);
  EXPECT_EQ(text_at_start(third, "b"), "1234");
  EXPECT_EQ(member(3, *again).at_start("c", 4).error().kind, ErrorKind::kBadData);
  EXPECT_FALSE(member(3, *led).at_start("b", 4)->has_value());
}

// A damaged section is no section. It is told, and the run goes on from the checkpoint before, whose sections
// are all good. A section that another file has undamaged costs nothing.
TEST_F(SectionedTrainingTest, DamagedSectionsCostOneCheckpoint) {
  TwoSections training(place(), LeadOptions());
  save_both(training, {4, 8});
  damage("step-000000000008.1.part");
  const auto start = training.find_start(note_);
  ASSERT_TRUE(start.ok()) << start.error().message();
  EXPECT_EQ(start->from.next_step, StepNumber(4));
  EXPECT_THAT(told_, ElementsAre("checkpoint_damaged"));
  EXPECT_EQ(steps_there(), (std::vector<std::uint64_t>{4}));
  auto led = training.lead({.members = 2, .one_machine = true, .start = StepNumber(4)});
  member(3, *led).save(StepNumber(8), section("a", first_));
  member(4, *led).save(StepNumber(8), section("a", first_));
  member(5, *led).save(StepNumber(8), section("b", second_));
  damage("step-000000000008.3.part");
  EXPECT_EQ(training.find_start(note_)->from.next_step, StepNumber(8));
}

// A member that finds the checkpoint of its beginning damaged or gone does not begin without it.
TEST_F(SectionedTrainingTest, MembersBeginWithNoDamagedCheckpoint) {
  TwoSections training(place(), LeadOptions());
  save_both(training, {4});
  auto led = training.lead({.members = 2, .one_machine = true, .start = StepNumber(4)});
  damage("step-000000000004.2.part");
  MemberFiles first = member(1, *led);
  EXPECT_EQ(text_at_start(first, "a"), "wxyz");
  EXPECT_EQ(member(1, *led).at_start("b", 4).error().kind, ErrorKind::kBadData);
  ASSERT_TRUE(machine_.disk.remove_all(paths_.checkpoints()).ok());
  MemberFiles files(machine_.disk, {.supply = *led->supply}, NodeId(1));
  const auto begun = files.begin(*read_led_configuration(led->configuration));
  ASSERT_FALSE(begun.ok());
  EXPECT_EQ(begun.error().kind, ErrorKind::kBadData);
}

// The checkpoint that a run began with may have other members' sections. None of them is written over.
TEST_F(SectionedTrainingTest, TheStartIsNotWrittenOver) {
  TwoSections training(place(), LeadOptions());
  save_both(training, {4});
  auto led = training.lead({.members = 2, .one_machine = true, .start = StepNumber(4)});
  member(1, *led).save(StepNumber(4), section("b", second_));
  EXPECT_EQ(training.find_start(kNobody)->from.next_step, StepNumber(4));
}

// A checkpoint that cannot be looked at is kept, and so are all others: the run does not begin.
TEST_F(SectionedTrainingTest, KeepsWhatItCannotRead) {
  TwoSections training(place(), LeadOptions());
  save_both(training, {4, 8});
  auto led = training.lead({.members = 1, .one_machine = true, .start = {}});
  member(1, *led).save(StepNumber(16), section("a", first_));
  const tensors::CheckpointInfo other{
      .next_step = StepNumber(12), .run_id = "r", .config_fingerprint = "another"};
  ASSERT_TRUE(
      tensors::write_fleet_file(machine_.disk, paths_.checkpoints(), NodeId(1), other, section("a", first_))
          .ok());
  const auto refused = training.find_start(kNobody);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(refused.error().what, "the checkpoint belongs to another configuration or other data");
  EXPECT_EQ(steps_there(), (std::vector<std::uint64_t>{4, 8, 12, 16}));
  // Whatever operation fails, nothing is lost that was whole.
  ASSERT_TRUE(machine_.disk.remove_all(paths_.checkpoints() + "/step-000000000012.1.part").ok());
  for (std::uint64_t failing = 0; failing < 6; ++failing) {
    machine_.disk.restart_count({.fail_at_operation = failing});
    const auto start = training.find_start(kNobody);
    machine_.disk.restart_count({});
    if (!start.ok()) {
      EXPECT_THAT(steps_there(), ElementsAre(4, 8, 16)) << failing;
    }
  }
  EXPECT_EQ(training.find_start(kNobody)->from.next_step, StepNumber(8));
}

// The finished run is taken from its last checkpoint, with the loss that its record has, once that was
// written with all that was told.
TEST_F(SectionedTrainingTest, TakesATrainedCheckpoint) {
  TwoSections training(place(), LeadOptions());
  save_both(training, {20});
  EXPECT_FALSE(*training.keep_trained(
      {.next_step = StepNumber(20), .run_id = "r", .config_fingerprint = {}, .losses = {80, 84}}));
  TwoSections again(place(), LeadOptions());
  EXPECT_TRUE(again.find_start(kNobody)->trained);
  const auto done = again.take_trained({.on_step = no_step_, .stop_requested = never_, .events = note_});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_TRUE(done->all);
  EXPECT_EQ(done->final_loss, 82.0);
  EXPECT_EQ(again.parts(), 2U);
  EXPECT_EQ(again.section("a"), "wxyz");
}

// Members elsewhere get the checkpoint as they get data, and deliver theirs.
TEST_F(SectionedTrainingTest, MembersElsewhereGetTheCheckpoint) {
  TwoSections training(place(), LeadOptions());
  auto led = training.lead({.members = 2, .one_machine = true, .start = {}});
  member(1, *led).save(StepNumber(4), section("a", first_));
  member(2, *led).save(StepNumber(4), section("b", second_));
  auto again = training.lead({.members = 2, .one_machine = false, .start = StepNumber(4)});
  ASSERT_TRUE(again.ok());
  std::vector<std::string> names;
  for (const node::Supply::File& file : again->supply->files) names.push_back(file.name);
  EXPECT_THAT(names, ElementsAre("step-000000000004.1.part", "step-000000000004.2.part"));
  ASSERT_TRUE(machine_.disk.make_directories("/elsewhere").ok());
  member(3, *again, true).save(StepNumber(8), section("a", first_));
  EXPECT_TRUE(*machine_.disk.exists("/elsewhere/step-000000000008.3.part"));
}

// The result is there once members have delivered all sections, wherever they lie.
TEST_F(SectionedTrainingTest, TakesADeliveredResult) {
  TwoSections training(place(), LeadOptions());
  auto led = training.lead({.members = 2, .one_machine = true, .start = {}});
  ASSERT_TRUE(member(1, *led).deliver(section("a", first_)).ok());
  EXPECT_FALSE(*training.delivered(2));
  EXPECT_EQ(training.parts(), 0U);
  ASSERT_TRUE(member(2, *led).deliver(section("b", second_)).ok());
  EXPECT_TRUE(*training.delivered(2));
  EXPECT_EQ(training.parts(), 2U);
  EXPECT_EQ(training.section("a"), "wxyz");
  EXPECT_EQ(training.section("b"), "1234");
  training.finished();
  EXPECT_FALSE(*machine_.disk.exists(paths_.parts()));
}

// A damaged result is none, so that the run goes on from a checkpoint instead.
TEST_F(SectionedTrainingTest, ADamagedResultIsNone) {
  TwoSections training(place(), LeadOptions());
  auto led = training.lead({.members = 2, .one_machine = true, .start = {}});
  ASSERT_TRUE(member(1, *led).deliver(section("a", first_)).ok());
  ASSERT_TRUE(member(2, *led).deliver(section("b", second_)).ok());
  damage("step-000000000020.2.part", paths_.parts());
  EXPECT_TRUE(*training.delivered(2));
  const auto taken = training.take_delivered();
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(training.parts(), 0U);
}

// A section of another size is none, however sound its checksum is: in a checkpoint, in a result, and in what
// a member delivers.
TEST_F(SectionedTrainingTest, SectionsHaveTheirSizes) {
  TwoSections training(place(), LeadOptions());
  save_both(training, {4, 8});
  auto led = training.lead({.members = 2, .one_machine = true, .start = {}});
  EXPECT_EQ(led->supply->most_bytes, 8U + (1U << 20));
  std::array<char, 3> shorter{'x', 'y', 'z'};
  const std::array wrong{tensors::NamedTensor{"b", std::as_writable_bytes(std::span(shorter))}};
  member(2, *led).save(StepNumber(8), wrong);
  EXPECT_EQ(training.find_start(note_)->from.next_step, StepNumber(4));
  auto began = training.lead({.members = 2, .one_machine = true, .start = StepNumber(4)});
  MemberFiles begins = member(2, *began);
  EXPECT_TRUE(begins.at_start("b", 4).ok());
  EXPECT_EQ(begins.at_start("b", 3).error().kind, ErrorKind::kBadData);
  member(2, *led).save(StepNumber(12), wrong);
  const auto file = training.read_delivered("step-000000000012.2.part");
  const LedTraining::Owned owned{.things = {0, 1}, .decision = {}};
  const auto checked =
      training.check_delivered(paths_.checkpoints() + "/step-000000000012.2.part", *file, {&owned, 1});
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().kind, ErrorKind::kBadData);
  ASSERT_TRUE(member(1, *led).deliver(section("a", first_)).ok());
  ASSERT_TRUE(member(2, *led).deliver(wrong).ok());
  EXPECT_TRUE(*training.delivered(2));
  EXPECT_FALSE(training.take_delivered().ok());
  EXPECT_EQ(training.parts(), 0U);
}

// A member elsewhere has saved for good once its files are gone to the coordinator.
TEST_F(SectionedTrainingTest, SavedElsewhereLastsOnceBrought) {
  TwoSections training(place(), LeadOptions());
  auto led = training.lead({.members = 1, .one_machine = false, .start = {}});
  ASSERT_TRUE(machine_.disk.make_directories("/elsewhere").ok());
  MemberFiles files = member(3, *led, true);
  EXPECT_TRUE(files.lasts());
  files.save(StepNumber(8), section("a", first_));
  EXPECT_FALSE(files.lasts());
  ASSERT_TRUE(machine_.disk.remove_all("/elsewhere/step-000000000008.3.part").ok());
  EXPECT_TRUE(files.lasts());
  MemberFiles here = member(1, *led);
  here.save(StepNumber(8), section("a", first_));
  EXPECT_TRUE(here.lasts());
}

// Data without a step are refused by their name: the run would have nothing to do.
TEST_F(SectionedTrainingTest, NeedsAStep) {
  TwoSections training(place(), LeadOptions(), 0);
  const auto refused = training.prepare();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(refused.error().where, "numbers.txt");
}

// A run without members is refused before its first step.
TEST_F(SectionedTrainingTest, NeedsMembers) {
  TwoSections alone(place(), std::nullopt);
  const auto refused = alone.prepare();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_TRUE(TwoSections(place(), LeadOptions()).prepare().ok());
}

// What a member delivers has only sections of things that it owned, of that step and run, undamaged.
TEST_F(SectionedTrainingTest, DeliveriesAreChecked) {
  TwoSections training(place(), LeadOptions());
  save_both(training, {8});
  const std::string path = paths_.checkpoints() + "/step-000000000008.1.part";
  const auto check = [&](std::uint64_t step, std::vector<LedTraining::Owned> owned) {
    const auto file = training.read_delivered("step-" + std::string(10, '0') + "08.1.part");
    EXPECT_EQ(file->name, "step-000000000008.1.part");
    EXPECT_EQ(file->node, NodeId(1));
    EXPECT_FALSE(file->result);
    LedTraining::DeliveredFile wanted = *file;
    wanted.step = StepNumber(step);
    const auto done = training.check_delivered(path, wanted, owned);
    EXPECT_TRUE(done.ok() || done.error().kind == ErrorKind::kBadData);
    return done.ok();
  };
  const LedTraining::Owned first{.things = {0}, .decision = {}};
  const LedTraining::Owned second{.things = {1}, .decision = {}};
  EXPECT_TRUE(check(8, {first}));
  EXPECT_TRUE(check(8, {second, first}));
  EXPECT_FALSE(check(8, {second}));
  EXPECT_FALSE(check(8, {}));
  EXPECT_FALSE(check(9, {first}));
  damage("step-000000000008.1.part");
  EXPECT_FALSE(check(8, {first}));
  for (const char* const other :
       {"step-8.1.part", "step-000000000008.run", "part-1-8", "step-000000000008.1.part.tmp"})
    EXPECT_FALSE(training.read_delivered(other)) << other;
}

}  // namespace
}  // namespace gossamer::commands
