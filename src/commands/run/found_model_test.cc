// SPDX-License-Identifier: Apache-2.0
#include "commands/run/found_model.h"

#include <gtest/gtest.h>

#include <string>

#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

// A model is found in a run's directory and by its own. So it is after a death between the two renames by
// which another takes its place.
TEST(FindModel, FindsWhatACrashHasLeft) {
  for (const bool crashed : {false, true}) {
    run::testing::SimMachine machine;
    const std::string lies = crashed ? "/run/model.old" : "/run/model";
    ASSERT_TRUE(machine.disk.make_directories(lies).ok());
    run::testing::write(machine.disk, lies + "/model.json", "{}");
    for (const char* const directory : {"/run", "/run/model", "/run/model/"}) {
      const auto found = find_model(machine.host(), directory);
      ASSERT_TRUE(found.ok()) << directory << ": " << found.error().message();
      EXPECT_EQ(*found, std::string(directory) == "/run" ? "/run/model" : directory);
    }
    EXPECT_FALSE(find_model(machine.host(), "/other").ok());
  }
}

}  // namespace
}  // namespace gossamer::commands
