// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/rng.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/tokens/token_file_writer.h"

namespace gossamer::tokens {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kDigest = 0x1234'5678'9ABC'DEF0;

std::vector<TokenId> some_tokens(std::size_t count, std::uint32_t vocabulary, std::uint64_t seed = 5) {
  Rng rng(seed, Purpose::kTest);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(rng.below(vocabulary));
  return tokens;
}

// Writes the tokens, all but the last of which came from two bytes each, as one document.
Result<void> write(host::Disk& disk, const std::vector<TokenId>& tokens, std::uint32_t vocabulary) {
  auto writer = TokenFileWriter::create(disk, "dir/text.tokens",
                                        {.vocabulary = vocabulary, .tokenizer_digest = kDigest});
  if (!writer.ok()) return writer.error();
  if (!tokens.empty()) {
    const auto text = std::span(tokens).first(tokens.size() - 1);
    if (auto done = (*writer)->add(text, 2 * text.size()); !done.ok()) return done;
    if (auto done = (*writer)->end_document(tokens.back()); !done.ok()) return done;
  }
  EXPECT_EQ((*writer)->tokens(), tokens.size());
  return (*writer)->finish();
}

std::string written(const std::vector<TokenId>& tokens, std::uint32_t vocabulary) {
  host::SimDisk disk;
  const auto done = write(disk, tokens, vocabulary);
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(*disk.list("dir"), std::vector<std::string>{"text.tokens"});
  return *host::read_text(disk, "dir/text.tokens");
}

Result<std::unique_ptr<TokenFile>> opened(const std::string& bytes, int workers = 2) {
  host::SimDisk disk;
  EXPECT_TRUE(host::replace_file(disk, "text.tokens", bytes).ok());
  host::SimCompute compute({.workers = workers});
  return TokenFile::open(disk, "text.tokens", compute);
}

std::vector<TokenId> all_tokens(const TokenFile& file) {
  std::vector<TokenId> tokens(file.size());
  file.copy(0, tokens);
  return tokens;
}

template <class T>
T get(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void set(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Makes every checksum right again: what is left to find is the lie itself.
std::string resealed(std::string bytes) {
  const std::size_t end = bytes.size() - sizeof(layout::Trailer);
  auto trailer = get<layout::Trailer>(bytes, end);
  const std::uint64_t size = trailer.tokens * get<std::uint32_t>(bytes, 12);
  if (trailer.footer_offset + 8 == end && size <= end - 16) {
    set(bytes, trailer.footer_offset, XXH3_64bits(bytes.data() + 16, size));
  }
  if (trailer.footer_offset <= end) {
    trailer.footer_checksum = XXH3_64bits(bytes.data() + trailer.footer_offset, end - trailer.footer_offset);
  }
  trailer.trailer_checksum = XXH3_64bits(&trailer, offsetof(layout::Trailer, trailer_checksum));
  set(bytes, end, trailer);
  return bytes;
}

// Claim: what was written is read, tokens and counts, for all small sizes, both widths and any workers.
TEST(TokenFile, RoundTrip) {
  for (const std::uint32_t vocabulary : {1U, 257U, 65'536U, 65'537U, 0xFFFFFFFFU}) {
    for (std::size_t size = 0; size <= 17; ++size) {
      const auto tokens = some_tokens(size, vocabulary);
      const auto file = opened(written(tokens, vocabulary), 1 + static_cast<int>(size % 3));
      ASSERT_TRUE(file.ok()) << file.error().message();
      EXPECT_EQ((*file)->size(), size);
      EXPECT_EQ(all_tokens(**file), tokens);
      EXPECT_EQ((*file)->vocabulary(), vocabulary);
      EXPECT_EQ((*file)->text_bytes(), size == 0 ? 0 : 2 * (size - 1));
      EXPECT_EQ((*file)->documents(), size == 0 ? 0U : 1U);
      EXPECT_EQ((*file)->tokenizer_digest(), kDigest);
      EXPECT_EQ((*file)->name(), "text.tokens");
    }
  }
}

// Claim: any part of the tokens is copied, and a part outside the file is caught.
TEST(TokenFile, CopiesAnyPart) {
  for (const std::uint32_t vocabulary : {300U, 70'000U}) {
    const auto tokens = some_tokens(12, vocabulary);
    const auto file = opened(written(tokens, vocabulary));
    for (std::size_t from = 0; from <= 12; ++from) {
      for (std::size_t size = 0; from + size <= 12; ++size) {
        std::vector<TokenId> out(size);
        (*file)->copy(from, out);
        EXPECT_TRUE(std::equal(out.begin(), out.end(), tokens.begin() + static_cast<std::ptrdiff_t>(from)));
      }
    }
    std::vector<TokenId> two(2);
    EXPECT_DEATH((*file)->copy(11, two), "CHECK failed");
    EXPECT_DEATH((*file)->copy(UINT64_MAX, two), "CHECK failed");
  }
}

// Claim: the file is the same however the tokens came, one by one or together, over several blocks too.
TEST(TokenFile, PiecesDoNotMatter) {
  // Two whole blocks and a rest, in pieces that divide neither buffer nor block.
  const auto tokens = some_tokens(2 * (layout::kBlockBytes / 2) + 1234, 5000);
  host::SimDisk disk;
  auto writer = TokenFileWriter::create(disk, "a", {.vocabulary = 5000});
  for (std::size_t at = 0, size = 1; at < tokens.size(); at += size, size = 3 * size % 700'001 + 1) {
    const auto rest = std::span(tokens).subspan(at);
    ASSERT_TRUE((*writer)->add(rest.first(std::min(size, rest.size())), 0).ok());
  }
  ASSERT_TRUE((*writer)->finish().ok());
  auto whole = TokenFileWriter::create(disk, "b", {.vocabulary = 5000});
  ASSERT_TRUE((*whole)->add(tokens, 0).ok());
  ASSERT_TRUE((*whole)->finish().ok());
  const std::string bytes = *host::read_text(disk, "a");
  EXPECT_TRUE(bytes == *host::read_text(disk, "b"));
  EXPECT_EQ(bytes.size(), 16 + 2 * tokens.size() + 4 + std::size_t{3} * 8 + 80);
  for (const int workers : {1, 2, 5}) {
    const auto file = opened(bytes, workers);
    ASSERT_TRUE(file.ok()) << file.error().message();
    EXPECT_TRUE(all_tokens(**file) == tokens);
  }
  for (const std::size_t block : {0U, 1U, 2U}) {
    std::string bad = bytes;
    const std::size_t at = 16 + block * layout::kBlockBytes + 100;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    for (const int workers : {1, 5}) {
      EXPECT_THAT(opened(bad, workers).error().message(),
                  HasSubstr("block " + std::to_string(block) + " at byte " +
                            std::to_string(16 + block * layout::kBlockBytes) + ": its checksum"));
    }
  }
}

// Claim: a block that ends with the tokens is the last one; no empty block follows it.
TEST(TokenFile, WholeBlocks) {
  const auto tokens = some_tokens(layout::kBlockBytes / 4, 70'000);
  const std::string bytes = written(tokens, 70'000);
  EXPECT_EQ(bytes.size(), 16 + layout::kBlockBytes + 8 + 80);
  const auto file = opened(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_TRUE(all_tokens(**file) == tokens);
}

// Claim: the bytes are those of docs/protocols/token-file.md: five tokens, by hand.
TEST(TokenFile, BytesAreThoseOfTheFormatPage) {
  const std::string bytes = written({1, 2, 513, 256, 7}, 514);
  ASSERT_EQ(bytes.size(), 16 + 16 + 8 + 80U);
  EXPECT_EQ(bytes.substr(0, 8), "GSMRTOKN");
  EXPECT_EQ(get<std::uint32_t>(bytes, 8), 1U);
  EXPECT_EQ(get<std::uint32_t>(bytes, 12), 2U);
  EXPECT_EQ(bytes.substr(16, 16), std::string("\1\0\2\0\1\2\0\1\7\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(get<std::uint64_t>(bytes, 32), XXH3_64bits(bytes.data() + 16, 10));
  EXPECT_EQ(bytes.substr(40, 8), "GSMRTAIL");
  EXPECT_EQ(get<std::uint32_t>(bytes, 40 + 8), 1U);
  EXPECT_EQ(get<std::uint32_t>(bytes, 40 + 12), 514U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 40 + 16), 5U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 40 + 24), 8U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 40 + 32), 1U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 40 + 40), kDigest);
  EXPECT_EQ(get<std::uint64_t>(bytes, 40 + 48), 32U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 40 + 56), 8U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 40 + 64), XXH3_64bits(bytes.data() + 32, 8));
  EXPECT_EQ(get<std::uint64_t>(bytes, 40 + 72), XXH3_64bits(bytes.data() + 40, 72));
  EXPECT_EQ(get<std::uint32_t>(written({1}, 65'537), 12), 4U);
  EXPECT_EQ(opened(bytes).operator*()->checksum(), get<std::uint64_t>(bytes, 40 + 72));
}

// Claim: the checksum changes with any token, their order, the vocabulary and the tokenizer.
TEST(TokenFile, ChecksumTellsFilesApart) {
  const auto sum = [](const std::vector<TokenId>& tokens, std::uint32_t vocabulary) {
    return (*opened(written(tokens, vocabulary)))->checksum();
  };
  EXPECT_EQ(sum({1, 2, 3}, 9), sum({1, 2, 3}, 9));
  EXPECT_NE(sum({1, 2, 3}, 9), sum({1, 3, 2}, 9));
  EXPECT_NE(sum({1, 2, 3}, 9), sum({1, 2, 4}, 9));
  EXPECT_NE(sum({1, 2, 3}, 9), sum({1, 2, 3}, 10));
}

// Claim: a file cut off anywhere, with bytes behind it, or with any one byte changed, is refused by name.
TEST(TokenFile, RefusesDamage) {
  for (const std::uint32_t vocabulary : {600U, 66'000U}) {
    const std::string bytes = written(some_tokens(11, vocabulary), vocabulary);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto read = opened(bytes.substr(0, size));
      ASSERT_FALSE(read.ok()) << size;
      ASSERT_EQ(read.error().kind, ErrorKind::kBadData);
      ASSERT_EQ(read.error().where, "text.tokens");
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bad = bytes;
        bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
        const auto read = opened(bad);
        ASSERT_FALSE(read.ok()) << i;
        ASSERT_EQ(read.error().kind, ErrorKind::kBadData);
      }
    }
    EXPECT_FALSE(opened(bytes + std::string(8, '\0')).ok());
    EXPECT_FALSE(opened(bytes + bytes).ok());
  }
}

// Claim: what is wrong with a file is said in words.
TEST(TokenFile, NamesDamage) {
  const std::string bytes = written(some_tokens(11, 600), 600);
  EXPECT_EQ(opened("hello").error().message(),
            "text.tokens: this is not a token file: got another kind of file; expected a file that starts "
            "with GSMRTOKN; import the text again");
  EXPECT_EQ(opened(bytes.substr(0, 100)).error().message(),
            "text.tokens: the token file is cut off: got 100 bytes without a trailer; expected the whole "
            "file; import the text again");
  EXPECT_EQ(opened(bytes.substr(0, 16)).error().what, "the token file is cut off");
  std::string flipped = bytes;
  flipped[17] = static_cast<char>(flipped[17] ^ 1);
  EXPECT_EQ(opened(flipped).error().message(),
            "text.tokens: the token file is damaged: got block 0 at byte 16: its checksum does not match "
            "its bytes; expected the bytes as written; import the text again");
  std::string newer = bytes;
  newer[8] = 2;
  EXPECT_EQ(opened(newer).error().message(),
            "text.tokens: the token file has another version: got version 2; expected version 1; import "
            "the text again");
  host::SimDisk disk;
  host::SimCompute compute({.workers = 1});
  EXPECT_EQ(TokenFile::open(disk, "missing", compute).error().kind, ErrorKind::kFailed);
}

// Claim: lies with right checksums are found: counts, places, padding, and tokens outside the vocabulary.
TEST(TokenFile, NamesLies) {
  const std::string bytes = written({1, 2, 513, 256, 7}, 514);
  const auto lie = [&](std::size_t at, auto value) {
    std::string bad = bytes;
    set(bad, at, value);
    const auto read = opened(resealed(bad));
    return read.ok() ? std::string("ok") : read.error().message();
  };
  EXPECT_EQ(lie(16, std::uint16_t{513}), "ok");
  EXPECT_THAT(lie(16, std::uint16_t{514}), HasSubstr("block 0 at byte 16: a token is not in the vocabulary"));
  EXPECT_THAT(lie(24, std::uint16_t{514}), HasSubstr("a token is not in the vocabulary"));
  EXPECT_THAT(lie(40 + 12, std::uint32_t{513}), HasSubstr("a token is not in the vocabulary"));
  EXPECT_THAT(lie(26, std::uint16_t{1}), HasSubstr("padding that is not zero"));
  EXPECT_THAT(lie(31, std::uint8_t{1}), HasSubstr("padding that is not zero"));
  constexpr const char* kContradicts = "a trailer that contradicts the file";
  EXPECT_THAT(lie(12, std::uint32_t{4}), HasSubstr(kContradicts));
  EXPECT_THAT(lie(40 + 8, std::uint32_t{2}), HasSubstr(kContradicts));
  EXPECT_THAT(lie(40 + 12, std::uint32_t{0}), HasSubstr(kContradicts));
  EXPECT_THAT(lie(40 + 12, std::uint32_t{65'537}), HasSubstr(kContradicts));
  for (const std::uint64_t tokens : {std::uint64_t{4}, std::uint64_t{9}, UINT64_MAX, UINT64_MAX / 2 + 1}) {
    EXPECT_THAT(lie(40 + 16, tokens), HasSubstr(kContradicts));
  }
  EXPECT_THAT(lie(40 + 32, std::uint64_t{6}), HasSubstr(kContradicts));
  EXPECT_THAT(lie(40 + 48, std::uint64_t{24}), HasSubstr(kContradicts));
  EXPECT_THAT(lie(40 + 56, std::uint64_t{0}), HasSubstr(kContradicts));
}

// Claim: the trailer binds the footer. Tokens that were changed together with their checksum are found.
TEST(TokenFile, TrailerBindsTheFooter) {
  std::string bytes = written({1, 2, 513, 256, 7}, 514);
  set(bytes, 16, std::uint16_t{3});
  set(bytes, 32, std::uint64_t{XXH3_64bits(bytes.data() + 16, 10)});
  EXPECT_THAT(opened(bytes).error().message(), HasSubstr("a footer whose checksum does not match"));
}

// Claim: with right checksums everywhere, no changed word leads to a crash or to a token outside the
// vocabulary.
TEST(TokenFile, SurvivesLies) {
  const std::string bytes = written(some_tokens(11, 600), 600);
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    for (const std::uint32_t lie : {0U, 1U, 5U, 255U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
      std::string bad = bytes;
      set(bad, at, lie);
      const auto read = opened(resealed(bad));
      if (!read.ok()) continue;
      for (const TokenId token : all_tokens(**read)) ASSERT_LT(token, (*read)->vocabulary());
    }
  }
}

// Claim: a writer that is dropped before the end leaves nothing behind, and what was there stays.
TEST(TokenFileWriter, DroppedWriterLeavesNothing) {
  host::SimDisk disk;
  ASSERT_TRUE(host::replace_file(disk, "text.tokens", "old").ok());
  {
    auto writer = TokenFileWriter::create(disk, "text.tokens", {.vocabulary = 9});
    ASSERT_TRUE((*writer)->add(std::vector<TokenId>{1, 2}, 2).ok());
  }
  EXPECT_EQ(*disk.list("."), std::vector<std::string>{"text.tokens"});
  EXPECT_EQ(*host::read_text(disk, "text.tokens"), "old");
}

// Claim: a crash at any operation leaves the file of before, or none where there was none, or the whole new
// one. If finish() succeeded, the new one is there, in its directory. After a crash, writing again succeeds.
TEST(TokenFileWriter, SurvivesACrashAnywhere) {
  const auto before = some_tokens(40, 600, 1);
  const auto after = some_tokens(700'000, 600, 2);  // two buffers
  for (const bool replace : {false, true}) {
    const auto prepare = [&](host::SimDisk& disk) { EXPECT_TRUE(!replace || write(disk, before, 600).ok()); };
    host::SimDisk rehearsal;
    prepare(rehearsal);
    rehearsal.restart_count({});
    ASSERT_TRUE(write(rehearsal, after, 600).ok());
    for (std::uint64_t k = 0; k <= rehearsal.operations(); ++k) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(testing::Message() << "replace " << replace << ", operation " << k << ", seed " << seed);
        host::SimDisk disk;
        prepare(disk);
        disk.restart_count({.seed = seed, .crash_at_operation = k});
        const bool done = write(disk, after, 600).ok();
        const auto later = disk.after_crash();
        host::SimCompute compute({.workers = 2});
        const auto file = TokenFile::open(*later, "dir/text.tokens", compute);
        if (file.ok()) {
          const auto found = all_tokens(**file);
          EXPECT_TRUE(found == after || (replace && !done && found == before));
        } else {
          EXPECT_TRUE(!replace && !done && file.error().kind == ErrorKind::kFailed) << file.error().message();
        }
        ASSERT_TRUE(write(*later, after, 600).ok());
        EXPECT_TRUE(all_tokens(**TokenFile::open(*later, "dir/text.tokens", compute)) == after);
      }
    }
  }
}

// Claim: an error of any one operation, or a full disk, is returned. The file of before or the whole new one
// is there then, and no temporary file, if the disk still removes files.
TEST(TokenFileWriter, SurvivesAnErrorAnywhere) {
  const auto before = some_tokens(40, 600, 1);
  const auto after = some_tokens(700'000, 600, 2);
  host::SimDisk rehearsal;
  ASSERT_TRUE(write(rehearsal, before, 600).ok());
  rehearsal.restart_count({});
  ASSERT_TRUE(write(rehearsal, after, 600).ok());
  host::SimCompute compute({.workers = 1});
  for (std::uint64_t k = 0; k < rehearsal.operations(); ++k) {
    SCOPED_TRACE(k);
    host::SimDisk disk;
    ASSERT_TRUE(write(disk, before, 600).ok());
    disk.restart_count({.fail_at_operation = k});
    const auto done = write(disk, after, 600);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, ErrorKind::kFailed);
    EXPECT_EQ(*disk.list("dir"), std::vector<std::string>{"text.tokens"});
    const auto found = all_tokens(**TokenFile::open(disk, "dir/text.tokens", compute));
    EXPECT_TRUE(found == before || (k + 1 == rehearsal.operations() && found == after));
  }
  const std::uint64_t used = *rehearsal.file_size("dir/text.tokens");
  for (const std::uint64_t room : {std::uint64_t{0}, std::uint64_t{10}, std::uint64_t{1'048'592}, used - 1}) {
    SCOPED_TRACE(room);
    host::SimDisk disk;
    ASSERT_TRUE(write(disk, before, 600).ok());
    disk.restart_count({.capacity_bytes = *disk.file_size("dir/text.tokens") + room});
    EXPECT_FALSE(write(disk, after, 600).ok());
    EXPECT_EQ(*disk.list("dir"), std::vector<std::string>{"text.tokens"});
    EXPECT_TRUE(all_tokens(**TokenFile::open(disk, "dir/text.tokens", compute)) == before);
  }
}

// Claim: the writer's preconditions are checked: they are ours, not the user's.
TEST(TokenFileWriterDeathTest, ChecksTokens) {
  host::SimDisk disk;
  EXPECT_DEATH((void)TokenFileWriter::create(disk, "t", {}).ok(), "CHECK failed");
  auto writer = TokenFileWriter::create(disk, "t", {.vocabulary = 9});
  EXPECT_DEATH((void)(*writer)->add(std::vector<TokenId>{1, 9}, 2).ok(), "CHECK failed");
  EXPECT_DEATH((void)(*writer)->end_document(9).ok(), "CHECK failed");
  ASSERT_TRUE((*writer)->finish().ok());
  EXPECT_DEATH((void)(*writer)->finish().ok(), "CHECK failed");
}

}  // namespace
}  // namespace gossamer::tokens
