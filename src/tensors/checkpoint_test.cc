// SPDX-License-Identifier: Apache-2.0
#include "tensors/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/function_ref.h"
#include "host/sim/disk.h"

namespace gossamer::tensors {
namespace {

using host::SimDisk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

constexpr char kDirectory[] = "run/checkpoints";
constexpr char kConfig[] = "config-1";

// Two tensors whose values tell which step saved them.
struct Tensors {
  std::vector<float> weights = std::vector<float>(37, 0.0F);
  std::vector<std::uint32_t> steps = std::vector<std::uint32_t>(5, 0);

  void fill(std::uint32_t step) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] = static_cast<float>(std::size_t{100} * step + i);
    for (std::uint32_t& s : steps) s = step;
  }
  std::vector<NamedTensor> named() {
    return {{"weights", std::as_writable_bytes(std::span(weights))},
            {"steps", std::as_writable_bytes(std::span(steps))}};
  }
};

Result<void> save(host::Disk& disk, std::uint32_t step, int keep = 2) {
  Tensors tensors;
  tensors.fill(step);
  return save_checkpoint(disk, kDirectory,
                         {.next_step = StepNumber{step},
                          .run_id = "run-1",
                          .config_fingerprint = kConfig,
                          .workers = 2,
                          .cost = {.load_seconds = 0.1, .train_seconds = 1.0 / 3, .cpu_seconds = 7},
                          .losses = {1.0 / 7, std::nan(""), 1e-300}},
                         tensors.named(), keep);
}

struct Loaded {
  Result<std::optional<CheckpointInfo>> info;
  Tensors tensors;
  std::vector<std::string> events;
};

Loaded load(host::Disk& disk, std::string_view config = kConfig) {
  Loaded loaded{.info = std::optional<CheckpointInfo>(), .tensors = {}, .events = {}};
  const auto events = [&](std::string_view event, EventFields) { loaded.events.emplace_back(event); };
  loaded.info = load_newest_checkpoint(disk, kDirectory, config, loaded.tensors.named(), events);
  return loaded;
}

std::unique_ptr<SimDisk> disk_with(std::initializer_list<std::uint32_t> steps) {
  auto disk = std::make_unique<SimDisk>();
  EXPECT_TRUE(disk->make_directories(kDirectory).ok());
  EXPECT_TRUE(disk->sync_directory("run").ok());
  EXPECT_TRUE(disk->sync_directory("/").ok());
  for (const std::uint32_t step : steps) EXPECT_TRUE(save(*disk, step).ok());
  return disk;
}

std::vector<std::byte> contents(SimDisk& disk, const std::string& path) {
  auto map = disk.map(path);
  EXPECT_TRUE(map.ok());
  return {(*map)->bytes().begin(), (*map)->bytes().end()};
}

void overwrite(SimDisk& disk, const std::string& path, std::span<const std::byte> bytes) {
  auto file = disk.open_writable(path, host::WriteMode::kTruncate);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->append(bytes).ok());
  ASSERT_TRUE((*file)->close().ok());
}

const std::string kStep20 = std::string(kDirectory) + "/step-000000000020.ckpt";

// Saved tensors come back, bit by bit, with their step, run and number of workers.
TEST(Checkpoint, LoadsWhatWasSaved) {
  auto disk = disk_with({10, 20});
  Loaded loaded = load(*disk);
  ASSERT_TRUE(loaded.info.ok()) << loaded.info.error().message();
  ASSERT_TRUE(loaded.info->has_value());
  EXPECT_EQ((*loaded.info)->next_step, StepNumber{20});
  EXPECT_EQ((*loaded.info)->run_id, "run-1");
  EXPECT_EQ((*loaded.info)->workers, 2);
  Tensors expected;
  expected.fill(20);
  EXPECT_EQ(loaded.tensors.weights, expected.weights);
  EXPECT_EQ(loaded.tensors.steps, expected.steps);
}

// Changes the footer's JSON, and mends its checksum and length.
void edit_footer(SimDisk& disk, const std::string& path, FunctionRef<void(nlohmann::json&)> change) {
  std::vector<std::byte> file = contents(disk, path);
  std::array<std::uint64_t, 4> trailer{};
  std::memcpy(trailer.data(), file.data() + file.size() - 40, sizeof trailer);
  const auto* text = reinterpret_cast<const char*>(file.data()) + trailer[0];
  nlohmann::json footer = nlohmann::json::parse(text, text + trailer[1]);
  change(footer);
  const std::string changed = footer.dump();
  trailer[1] = changed.size();
  trailer[2] = XXH3_64bits(changed.data(), changed.size());
  std::vector<std::byte> out(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(trailer[0]));
  const auto add = [&out](std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  add(std::as_bytes(std::span(changed)));
  add(std::as_bytes(std::span(trailer)));
  add(std::span(file).last(8));
  overwrite(disk, path, out);
}

// Cost and losses come back to the last bit. An older file without them counts as one of no cost.
TEST(Checkpoint, CostAndLosses) {
  auto disk = disk_with({20});
  const Loaded loaded = load(*disk);
  ASSERT_TRUE(loaded.info.ok() && loaded.info->has_value());
  const CheckpointInfo& info = **loaded.info;
  EXPECT_EQ(info.cost.load_seconds, 0.1);
  EXPECT_EQ(info.cost.train_seconds, 1.0 / 3);
  EXPECT_EQ(info.cost.cpu_seconds, 7);
  EXPECT_THAT(info.losses, ElementsAre(1.0 / 7, IsNan(), 1e-300));

  edit_footer(*disk, kStep20,
              [](nlohmann::json& footer) { ASSERT_EQ(footer.erase("cost") + footer.erase("losses"), 2U); });
  const Loaded old = load(*disk);
  ASSERT_TRUE(old.info.ok() && old.info->has_value());
  EXPECT_EQ((*old.info)->next_step, StepNumber{20});
  EXPECT_EQ((*old.info)->cost.cpu_seconds, 0);
  EXPECT_TRUE((*old.info)->losses.empty());
}

// A footer of too many brackets counts as damage, before anything copies it.
TEST(Checkpoint, FooterNestedTooDeeply) {
  for (const std::size_t levels : {std::size_t{31}, std::size_t{32}}) {
    auto disk = disk_with({20});
    edit_footer(*disk, kStep20, [levels](nlohmann::json& footer) {
      for (std::size_t i = 0; i < levels; ++i) footer["more"] = nlohmann::json::array({footer["more"]});
    });
    const Loaded loaded = load(*disk);
    EXPECT_EQ(loaded.info.ok() && loaded.info->has_value(), levels < 32) << levels;
  }
}

// The checkpoint of a finished run has only the results. They come back, and tensors that only training needs
// stay as they are. A file that lacks these while steps are left is damaged.
TEST(Checkpoint, FinishedRun) {
  Tensors saved;
  saved.fill(20);
  const std::vector<NamedTensor> results = {saved.named().front()};
  auto disk = disk_with({10});
  for (const bool finished : {true, false}) {
    const CheckpointInfo info{
        .next_step = StepNumber{20}, .run_id = "r", .config_fingerprint = kConfig, .finished = finished};
    ASSERT_TRUE(save_checkpoint(*disk, kDirectory, info, results, 2).ok());
    Tensors mine;
    mine.fill(7);
    std::vector<NamedTensor> tensors = mine.named();
    tensors[1].use = TensorUse::kToGoOn;
    const auto ignore = [](std::string_view, EventFields) {};
    const auto loaded = load_newest_checkpoint(*disk, kDirectory, kConfig, tensors, ignore);
    ASSERT_TRUE(loaded.ok() && loaded->has_value());
    EXPECT_EQ((*loaded)->finished, finished);
    EXPECT_EQ((*loaded)->next_step, StepNumber{finished ? 20U : 10U});
    EXPECT_EQ(mine.weights[1], finished ? 2001.0F : 1001.0F);
    EXPECT_EQ(mine.steps[0], finished ? 7U : 10U);
  }
}

// Only the newest `keep` files stay.
TEST(Checkpoint, KeepsTheNewest) {
  auto disk = disk_with({10, 20, 30});
  EXPECT_THAT(*disk->list(kDirectory), ElementsAre("step-000000000020.ckpt", "step-000000000030.ckpt"));
  ASSERT_TRUE(save(*disk, 40, 1).ok());
  EXPECT_THAT(*disk->list(kDirectory), ElementsAre("step-000000000040.ckpt"));
}

// Damaged files of later steps neither push out what a run saves that fell back behind them, nor what it
// saved before.
TEST(Checkpoint, KeepsWhatWasSavedBehindDamagedFiles) {
  auto disk = disk_with({10, 30, 40});
  ASSERT_TRUE(save(*disk, 10, 3).ok());
  for (const char* const name : {"/step-000000000030.ckpt", "/step-000000000040.ckpt"})
    overwrite(*disk, std::string(kDirectory) + name, {});
  ASSERT_TRUE(save(*disk, 20, 2).ok());
  EXPECT_EQ((*load(*disk).info)->next_step, StepNumber{20});
  ASSERT_TRUE(save(*disk, 25, 2).ok());
  EXPECT_THAT(*disk->list(kDirectory), ElementsAre("step-000000000020.ckpt", "step-000000000025.ckpt",
                                                   "step-000000000030.ckpt", "step-000000000040.ckpt"));
  ASSERT_TRUE(save(*disk, 50, 1).ok());
  EXPECT_THAT(*disk->list(kDirectory), ElementsAre("step-000000000050.ckpt"));
}

// A file with another name is the user's. It is neither loaded, nor counted, nor removed.
TEST(Checkpoint, LeavesFilesOfOtherNamesAlone) {
  auto disk = disk_with({10, 20});
  const std::vector<std::byte> ten = contents(*disk, std::string(kDirectory) + "/step-000000000010.ckpt");
  const std::vector<std::string> others = {"step-000000000009.old.ckpt", "step-30.ckpt", "step-best.ckpt",
                                           "step-99999999999999999999.ckpt"};
  for (const std::string& name : others) overwrite(*disk, std::string(kDirectory) + "/" + name, ten);
  EXPECT_EQ((*load(*disk).info)->next_step, StepNumber{20});
  EXPECT_EQ((*newest_checkpoint(*disk, kDirectory))->next_step, StepNumber{20});
  ASSERT_TRUE(save(*disk, 40, 2).ok());
  const std::vector<std::string> names = *disk->list(kDirectory);
  EXPECT_THAT(names, ::testing::IsSupersetOf(others));
  EXPECT_THAT(names, ::testing::IsSupersetOf({"step-000000000020.ckpt", "step-000000000040.ckpt"}));
  EXPECT_EQ(names.size(), others.size() + 2);
}

// The name of a step is read back as that step, also one of more than twelve digits, and nothing else is.
TEST(Checkpoint, NamesAreReadBack) {
  for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{12}, std::uint64_t{1234567890123}})
    EXPECT_EQ(read_checkpoint_name(checkpoint_name(StepNumber{step})), StepNumber{step});
  for (const char* const name :
       {"", "step-", "best.ckpt", "step-12.ckpt", "step-0000000000012.ckpt", "step-000000000012.ckpt.tmp",
        "step-00000000001x.ckpt", "step--00000000012.ckpt", "step-000000000012.3.part"})
    EXPECT_FALSE(read_checkpoint_name(name).has_value()) << name;
}

// A missing or empty directory, or one with other files, holds no checkpoint.
TEST(Checkpoint, NothingToLoad) {
  SimDisk empty;
  EXPECT_FALSE(load(empty).info->has_value());
  auto disk = disk_with({});
  overwrite(*disk, std::string(kDirectory) + "/step-000000000001.ckpt.tmp", {});
  EXPECT_FALSE(load(*disk).info->has_value());
}

// A crash at any disk operation of a save leaves a checkpoint that loads whole, under several outcomes each.
// It is the old one, or the new one once the save was acknowledged.
TEST(Checkpoint, SurvivesACrashAtEveryOperation) {
  auto rehearsal = disk_with({10, 20});
  rehearsal->restart_count({});
  ASSERT_TRUE(save(*rehearsal, 30).ok());
  const std::uint64_t operations = rehearsal->operations();
  ASSERT_GT(operations, 8U);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (std::uint64_t k = 0; k <= operations; ++k) {
      auto disk = disk_with({10, 20});
      disk->restart_count({.seed = seed, .crash_at_operation = k});
      const bool acknowledged = save(*disk, 30).ok();
      auto later = disk->after_crash();
      Loaded loaded = load(*later);
      ASSERT_TRUE(loaded.info.ok()) << "seed " << seed << " operation " << k;
      ASSERT_TRUE(loaded.info->has_value()) << "seed " << seed << " operation " << k;
      const auto step = static_cast<std::uint32_t>((*loaded.info)->next_step.value);
      ASSERT_TRUE(step == 30 || (step == 20 && !acknowledged))
          << "seed " << seed << " operation " << k << " step " << step;
      Tensors expected;
      expected.fill(step);
      ASSERT_EQ(loaded.tensors.weights, expected.weights) << "seed " << seed << " operation " << k;
      ASSERT_TRUE(loaded.events.empty()) << "a save must never leave a damaged file under its final name";
    }
  }
}

// A full disk or a failing operation refuses the save with its cause. The older checkpoints stay loadable.
TEST(Checkpoint, FailedSaveLeavesTheOldOnes) {
  auto rehearsal = disk_with({10, 20});
  rehearsal->restart_count({});
  ASSERT_TRUE(save(*rehearsal, 30).ok());
  const std::uint64_t operations = rehearsal->operations();
  for (std::uint64_t k = 0; k < operations; ++k) {
    auto disk = disk_with({10, 20});
    disk->restart_count({.fail_at_operation = k});
    const bool saved = save(*disk, 30).ok();
    Loaded loaded = load(*disk);
    ASSERT_TRUE(loaded.info.ok() && loaded.info->has_value()) << k;
    EXPECT_TRUE(saved ? (*loaded.info)->next_step.value == 30 : (*loaded.info)->next_step.value >= 20) << k;
  }
  auto full = disk_with({10, 20});
  full->restart_count({.capacity_bytes = contents(*full, kStep20).size() * 2 + 100});
  const auto refused = save(*full, 30);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("step-000000000030.ckpt"));
  EXPECT_EQ((*load(*full).info)->next_step, StepNumber{20});
  EXPECT_THAT(*full->list(kDirectory), ElementsAre("step-000000000010.ckpt", "step-000000000020.ckpt"));
}

// Any flipped byte and any cut of the newest file is reported, and the older file is loaded, whole. (A flip
// in the padding between sections harms nothing and may load.)
TEST(Checkpoint, DamageFallsBackToTheOlder) {
  auto disk = disk_with({10, 20});
  const std::vector<std::byte> good = contents(*disk, kStep20);
  int noticed = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{0x10};
    overwrite(*disk, kStep20, bad);
    Loaded loaded = load(*disk);
    ASSERT_TRUE(loaded.info.ok() && loaded.info->has_value()) << i;
    const auto step = static_cast<std::uint32_t>((*loaded.info)->next_step.value);
    Tensors expected;
    expected.fill(step);
    ASSERT_EQ(loaded.tensors.weights, expected.weights) << i;
    if (step == 10) {
      ++noticed;
      ASSERT_THAT(loaded.events, ElementsAre("checkpoint_damaged")) << i;
    }
  }
  EXPECT_GT(noticed, static_cast<int>(good.size()) - 64 * 3);
  for (std::size_t size = 0; size < good.size(); size += 7) {
    overwrite(*disk, kStep20, std::span(good).first(size));
    EXPECT_EQ((*load(*disk).info)->next_step, StepNumber{10}) << size;
  }
}

// A whole checkpoint of another configuration is a mistake of the user, not damage. It is refused by name.
TEST(Checkpoint, RefusesAnotherConfiguration) {
  auto disk = disk_with({10, 20});
  const Loaded loaded = load(*disk, "config-2");
  ASSERT_FALSE(loaded.info.ok());
  EXPECT_EQ(loaded.info.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(loaded.info.error().message(), HasSubstr("got config-1; expected config-2"));
}

// A footer that lists other tensors than the network has is refused, and tensors stay as they were.
TEST(Checkpoint, RefusesOtherTensors) {
  auto disk = disk_with({20});
  Tensors mine;
  mine.fill(7);
  std::vector<NamedTensor> fewer = mine.named();
  fewer.pop_back();
  std::vector<std::string> messages;
  const auto events = [&](std::string_view, EventFields fields) {
    messages.push_back(std::get<std::string>((fields.begin() + 1)->value));
  };
  EXPECT_FALSE(load_newest_checkpoint(*disk, kDirectory, kConfig, fewer, events)->has_value());
  EXPECT_THAT(messages, ElementsAre(HasSubstr("got 2 sections; expected 1")));
  EXPECT_EQ(mine.weights[1], 701.0F);
}

// Claim: a footer that would take many times the memory of a file is damage, before anything reads it as
// JSON.
TEST(Checkpoint, FooterTooLarge) {
  for (const std::size_t bytes : {std::size_t{3} << 20, std::size_t{5} << 20}) {
    auto disk = disk_with({20});
    edit_footer(*disk, kStep20,
                [bytes](nlohmann::json& footer) { footer["more"] = std::string(bytes, 'x'); });
    const Loaded loaded = load(*disk);
    EXPECT_EQ(loaded.info.ok() && loaded.info->has_value(), bytes < std::size_t{4} << 20) << bytes;
  }
}

}  // namespace
}  // namespace gossamer::tensors
