// SPDX-License-Identifier: Apache-2.0
#include "tensors/stored_zip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <memory>
#include <string>

#include "host/api/files.h"
#include "host/sim/disk.h"
#include "tensors/buffered_file.h"

namespace gossamer::tensors {
namespace {

std::uint64_t number(std::string_view file, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(file[at + i])} << (8 * i);
  }
  return value;
}

// An archive of two files, one of them of rows with gaps.
std::string archive() {
  constexpr std::string_view kRows = "ab..cd..ef";
  host::SimDisk disk;
  auto file = disk.open_writable("f", host::WriteMode::kTruncate);
  EXPECT_TRUE(file.ok());
  StoredZip zip(**file);
  EXPECT_TRUE(zip.add("first", "12345").ok());
  EXPECT_TRUE(zip.add("rows", {.data = reinterpret_cast<const std::byte*>(kRows.data()),
                               .rows = 3,
                               .row_bytes = 2,
                               .stride_bytes = 4})
                  .ok());
  EXPECT_TRUE(zip.add("empty", ByteRows{}).ok());
  EXPECT_TRUE(zip.finish().ok());
  EXPECT_TRUE((*file)->close().ok());
  auto text = host::read_text(disk, "f");
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : "";
}

// A reader that follows the archive from its end finds each file. The directory has their places and
// checksums. Contents are without gaps and start on multiples of 64 bytes. (Python's zipfile and PyTorch read
// it in tests/process.)
TEST(StoredZip, DirectoryLeadsToContents) {
  const std::string file = archive();
  constexpr std::size_t kEnd = 22;
  constexpr std::size_t kLocator = 20;
  ASSERT_GT(file.size(), kEnd + kLocator);
  ASSERT_EQ(file.substr(file.size() - kEnd, 4), "PK\x05\x06");
  const std::size_t locator = file.size() - kEnd - kLocator;
  ASSERT_EQ(file.substr(locator, 4), "PK\x06\x07");
  const std::size_t end64 = number(file, locator + 8, 8);
  ASSERT_EQ(file.substr(end64, 4), "PK\x06\x06");
  ASSERT_EQ(number(file, end64 + 24, 8), 3U);
  std::size_t at = number(file, end64 + 48, 8);
  EXPECT_EQ(at + number(file, end64 + 40, 8), end64);
  const std::array<std::pair<std::string, std::string>, 3> expected = {
      {{"first", "12345"}, {"rows", "abcdef"}, {"empty", ""}}};
  for (const auto& [name, content] : expected) {
    ASSERT_EQ(file.substr(at, 4), "PK\x01\x02") << name;
    const std::size_t extra = at + 46 + name.size();
    EXPECT_EQ(file.substr(at + 46, name.size()), name);
    EXPECT_EQ(number(file, extra + 4, 8), content.size());
    EXPECT_EQ(number(file, extra + 12, 8), content.size());
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    EXPECT_EQ(number(file, at + 16, 4), crc);
    const std::size_t local = number(file, extra + 20, 8);
    ASSERT_EQ(file.substr(local, 4), "PK\x03\x04") << name;
    EXPECT_EQ(number(file, local + 14, 4), crc);
    const std::size_t begin = local + 30 + number(file, local + 26, 2) + number(file, local + 28, 2);
    EXPECT_EQ(begin % 64, 0U) << name;
    EXPECT_EQ(file.substr(begin, content.size()), content);
    at = extra + number(file, at + 30, 2);
  }
  EXPECT_EQ(at, end64);
}

// Claim: pieces of any size come to the file in the order in which they were appended.
TEST(BufferedFile, KeepsTheOrder) {
  host::SimDisk disk;
  auto file = disk.open_writable("f", host::WriteMode::kTruncate);
  ASSERT_TRUE(file.ok());
  BufferedFile buffered(**file);
  const std::string large(3 << 20, 'L');
  const std::string middle(1 << 20, 'M');
  std::string expected;
  for (const std::string& piece : {std::string("a"), large, std::string("b"), middle, middle, large, large}) {
    ASSERT_TRUE(buffered.append(piece).ok());
    expected += piece;
    EXPECT_EQ(buffered.appended(), expected.size());
  }
  ASSERT_TRUE(buffered.flush().ok());
  ASSERT_TRUE((*file)->close().ok());
  EXPECT_TRUE(*host::read_text(disk, "f") == expected);
}

// The archive holds no time, no user, and nothing else of the machine.
TEST(StoredZip, SameBytesAgain) { EXPECT_EQ(archive(), archive()); }

}  // namespace
}  // namespace gossamer::tensors
