// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/torch_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "host/posix/disk.h"
#include "host/posix/environment.h"

namespace gossamer::commands {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder of its own with a program's file, which nobody runs.
class TorchLibraryTest : public testing::Test {
 protected:
  TorchLibraryTest() {
    fs::remove_all(root_);
    fs::create_directories(root_ / "bin");
  }
  ~TorchLibraryTest() override { fs::remove_all(root_); }

  Result<TorchLibrary> open() {
    return TorchLibrary::open(disk_, {.program = (root_ / "bin/gossamer").string(), .threads = 3});
  }

  host::PosixDisk disk_;
  const fs::path root_ =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
};

// Claim: a module beside the program opens, makes stages, and has as many threads as it was told, which sleep
// while they wait. Variables of the user stay.
TEST_F(TorchLibraryTest, OpensBesideTheProgram) {
  ASSERT_EQ(::setenv("OMP_WAIT_POLICY", "ACTIVE", 1), 0);
  ASSERT_EQ(::unsetenv("OMP_NUM_THREADS"), 0);
  fs::copy(TEST_TORCH, root_ / "bin/gossamer_torch.so");
  const auto library = open();
  ASSERT_TRUE(library.ok()) << library.error().message();
  EXPECT_EQ(library->path(), (root_ / "bin/gossamer_torch.so").string());
  EXPECT_EQ(library->version(), "9.8.7");
  const auto stage = library->make_stage({.shape = {.vocabulary = 11}, .cut = {}});
  ASSERT_TRUE(stage.ok());
  EXPECT_EQ((*stage)->vocabulary(), 11U);
  EXPECT_EQ(host::environment("OMP_NUM_THREADS"), "3");
  EXPECT_EQ(host::environment("OMP_WAIT_POLICY"), "ACTIVE");
}

// Claim: an installed program finds its module in ../lib/gossamer, and one beside it comes first.
TEST_F(TorchLibraryTest, OpensWhereItIsInstalled) {
  fs::create_directories(root_ / "lib/gossamer");
  fs::copy(TEST_TORCH, root_ / "lib/gossamer/gossamer_torch.so");
  const auto installed = open();
  ASSERT_TRUE(installed.ok()) << installed.error().message();
  EXPECT_EQ(installed->path(), (root_ / "bin/../lib/gossamer/gossamer_torch.so").string());
  fs::copy(TEST_OTHER_TORCH, root_ / "bin/gossamer_torch.so");
  EXPECT_FALSE(open().ok());
}

// Claim: where there is no module, the error says what builds it.
TEST_F(TorchLibraryTest, SaysHowToBuildAMissingOne) {
  const auto library = open();
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(library.error().where, (root_ / "bin/gossamer_torch.so").string());
  EXPECT_THAT(library.error().fix, HasSubstr("make torch"));
}

// Claim: a module of another version is never called, and the error has both versions.
TEST_F(TorchLibraryTest, RefusesAnotherVersion) {
  fs::copy(TEST_OTHER_TORCH, root_ / "bin/gossamer_torch.so");
  const auto library = open();
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(library.error().got, HasSubstr(std::to_string(pipeline::kTorchModuleVersion + 1)));
  EXPECT_THAT(library.error().expected, HasSubstr(std::to_string(pipeline::kTorchModuleVersion)));
  EXPECT_THAT(library.error().fix, HasSubstr("torch"));
}

// Claim: a file that is no module is refused with the loader's words and what to do.
TEST_F(TorchLibraryTest, RefusesWhatIsNoModule) {
  std::ofstream(root_ / "bin/gossamer_torch.so") << "no library";
  const auto library = open();
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().kind, ErrorKind::kRefused);
  EXPECT_FALSE(library.error().got.empty());
  EXPECT_THAT(library.error().fix, HasSubstr("make torch"));
}

}  // namespace
}  // namespace gossamer::commands
