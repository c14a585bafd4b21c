// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/byte_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/rng.h"
#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::data {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

Result<std::string> unpacked(const std::string& bytes) {
  host::SimDisk disk;
  EXPECT_TRUE(host::replace_file(disk, "file", bytes).ok());
  auto source = open_bytes(disk, "file");
  if (!source.ok()) return source.error();
  return read_all(**source);
}

// A text that is compressible and longer than the buffers inside.
std::string long_text() {
  Rng rng(1, Purpose::kTest);
  std::string text;
  while (text.size() < 2'000'000) text += std::to_string(rng.below(1000)) + (rng.below(10) == 0 ? "\n" : " ");
  return text;
}

// The packing is told by content, whatever the name; several members and frames are one text.
TEST(ByteSource, UnpacksByContent) {
  const std::string text = long_text();
  EXPECT_EQ(*unpacked(text), text);
  EXPECT_EQ(*unpacked(gzip(text)), text);
  EXPECT_EQ(*unpacked(zstd(text)), text);
  EXPECT_EQ(*unpacked(gzip(text) + gzip("more")), text + "more");
  EXPECT_EQ(*unpacked(zstd(text) + zstd("more")), text + "more");
  EXPECT_EQ(*unpacked(std::string("\x50\x2A\x4D\x18\x02\0\0\0ab", 10) + zstd("x")), "x");
  EXPECT_EQ(*unpacked(gzip("") + gzip("a")), "a");
  EXPECT_EQ(*unpacked(gzip("a") + std::string(600'000, '\0')), "a");
  EXPECT_EQ(*unpacked(""), "");
  EXPECT_EQ(*unpacked("\x1F"), "\x1F");
}

// read() fills what it is given, whatever the size, up to the end.
TEST(ByteSource, ReadsInAnySize) {
  const std::string text = long_text().substr(0, 5000);
  for (const std::string& file : {text, gzip(text), zstd(text)}) {
    for (const std::size_t size : {1U, 7U, 4096U, 10'000U}) {
      host::SimDisk disk;
      ASSERT_TRUE(host::replace_file(disk, "file", file).ok());
      auto source = open_bytes(disk, "file");
      std::string got;
      std::string part(size, '\0');
      for (;;) {
        const auto bytes = (*source)->read(std::as_writable_bytes(std::span(part)));
        ASSERT_TRUE(bytes.ok());
        got.append(part, 0, *bytes);
        if (*bytes < size) break;
      }
      EXPECT_EQ(got, text) << size;
      EXPECT_EQ(*(*source)->read(std::as_writable_bytes(std::span(part))), 0U);
    }
  }
}

// An archive cut off anywhere is bad data that names the file and the byte, never a short text.
TEST(ByteSource, RefusesTruncatedArchives) {
  const std::string text = long_text().substr(0, 300);
  for (const std::string& packed : {gzip(text), zstd(text)}) {
    for (std::size_t size = 4; size < packed.size(); ++size) {
      const auto got = unpacked(packed.substr(0, size));
      ASSERT_FALSE(got.ok()) << size;
      EXPECT_EQ(got.error().kind, ErrorKind::kBadData);
      EXPECT_EQ(got.error().where, "file");
    }
  }
  EXPECT_EQ(unpacked(gzip(text).substr(0, 50)).error().message(),
            "file: cannot unpack the gzip archive: got the end of the file at byte 50; expected more gzip "
            "data: the "
            "file was cut off; get the file again, or unpack what can be saved and use that");
  EXPECT_EQ(unpacked(zstd(text).substr(0, 50)).error().message(),
            "file: cannot unpack the zstd archive: got the end of the file at byte 50; expected more zstd "
            "data: the "
            "file was cut off; get the file again, or unpack what can be saved and use that");
}

// A flipped bit in the packed data is found, at the latest by the archive's own checksum.
TEST(ByteSource, RefusesDamagedArchives) {
  const std::string text = long_text().substr(0, 300);
  std::string packed = gzip(text);
  for (std::size_t i = 10; i < packed.size(); ++i) {
    packed[i] = static_cast<char>(packed[i] ^ 4);
    const auto got = unpacked(packed);
    EXPECT_FALSE(got.ok()) << i;
    packed[i] = static_cast<char>(packed[i] ^ 4);
  }
  EXPECT_EQ(unpacked(gzip(text) + "tail").error().message(),
            "file: cannot unpack the gzip archive: got bytes behind the end of the archive that are no "
            "archive near "
            "byte " +
                std::to_string(gzip(text).size()) +
                "; expected intact gzip data; get the file again, or unpack what can be saved and use that");
}

// Known archives that we do not read are refused by name instead of being parsed as text.
TEST(ByteSource, NamesForeignArchives) {
  EXPECT_EQ(
      unpacked(std::string("\xFD\x37zXZ\0abc", 9)).error().message(),
      "file: cannot read this kind of archive: got xz data; expected plain, gzip or zstd; unpack it first");
  EXPECT_THAT(unpacked("BZh91AY&SYabc").error().message(), testing::HasSubstr("got bzip2 data"));
  EXPECT_THAT(unpacked("PK\3\4abc").error().message(), testing::HasSubstr("got zip data"));
  EXPECT_TRUE(unpacked("BZh").ok());
}

// "-" is standard input; a missing file is the disk's error; a limit is kept.
TEST(ByteSource, NamesAndLimits) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("/dev").ok());
  ASSERT_TRUE(host::replace_file(disk, "/dev/stdin", "typed").ok());
  auto source = open_bytes(disk, "-");
  EXPECT_EQ((*source)->name(), "stdin");
  EXPECT_EQ(*read_all(**source), "typed");
  EXPECT_EQ(open_bytes(disk, "missing").error().kind, ErrorKind::kFailed);
  const auto memory = memory_source("m", "12345");
  EXPECT_EQ(read_all(*memory, 4).error().message(),
            "m: the file is too large to be read whole: got more than 4 bytes; expected at most 4 bytes");
}

// Claim: a source whose first 64 KiB were shown gives the same bytes still, full buffers until its end, and
// has its name. What the look refuses is the error.
TEST(ByteSource, IsLookedAtFirst) {
  host::SimDisk disk;
  for (const std::size_t size : {0U, 10U, 65'535U, 65'536U, 65'537U, 200'000U}) {
    SCOPED_TRACE(size);
    const std::string text = long_text().substr(0, size);
    ASSERT_TRUE(host::replace_file(disk, "file", text).ok());
    std::string shown;
    auto source = look_first(*open_bytes(disk, "file"), [&shown](std::string_view begin) -> Result<void> {
      shown = begin;
      return {};
    });
    ASSERT_TRUE(source.ok());
    EXPECT_EQ(shown, text.substr(0, std::size_t{64} << 10));
    EXPECT_EQ((*source)->name(), "file");
    std::string all;
    for (std::string buffer(7'001, '\0');;) {
      const auto got = (*source)->read(std::as_writable_bytes(std::span(buffer)));
      ASSERT_TRUE(got.ok());
      all += buffer.substr(0, *got);
      if (*got < buffer.size()) break;
    }
    EXPECT_EQ(all, text);
  }
  const auto refused = look_first(*open_bytes(disk, "file"), [](std::string_view) -> Result<void> {
    return Error{.kind = ErrorKind::kBadData, .what = "no"};
  });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().what, "no");
}

}  // namespace
}  // namespace gossamer::data
