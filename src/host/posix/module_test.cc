// SPDX-License-Identifier: Apache-2.0
#include "host/posix/module.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

// The module has one of this name, too.
extern "C" int gossamer_test_shared_name();
int gossamer_test_shared_name() { return 1; }

namespace gossamer::host {
namespace {

constexpr const char* kAnswer = "gossamer_test_answer";

// Claim: what could not be opened is no open module, and what was opened is one. (It comes first: a module
// stays open.)
TEST(Module, IsKnownToBeOpen) {
  EXPECT_FALSE(open_module(testing::TempDir() + "absent.so", kAnswer).ok());
  EXPECT_FALSE(any_module_open());
  ASSERT_TRUE(open_module(TEST_MODULE, kAnswer).ok());
  EXPECT_TRUE(any_module_open());
}

// Claim: a process ends with its status and what its streams hold, and without what would run at its exit.
TEST(Module, EndsTheProcessAtOnce) {
  EXPECT_EXIT(
      {
        static char buffer[256];
        std::setvbuf(stderr, buffer, _IOFBF, sizeof buffer);
        (void)std::fwrite("told last", 1, 9, stderr);
        std::atexit([] { std::abort(); });
        end_process(7);
      },
      testing::ExitedWithCode(7), "told last");
}

// Claim: a module opens, and its functions can be called; opened again it is the same.
TEST(Module, Opens) {
  const auto address = open_module(TEST_MODULE, kAnswer);
  ASSERT_TRUE(address.ok()) << address.error().message();
  EXPECT_EQ(reinterpret_cast<int (*)()>(*address)(), 42);
  const auto again = open_module(TEST_MODULE, kAnswer);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *address);
}

// Claim: a module uses the program's function of a name that both have, or its own if that is asked for. The
// process is another one, since a module that is open stays as it is.
TEST(Module, LooksForNamesWhereItIsTold) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end a process whose module looks for names in its own first";
#endif
  const auto used = [](ModuleNames names) {
    const auto address = open_module(TEST_MODULE, "gossamer_test_used_name", names);
    std::_Exit(address.ok() ? reinterpret_cast<int (*)()>(*address)() : 9);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(used(ModuleNames::kOfTheProgram), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(used(ModuleNames::kItsOwn), testing::ExitedWithCode(2), "");
}

// Claim: a library that the module needs and that is not there is named.
TEST(Module, NamesTheLibraryThatIsMissing) {
  const auto address = open_module(TEST_MODULE_THAT_NEEDS, kAnswer);
  ASSERT_FALSE(address.ok());
  EXPECT_EQ(address.error().where, TEST_MODULE_THAT_NEEDS);
  EXPECT_NE(address.error().got.find("libgossamer_test_gone"), std::string::npos)
      << address.error().message();
}

// Claim: no file, a file that is no library and a library of others are errors that name the file.
TEST(Module, RefusesWhatIsNone) {
  const std::string absent = testing::TempDir() + "absent.so";
  EXPECT_EQ(open_module(absent, kAnswer).error().where, absent);
  const std::string text = testing::TempDir() + "text.so";
  std::ofstream(text) << "no library";
  EXPECT_EQ(open_module(text, kAnswer).error().where, text);
  const auto other = open_module(TEST_MODULE, "gossamer_other_answer");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().where, TEST_MODULE);
  EXPECT_NE(other.error().got.find("gossamer_other_answer"), std::string::npos);
}

}  // namespace
}  // namespace gossamer::host
