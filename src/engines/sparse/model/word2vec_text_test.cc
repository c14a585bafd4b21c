// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/word2vec_text.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::sparse_engine {
namespace {

// A file has one line per name, and its count is the number of lines. Blanks become '_', and a name that then
// repeats another is left out. Numbers are exact.
TEST(Word2vecText, Lines) {
  sparse::RowTable rows({.rows = 5, .width = 2}, sparse::Moments::kNone);
  const std::array<std::string_view, 4> names = {"deer", "night owl", "night_owl", ""};
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    rows.weights(i)[0] = static_cast<float>(i) + 0.5F;
    rows.weights(i)[1] = -0.1F;
  }
  host::SimDisk disk;
  auto file = disk.open_writable("f", host::WriteMode::kTruncate);
  ASSERT_TRUE(file.ok());
  const auto report = write_word2vec(
      **file, {.rows = rows, .name = [&names](std::size_t i) { return names[i]; }, .count = names.size()});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->vectors, 3U);
  EXPECT_EQ(report->repeated, 1U);
  ASSERT_TRUE((*file)->close().ok());
  const auto text = host::read_text(disk, "f");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "3 2\ndeer 0.5 -0.1\nnight_owl 1.5 -0.1\n_ 3.5 -0.1\n");
}

}  // namespace
}  // namespace gossamer::sparse_engine
