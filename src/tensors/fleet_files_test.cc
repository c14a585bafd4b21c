// SPDX-License-Identifier: Apache-2.0
#include "tensors/fleet_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::tensors {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr char kCheckpoints[] = "checkpoints";
constexpr char kRun[] = "run-1";
const StepNumber kStep(12);

class FleetFilesTest : public ::testing::Test {
 protected:
  FleetFilesTest() { EXPECT_TRUE(disk_.make_directories(kCheckpoints).ok()); }

  static CheckpointInfo info(StepNumber step, double train_seconds = 0) {
    CheckpointInfo info;
    info.next_step = step;
    info.config_fingerprint = kRun;
    info.cost.train_seconds = train_seconds;
    return info;
  }
  void write(std::uint64_t node, StepNumber step) {
    std::array<char, 4> bytes{'a', 'b', 'c', static_cast<char>(node)};
    const std::array<NamedTensor, 1> tensors = {{{"a", std::as_writable_bytes(std::span(bytes))}}};
    ASSERT_TRUE(write_fleet_file(disk_, kCheckpoints, NodeId(node), info(step), tensors).ok());
  }
  Result<std::optional<FleetFiles>> open(StepNumber step, std::string_view fingerprint = kRun) {
    return open_fleet_files(disk_, kCheckpoints, fingerprint, step, note_);
  }

  host::SimDisk disk_;
  std::vector<std::string> events_;
  const std::function<void(std::string_view, EventFields)> note_ =
      [this](std::string_view name, EventFields) { events_.emplace_back(name); };
};

// Files are known by their names. A file that was never finished belongs to its step, too, and is no file of
// a checkpoint.
TEST_F(FleetFilesTest, AreKnownByTheirNames) {
  EXPECT_TRUE(list_fleet_files(disk_, "nowhere")->empty());
  write(3, kStep);
  write(4, StepNumber(7));
  ASSERT_TRUE(write_run_record(disk_, kCheckpoints, info(kStep)).ok());
  for (const char* const other : {"step-000000000012.5.part.tmp", "step-000000000012.ckpt", "notes"})
    ASSERT_TRUE(host::replace_file(disk_, std::string(kCheckpoints) + "/" + other, "x").ok());
  const auto files = list_fleet_files(disk_, kCheckpoints);
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 2U);
  EXPECT_THAT(files->at(StepNumber(7)), ElementsAre("step-000000000007.4.part"));
  EXPECT_THAT(files->at(kStep), UnorderedElementsAre("step-000000000012.3.part", "step-000000000012.run",
                                                     "step-000000000012.5.part.tmp"));
  EXPECT_TRUE(is_fleet_file("step-000000000012.3.part"));
  EXPECT_TRUE(is_fleet_file("step-000000000012.run"));
  for (const char* const other : {"step-000000000012.5.part.tmp", "step-000000000012.part", "step-.3.part",
                                  "step-000000000012.3", "step-000000000012.3.part2", ""})
    EXPECT_FALSE(is_fleet_file(other)) << other;
}

// All readable files of the step are opened. A damaged one is told and left out. The record says what the run
// had cost.
TEST_F(FleetFilesTest, OpensWhatCanBeRead) {
  EXPECT_FALSE(open(kStep)->has_value());
  write(3, kStep);
  write(4, kStep);
  write(5, StepNumber(7));
  ASSERT_TRUE(host::replace_file(disk_, std::string(kCheckpoints) + "/step-000000000012.6.part", "no").ok());
  const auto without_record = open(kStep);
  ASSERT_TRUE(without_record.ok());
  ASSERT_TRUE(without_record->has_value());
  EXPECT_EQ((*without_record)->files.size(), 2U);
  EXPECT_EQ((*without_record)->info.cost.train_seconds, 0);
  EXPECT_THAT(events_, ElementsAre("checkpoint_damaged"));
  ASSERT_TRUE(write_run_record(disk_, kCheckpoints, info(kStep, 2.5)).ok());
  EXPECT_EQ((*open(kStep))->info.cost.train_seconds, 2.5);
}

// Claim: a file under the name of this step that holds the state before another step is left out.
TEST_F(FleetFilesTest, LeavesOutFilesOfAnotherStep) {
  write(4, StepNumber(7));
  const auto named = [](const char* name) { return fmt::format("{}/{}", kCheckpoints, name); };
  ASSERT_TRUE(disk_.rename(named("step-000000000007.4.part"), named("step-000000000012.4.part")).ok());
  EXPECT_FALSE(open(kStep)->has_value());
  write(3, kStep);
  const auto files = open(kStep);
  ASSERT_TRUE(files.ok() && files->has_value());
  ASSERT_EQ((*files)->files.size(), 1U);
  EXPECT_EQ((*files)->files[0].path(), named("step-000000000012.3.part"));
}

// A section is taken from the first file that has it undamaged. The damaged ones are told.
TEST_F(FleetFilesTest, FindsAnUndamagedSection) {
  for (const std::uint64_t node : {3U, 4U}) write(node, kStep);
  const std::string name = (*open(kStep))->files[0].names().at(0);
  const std::string first = std::string(kCheckpoints) + "/step-000000000012.3.part";
  const auto damage = [this](const std::string& path) {
    std::string bytes = *host::read_text(disk_, path);
    bytes[64] = static_cast<char>(~bytes[64]);
    ASSERT_TRUE(host::replace_file(disk_, path, bytes).ok());
  };
  const auto find = [this](const std::string& section) {
    const auto files = open(kStep);
    return fleet_section((*files)->files, section, note_).ok();
  };
  damage(first);
  EXPECT_TRUE(find(name));
  EXPECT_THAT(events_, ElementsAre("checkpoint_damaged"));
  EXPECT_FALSE(find("another"));
  damage(std::string(kCheckpoints) + "/step-000000000012.4.part");
  EXPECT_FALSE(find(name));
}

// Files of another run are refused.
TEST_F(FleetFilesTest, RefusesAnotherRun) {
  write(3, kStep);
  const auto refused = open(kStep, "run-2");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace gossamer::tensors
