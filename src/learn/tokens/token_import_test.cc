// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/token_import.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/tokens/byte_tokenizer.h"
#include "learn/tokens/token_file.h"

namespace gossamer::tokens {
namespace {

const std::vector<std::string> kSources = {"text.txt", "more"};

void prepare(host::SimDisk& disk) {
  ASSERT_TRUE(disk.make_directories("more").ok());
  ASSERT_TRUE(host::replace_file(disk, "text.txt", "\xEF\xBB\xBFone\r\ntwo").ok());
  ASSERT_TRUE(host::replace_file(disk, "more/a.jsonl",
                                 "{\"text\": \"x\\u0000y\"}\n{\"text\": \"\"}\n{\"text\": \"\xC3\xA9\"}\n")
                  .ok());
  ASSERT_TRUE(host::replace_file(disk, "out/text.tokens", "old").ok());
}

Result<TokenReport> imported(host::SimDisk& disk, const TextOptions& options = {}) {
  return import_tokens(disk, kSources, ByteTokenizer(), "out/text.tokens", options);
}

// Claim: the file has the tokens of all documents in order, each with the end of text behind it, whatever the
// sizes of pieces and chunks and the workers. Its counts are those of the report.
TEST(TokenImport, DocumentsBecomeTokens) {
  std::string first;
  for (const std::size_t size : {4U, 6U, 1000U}) {
    host::SimDisk disk;
    ASSERT_TRUE(disk.make_directories("out").ok());
    prepare(disk);
    host::SimCompute compute({.workers = 3});
    const auto report =
        imported(disk, {.piece_bytes = size, .read = {.limits = {.chunk_bytes = size}, .compute = &compute}});
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(report->text.documents, 3U);
    EXPECT_EQ(report->text.empty, 1U);
    EXPECT_EQ(report->text.files, 2U);
    EXPECT_EQ(report->text.bytes, 8U + 3U + 2U);
    EXPECT_EQ(report->tokens, report->text.bytes + 3);
    const auto file = TokenFile::open(disk, "out/text.tokens", compute);
    ASSERT_TRUE(file.ok()) << file.error().message();
    EXPECT_EQ((*file)->size(), report->tokens);
    EXPECT_EQ((*file)->documents(), 3U);
    EXPECT_EQ((*file)->text_bytes(), report->text.bytes);
    EXPECT_EQ((*file)->vocabulary(), 257U);
    EXPECT_EQ((*file)->tokenizer_digest(), ByteTokenizer().digest());
    std::vector<TokenId> tokens((*file)->size());
    (*file)->copy(0, tokens);
    EXPECT_EQ(tokens, (std::vector<TokenId>{'o', 'n', 'e', '\r', '\n', 't', 'w', 'o', 256, 'x', 0, 'y', 256,
                                            0xC3, 0xA9, 256}));
    const std::string bytes = *host::read_text(disk, "out/text.tokens");
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first);
  }
}

// Claim: on bad text, and on an error of the disk at any operation, the file of before stays, or the new one
// is whole. No temporary file stays where the disk still removes files.
TEST(TokenImport, WholeOrNotAtAll) {
  host::SimDisk rehearsal;
  ASSERT_TRUE(rehearsal.make_directories("out").ok());
  prepare(rehearsal);
  rehearsal.restart_count({});
  ASSERT_TRUE(imported(rehearsal).ok());
  const std::uint64_t operations = rehearsal.operations();
  const std::string whole = *host::read_text(rehearsal, "out/text.tokens");
  for (std::uint64_t k = 0; k < operations; ++k) {
    SCOPED_TRACE(k);
    host::SimDisk disk;
    ASSERT_TRUE(disk.make_directories("out").ok());
    prepare(disk);
    disk.restart_count({.fail_at_operation = k});
    const auto report = imported(disk);
    const std::string found = *host::read_text(disk, "out/text.tokens");
    EXPECT_TRUE(found == whole || (!report.ok() && found == "old"));
    EXPECT_EQ(*disk.list("out"), std::vector<std::string>{"text.tokens"});
  }
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("out").ok());
  prepare(disk);
  ASSERT_TRUE(host::replace_file(disk, "more/b", "\xFF").ok());
  EXPECT_EQ(imported(disk).error().where, "more/b:1:1");
  EXPECT_EQ(*host::read_text(disk, "out/text.tokens"), "old");
  EXPECT_EQ(*disk.list("out"), std::vector<std::string>{"text.tokens"});
  const auto skipped = imported(disk, {.read = {.skip_bad = 1}});
  ASSERT_TRUE(skipped.ok());
  EXPECT_EQ(skipped->text.skipped, 1U);
  EXPECT_EQ(*host::read_text(disk, "out/text.tokens"), whole);
}

}  // namespace
}  // namespace gossamer::tokens
