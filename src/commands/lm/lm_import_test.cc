// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "commands/lm/test_toy_stages.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using nlohmann::json;
using run::testing::SimMachine;
using run::testing::write;
using ::testing::HasSubstr;

// Claim: an import says what it has read and left out, and the look into its directory has the same counts.
TEST(LmImport, CountsWhatItReads) {
  SimMachine machine;
  ASSERT_TRUE(machine.disk.make_directories("/books/.git").ok());
  write(machine.disk, "/books/a.txt", "caf\xC3\xA9\n");
  write(machine.disk, "/books/b.jsonl", "{\"text\":\"tea\"}\nbad\n{\"text\":\"\"}\n");
  write(machine.disk, "/books/empty.txt", "");
  const auto report = import_lm(machine.host(), testing::open_toy_pieces,
                                {.kind = "lm", .sources = {"/books"}, .directory = "/out", .skip_bad = 1});
  ASSERT_TRUE(report.ok()) << report.error().message();
  const json counts = json::parse(report->json);
  EXPECT_EQ(counts["documents"], 2);
  EXPECT_EQ(counts["bytes"], 6 + 3);
  EXPECT_EQ(counts["tokens"], 6 + 3 + 2);
  EXPECT_EQ(counts["empty"], 2);
  EXPECT_EQ(counts["hidden"], 1);
  EXPECT_EQ(counts["skipped"], 1);
  EXPECT_THAT(counts["skipped_examples"][0].get<std::string>(), HasSubstr("/books/b.jsonl:2"));
  EXPECT_EQ(counts["path"], "/out/train.tokens");
  EXPECT_THAT(report->text, HasSubstr("11 tokens of 2 documents, 0.82 bytes a token; left out: 2 empty "
                                      "documents, 1 hidden file, 1 bad line"));
  const auto look = inspect_lm(machine.host(), testing::open_toy_pieces, "/out");
  ASSERT_TRUE(look.ok() && *look);
  const json seen = json::parse((**look).json);
  EXPECT_EQ(seen["documents"], 2);
  EXPECT_EQ(seen["tokens"], 11);
  EXPECT_EQ(seen["bytes"], 9);
  EXPECT_EQ(seen["begins"], "caf\xC3\xA9\ntea");
}

// Claim: a failed import leaves its directory as it was, and one that holds something is refused.
TEST(LmImport, LeavesNothingBehind) {
  SimMachine machine;
  ASSERT_TRUE(machine.disk.make_directories("/full").ok());
  write(machine.disk, "/bad.txt", "caf\xE9");
  write(machine.disk, "/full/mine", "mine");
  EXPECT_EQ(import_lm(machine.host(), testing::open_toy_pieces,
                      {.kind = "lm", .sources = {"/bad.txt"}, .directory = "/out"})
                .error()
                .where,
            "/bad.txt:1:4");
  EXPECT_FALSE(*machine.disk.exists("/out"));
  EXPECT_EQ(import_lm(machine.host(), testing::open_toy_pieces,
                      {.kind = "lm", .sources = {"/bad.txt"}, .directory = "/full"})
                .error()
                .kind,
            ErrorKind::kUsage);
}

// Claim: a directory without tokens is none of this engine; damaged tokens are an error.
TEST(LmImport, LooksAtTokensAlone) {
  SimMachine machine;
  ASSERT_TRUE(machine.disk.make_directories("/records").ok());
  write(machine.disk, "/records/records.cache", "records");
  const auto none = inspect_lm(machine.host(), testing::open_toy_pieces, "/records");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  write(machine.disk, "/records/train.tokens", "no tokens");
  EXPECT_EQ(inspect_lm(machine.host(), testing::open_toy_pieces, "/records").error().kind,
            ErrorKind::kBadData);
}

}  // namespace
}  // namespace gossamer::commands
