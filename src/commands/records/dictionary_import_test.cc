// SPDX-License-Identifier: Apache-2.0
#include "commands/records/dictionary_import.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "commands/records/files_import.h"
#include "host/api/files.h"
#include "host/sim/disk.h"
#include "run/output_directory.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

// Names tell files apart, alone or in a directory. The two files of a dictd dictionary find each other.
TEST(FindDictionaries, SortsByName) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("books").ok());
  for (const char* name :
       {"gcide.index", "gcide.dict.dz", "data.noun", "data.verb", "mine.jsonl.gz", "README"}) {
    ASSERT_TRUE(host::replace_file(disk, std::string("books/") + name, std::string_view("x")).ok());
  }
  auto all = find_dictionaries(disk, {"books"});
  ASSERT_TRUE(all.ok()) << all.error().message();
  ASSERT_EQ(all->dictd.size(), 1U);
  EXPECT_EQ(all->dictd[0].index, "books/gcide.index");
  EXPECT_EQ(all->dictd[0].text, "books/gcide.dict.dz");
  EXPECT_EQ(all->wordnet, (std::vector<std::string>{"books/data.noun", "books/data.verb"}));
  EXPECT_EQ(all->jsonl, std::vector<std::string>{"books/mine.jsonl.gz"});
  EXPECT_FALSE(find_dictionaries(disk, {"books/README"}).ok());
  EXPECT_FALSE(find_dictionaries(disk, {"books/gcide.index"}).ok()) << "no text";
  EXPECT_FALSE(find_dictionaries(disk, {"nowhere"}).ok());
}

// Claim: an import says how many definitions it has left out, in its text and as JSON. Its text says nothing
// of none.
TEST(ImportDictionary, SaysWhatIsLeftOut) {
  run::testing::SimMachine machine;
  const std::string good = "{\"text\": \"some words\", \"labels\": [\"a\"]}\n";
  run::testing::write(machine.disk, "good.jsonl", good);
  run::testing::write(machine.disk, "some.jsonl", good + "{\"text\": \"???\", \"labels\": [\"b\"]}\n");
  const auto import = [&](const std::string& name) {
    const auto done =
        import_files(machine.host(), {.kind = "dictionary", .sources = {name + ".jsonl"}, .directory = name});
    EXPECT_TRUE(done.ok());
    return *done;
  };
  EXPECT_EQ(import("good").text.find("left out"), std::string::npos);
  const Report some = import("some");
  EXPECT_NE(some.text.find("(1 left out: no word, or no name)\n"), std::string::npos) << some.text;
  EXPECT_NE(some.json.find("\"left_out\":1"), std::string::npos) << some.json;
}

// Claim: an import that leaves fewer definitions to train on than it holds out says so, also when quiet, with
// a flag that holds out fewer. With that flag nothing is said.
TEST(ImportDictionary, WarnsWhereMostIsHeldOutAndOfWordsToKeep) {
  run::testing::SimMachine machine;
  run::NodeHost host = machine.host();
  host.verbosity = run::Verbosity::kQuiet;
  std::string lines;
  for (const char* letters : {"abc", "def", "ghi", "jkl", "mno", "pqr", "stu", "vwx", "yza", "bdf"}) {
    for (const char* more : {"one", "two", "three", "four"}) {
      const std::string word = std::string(letters) + more;
      lines += "{\"text\": \"" + word + "a " + word + "b " + word + "c " + word + "d\", \"labels\": [\"" +
               letters + "\"]}\n";
    }
  }
  run::testing::write(machine.disk, "own.jsonl", lines);
  const auto most = import_dictionary_files(host, {.sources = {"own.jsonl"}, .directory = "most"});
  ASSERT_TRUE(most.ok()) << most.error().message();
  ASSERT_GT(most->test, most->train);
  EXPECT_TRUE(machine.said("warning: 30 of 40 definitions are held out, and only 10 train; --test 4"))
      << machine.console.text;
  machine.console.text.clear();
  ASSERT_TRUE(import_dictionary_files(host, {.sources = {"own.jsonl"}, .directory = "few", .test = 4}).ok());
  EXPECT_EQ(machine.console.text, "");
  const auto keeps = import_dictionary_files(
      host, {.sources = {"own.jsonl"}, .directory = "keeps", .test = 4, .keep = {"ABC", "abd", "Dee"}});
  ASSERT_TRUE(keeps.ok()) << keeps.error().message();
  EXPECT_TRUE(machine.said("no definition has the headwords 'abd', 'dee', which --keep names"))
      << machine.console.text;
}

// Claim: no definition of a headword that is to be kept is held out. Plain records have no context. Others
// have: a nurse helps a baby, and another definition says what a baby is.
TEST(ImportDictionary, KeepsAndLeavesOutContexts) {
  run::testing::SimMachine machine;
  std::string lines =
      "{\"text\": \"very young child\", \"labels\": [\"baby\"]}\n"
      "{\"text\": \"helps a baby\", \"labels\": [\"nurse\"]}\n"
      "{\"text\": \"bed of a baby\", \"labels\": [\"cradle\"]}\n"
      "{\"text\": \"teaches the young child\", \"labels\": [\"school\"]}\n";
  // So many that none of these words is common. They say the same, so none is held out.
  for (int i = 0; i < 100; ++i)
    lines += "{\"text\": \"one more of these things\", \"labels\": [\"thing" + std::to_string(i) + "\"]}\n";
  const std::vector<std::string> connected = {"baby", "nurse", "cradle", "school"};
  for (const char* letters : {"abc", "def", "ghi", "jkl", "mno", "pqr", "stu", "vwx", "yza", "bdf"}) {
    for (const char* more : {"one", "two", "three", "four"}) {
      const std::string word = std::string(letters) + more;
      lines += "{\"text\": \"" + word + "a " + word + "b " + word + "c abc\", \"labels\": [\"" + letters +
               "\"]}\n";
    }
  }
  run::testing::write(machine.disk, "own.jsonl", lines);
  const auto import = [&](const std::string& out, const std::vector<std::string>& keep, bool plain) {
    const auto done = import_files(
        machine.host(),
        {.kind = "dictionary", .sources = {"own.jsonl"}, .directory = out, .keep = keep, .plain = plain});
    EXPECT_TRUE(done.ok()) << done.error().message();
    return std::pair(*host::read_text(machine.disk, out + "/records.jsonl"),
                     *host::read_text(machine.disk, out + "/test.jsonl"));
  };
  const std::string label = "\"abc\"";
  const auto [with, all] = import("all", connected, false);
  EXPECT_NE(with.find("\"context\""), std::string::npos);
  EXPECT_NE(all.find(label), std::string::npos);
  const auto [without, kept] = import("kept", {"baby", "nurse", "cradle", "school", "abc"}, true);
  EXPECT_EQ(without.find("\"context\""), std::string::npos);
  EXPECT_EQ(kept.find(label), std::string::npos);
  EXPECT_NE(kept.find("\"def\""), std::string::npos);
}

// An output directory that is not kept is emptied, and removed if it was not there
// before. One that is kept stays.
TEST(OutputDirectory, LeavesNothingUnlessKept) {
  host::SimDisk disk;
  for (const bool existed : {false, true}) {
    if (existed) {
      ASSERT_TRUE(disk.make_directories("out").ok());
    }
    {
      auto out = run::OutputDirectory::open(disk, "out");
      ASSERT_TRUE(out.ok());
      ASSERT_TRUE(host::replace_file(disk, "out/half", std::string_view("x")).ok());
    }
    EXPECT_EQ(*disk.exists("out"), existed);
    EXPECT_FALSE(*disk.exists("out/half"));
  }
  {
    auto out = run::OutputDirectory::open(disk, "out");
    ASSERT_TRUE(out.ok());
    ASSERT_TRUE(host::replace_file(disk, "out/whole", std::string_view("x")).ok());
    ASSERT_TRUE(out->keep().ok());
  }
  EXPECT_TRUE(*disk.exists("out/whole"));
  auto full = run::OutputDirectory::open(disk, "out");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(*disk.list("out"), ::testing::ElementsAre("whole"));
}

// The second of two imports into one directory is refused at once. It removes nothing of the first one's,
// while that is at work and after it. An import that was killed does not keep the next one out.
TEST(OutputDirectory, OneCommandFillsIt) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("out").ok());
  for (const char* const left : {"out/.lock", "out/records.cache.tmp", "out/train.tokens.tmp"})
    ASSERT_TRUE(host::replace_file(disk, left, std::string_view("of a killed one")).ok());
  auto first = run::OutputDirectory::open(disk, "out");
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(*disk.list("out"), ::testing::ElementsAre(".lock"));
  ASSERT_TRUE(host::replace_file(disk, "out/records.cache.tmp", std::string_view("half")).ok());
  const auto second = run::OutputDirectory::open(disk, "out");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(*disk.exists("out/records.cache.tmp"));
  ASSERT_TRUE(disk.rename("out/records.cache.tmp", "out/records.cache").ok());
  ASSERT_TRUE(first->keep().ok());
  EXPECT_FALSE(run::OutputDirectory::open(disk, "out").ok());
  EXPECT_THAT(*disk.list("out"), ::testing::ElementsAre("records.cache"));
}

// What is kept lasts, with the directories that were made for it.
TEST(OutputDirectory, WhatIsKeptLasts) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    host::SimDisk disk(host::SimDiskOptions{.seed = seed});
    auto out = run::OutputDirectory::open(disk, "made/out");
    ASSERT_TRUE(out.ok());
    ASSERT_TRUE(host::replace_file(disk, "made/out/half.tmp", std::string_view("x")).ok());
    ASSERT_TRUE(disk.rename("made/out/half.tmp", "made/out/whole").ok());
    ASSERT_TRUE(out->keep().ok());
    EXPECT_TRUE(*disk.after_crash()->exists("made/out/whole")) << seed;
  }
}

}  // namespace
}  // namespace gossamer::commands
