// SPDX-License-Identifier: Apache-2.0
#include "run/line_file.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "host/sim/disk.h"

namespace gossamer::run {
namespace {

// A file that was published is whole, and a crash does not take it away.
TEST(LineFile, LastsOncePublished) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    host::SimDisk disk(host::SimDiskOptions{.seed = seed});
    LineFile file(disk, "lines");
    ASSERT_TRUE(file.open().ok());
    ASSERT_TRUE(file.line("one").ok());
    ASSERT_TRUE(file.line("two").ok());
    ASSERT_TRUE(file.publish().ok());
    const auto text = host::read_text(*disk.after_crash(), "lines");
    ASSERT_TRUE(text.ok()) << seed;
    EXPECT_EQ(*text, "one\ntwo\n") << seed;
  }
}

}  // namespace
}  // namespace gossamer::run
