// SPDX-License-Identifier: Apache-2.0
#include "run/resume_command.h"

#include <gtest/gtest.h>

#include "host/sim/disk.h"
#include "run/lead_file.h"
#include "run/run_directory.h"

namespace gossamer::run {
namespace {

// Claim: the command has the run's directory as one word of a shell. It is that of a coordinator just where
// members come from anywhere, and not where the run started its own, or has none.
TEST(ResumeCommand, NamesTheRunAndWhoLeadsIt) {
  for (const std::uint64_t nodes : {0U, 3U}) {
    host::SimDisk disk;
    const std::string run = "runs/my run";
    EXPECT_EQ(resume_command(disk, run), "gossamer train --resume --out 'runs/my run'");
    ASSERT_TRUE(disk.make_directories(RunPaths(run).lead()).ok());
    ASSERT_TRUE(keep_lead_file(disk, RunPaths(run).lead(), {.engine = "sparse", .nodes = nodes}).ok());
    EXPECT_EQ(resume_command(disk, run), nodes == 0 ? "gossamer coordinator --resume --out 'runs/my run'"
                                                    : "gossamer train --resume --out 'runs/my run'");
  }
}

}  // namespace
}  // namespace gossamer::run
