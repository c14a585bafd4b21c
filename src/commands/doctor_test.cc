// SPDX-License-Identifier: Apache-2.0
#include "commands/doctor.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "engines/check/check_config.h"
#include "host/api/files.h"
#include "host/sim/clock.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"

namespace gossamer::commands {
namespace {

class SilentConsole final : public run::Console {
 public:
  void write(std::string_view /*text*/) override {}
  [[nodiscard]] bool terminal() const override { return false; }
  [[nodiscard]] int columns() const override { return 80; }
};

Finding examine_huge_pages(const char* mode) {
  host::SimDisk disk;
  const host::SimClock clock;
  host::SimCompute compute{host::SimComputeOptions{.workers = 2}};
  SilentConsole console;
  if (mode != nullptr) {
    EXPECT_TRUE(disk.make_directories("/sys/kernel/mm/transparent_hugepage").ok());
    EXPECT_TRUE(
        host::replace_file(disk, "/sys/kernel/mm/transparent_hugepage/enabled", std::string_view(mode)).ok());
  }
  const std::vector<Finding> findings = examine({.disk = disk,
                                                 .clock = clock,
                                                 .compute = compute,
                                                 .kernels = kernels::kernels_for(kernels::Isa::kScalar),
                                                 .console = console});
  return *std::ranges::find(findings, std::string_view("huge pages"), &Finding::name);
}

// The setting in brackets is the one that counts. A good setting needs no advice,
// and an unknown one is no fault.
TEST(Doctor, ReadsHugePages) {
  EXPECT_EQ(examine_huge_pages("always [madvise] never\n").health, Health::kGood);
  EXPECT_EQ(examine_huge_pages("[always] madvise never\n").health, Health::kGood);
  const Finding never = examine_huge_pages("always madvise [never]\n");
  EXPECT_EQ(never.health, Health::kAdvice);
  EXPECT_NE(never.advice.find("echo madvise"), std::string::npos);
  EXPECT_EQ(examine_huge_pages("nonsense").health, Health::kAdvice);
  EXPECT_EQ(examine_huge_pages(nullptr).health, Health::kAdvice);
}

// Claim: a disk with less than 64 MiB free is no place for a run. One with less than 2 GiB gets advice.
TEST(Doctor, JudgesTheDisk) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  const auto judge = [](std::uint64_t free) {
    host::SimDisk disk({.capacity_bytes = free});
    const host::SimClock clock;
    host::SimCompute compute{host::SimComputeOptions{.workers = 2}};
    SilentConsole console;
    const std::vector<Finding> findings = examine({.disk = disk,
                                                   .clock = clock,
                                                   .compute = compute,
                                                   .kernels = kernels::kernels_for(kernels::Isa::kScalar),
                                                   .console = console});
    EXPECT_EQ(*disk.free_bytes("."), free);
    return std::ranges::find(findings, std::string_view("disk"), &Finding::name)->health;
  };
  EXPECT_EQ(judge(64 * kMiB - 1), Health::kBad);
  EXPECT_EQ(judge(64 * kMiB), Health::kAdvice);
  EXPECT_EQ(judge(2048 * kMiB - 1), Health::kAdvice);
  EXPECT_EQ(judge(2048 * kMiB), Health::kGood);
}

// Claim: what an engine lacks beside the program is advice, and what is broken is bad. Engines without such a
// part are passed over.
TEST(Doctor, LooksAtPartsOfEngines) {
  using enum EnginePart::State;
  host::SimDisk disk;
  for (const auto& [state, health] : {std::pair(kThere, Health::kGood), std::pair(kMissing, Health::kAdvice),
                                      std::pair(kBroken, Health::kBad)}) {
    const auto good = [](const settings::Values&) { return Result<void>(); };
    const EngineList engines({{.name = "one", .help = "", .keys = &check::check_keys(), .check = good},
                              {.name = "two",
                               .help = "",
                               .keys = &check::check_keys(),
                               .check = good,
                               .parts = [its = state](host::Disk&) {
                                 return std::vector<EnginePart>{
                                     {.name = "library", .state = its, .found = "found", .advice = "advice"}};
                               }}});
    const std::vector<Finding> findings = examine_parts(disk, engines);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].name, "library");
    EXPECT_EQ(findings[0].health, health);
    EXPECT_EQ(findings[0].found, "found");
    EXPECT_EQ(findings[0].advice, "advice");
  }
}

// Advice leaves the machine fit, a bad finding does not. Text and JSON both show everything.
TEST(Doctor, Verdict) {
  std::vector<Finding> findings = {
      {.name = "cpu", .health = Health::kGood, .found = "fine", .advice = ""},
      {.name = "disk", .health = Health::kAdvice, .found = "small", .advice = "grow"}};
  EXPECT_TRUE(healthy(findings));
  findings.push_back({.name = "clock", .health = Health::kBad, .found = "broken", .advice = "mend"});
  EXPECT_FALSE(healthy(findings));
  const auto json = nlohmann::json::parse(to_json(findings));
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["checks"].size(), 3U);
  EXPECT_EQ(json["checks"][1]["health"], "advice");
  EXPECT_NE(to_text(findings).find("-> mend"), std::string::npos);
}

}  // namespace
}  // namespace gossamer::commands
