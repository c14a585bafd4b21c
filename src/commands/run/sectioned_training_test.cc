// SPDX-License-Identifier: Apache-2.0
#include "commands/run/sectioned_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "commands/run/led_configuration.h"
#include "commands/run/member_files.h"
#include "engines/run/lockstep_workload.h"
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
  TwoSections(const TrainingPlace& place, const std::optional<LeadOptions>& lead)
      : SectionedTraining(place, "two", lead) {}
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
    return {.names = {"a", "b"}, .most_bytes = 8, .steps = 20, .fingerprint = "f"};
  }
  Result<void> supply(node::Supply&) const override { return {}; }
  [[nodiscard]] Led workload(StepNumber start) const override {
    return {.workload =
                std::make_unique<engine::LockstepWorkload>(engine::LockstepWorkload::Options{.start = start}),
            .tracks = {},
            .configuration = {}};
  }
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
    if (elsewhere) supplied.supply.deliver = "/elsewhere";
    MemberFiles files(machine_.disk, supplied, NodeId(node));
    EXPECT_TRUE(files.begin(*read_led_configuration(led.configuration)).ok());
    return files;
  }
  static std::array<tensors::NamedTensor, 1> section(const char* name, std::array<char, 4>& bytes) {
    return {tensors::NamedTensor{name, std::as_writable_bytes(std::span(bytes))}};
  }

  run::testing::SimMachine machine_;
  const run::NodeHost host_ = machine_.host();
  const std::function<bool()> never_ = [] { return false; };
  const run::RunPaths paths_{"/runs/two"};
  std::array<char, 4> first_{'w', 'x', 'y', 'z'};
  std::array<char, 4> second_{'1', '2', '3', '4'};
};

const auto nobody = [](std::string_view, EventFields) {};

// A run goes on from the newest checkpoint that has all sections. Newer files, which lack one, are removed.
TEST_F(SectionedTrainingTest, BeginsWithTheNewestWholeCheckpoint) {
  TwoSections training(place(), LeadOptions());
  EXPECT_EQ(training.find_start(nobody)->from.next_step, StepNumber(0));
  auto led = training.lead({.members = 2, .one_machine = true, .start = {}});
  ASSERT_TRUE(led.ok());
  MemberFiles one = member(1, *led);
  MemberFiles two = member(2, *led);
  for (const std::uint64_t step : {4, 8, 12}) {
    one.save(StepNumber(step), section("a", first_));
    if (step < 12) two.save(StepNumber(step), section("b", second_));
  }
  EXPECT_FALSE(training.checkpoint(StepNumber(12)).has_value());
  const auto start = training.find_start(nobody);
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->from.next_step, StepNumber(8));
  EXPECT_FALSE(start->trained);
  EXPECT_EQ(tensors::list_fleet_files(machine_.disk, paths_.checkpoints())->rbegin()->first, StepNumber(8));
  auto again = training.lead({.members = 2, .one_machine = true, .start = StepNumber(8)});
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->supply->files, IsEmpty());
  const auto bytes = member(3, *again).at_start("b");
  EXPECT_EQ(std::memcmp(bytes.data(), second_.data(), 4), 0);
  EXPECT_THAT(member(3, *again).at_start("c"), IsEmpty());
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

// A run without members is refused before its first step.
TEST_F(SectionedTrainingTest, NeedsMembers) {
  TwoSections alone(place(), std::nullopt);
  const auto refused = alone.prepare();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_TRUE(TwoSections(place(), LeadOptions()).prepare().ok());
}

}  // namespace
}  // namespace gossamer::commands
