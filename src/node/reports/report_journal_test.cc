// SPDX-License-Identifier: Apache-2.0
#include "node/reports/report_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::node {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kPath = "/reports";

ReportBatch batch(std::uint64_t node, std::uint64_t first, std::vector<std::string> reports) {
  return {.node = NodeId(node), .life = Incarnation(3), .first = first, .reports = std::move(reports)};
}

struct Opened {
  std::unique_ptr<ReportJournal> journal;
  std::vector<ReportBatch> batches = {};
  std::uint64_t cut = 0;
};

Opened open(host::Disk& disk) {
  Opened opened{.journal = std::make_unique<ReportJournal>(disk, kPath)};
  const auto cut = opened.journal->open([&](ReportBatch one) { opened.batches.push_back(std::move(one)); });
  EXPECT_TRUE(cut.ok()) << cut.error().message();
  if (cut.ok()) opened.cut = *cut;
  return opened;
}

const std::vector<ReportBatch>& some() {
  static const std::vector<ReportBatch> batches{batch(1, 0, {"a", ""}), batch(2, 7, {std::string("\0\n", 2)}),
                                                batch(1, 2, {std::string(300, 'x')})};
  return batches;
}

std::string bytes_of_some(host::SimDisk& disk) {
  Opened one = open(disk);
  for (const ReportBatch& each : some()) EXPECT_TRUE(one.journal->append(each).ok());
  return *host::read_text(disk, kPath);
}

// What was appended is there when the journal is opened again, and more can follow.
TEST(ReportJournal, GivesBackWhatWasAppended) {
  host::SimDisk disk;
  EXPECT_THAT(open(disk).batches, IsEmpty());
  bytes_of_some(disk);
  Opened again = open(disk);
  EXPECT_EQ(again.cut, 0U);
  EXPECT_THAT(again.batches, ElementsAreArray(some()));
  ASSERT_TRUE(again.journal->append(batch(4, 1, {"more"})).ok());
  EXPECT_EQ(open(disk).batches.size(), 4U);
}

// However much of the file is there, the whole frames in it are given, and what follows them is cut off.
TEST(ReportJournal, CutsATornTail) {
  host::SimDisk whole;
  const std::string bytes = bytes_of_some(whole);
  std::size_t most = 0;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    host::SimDisk disk;
    ASSERT_TRUE(host::replace_file(disk, kPath, bytes.substr(0, size)).ok());
    Opened opened = open(disk);
    ASSERT_LE(opened.batches.size(), some().size());
    ASSERT_GE(opened.batches.size(), most);
    most = opened.batches.size();
    for (std::size_t i = 0; i < most; ++i) EXPECT_EQ(opened.batches[i], some()[i]) << size;
    ASSERT_TRUE(opened.journal->append(batch(9, 0, {"next"})).ok());
    Opened again = open(disk);
    EXPECT_EQ(again.cut, 0U) << size;
    ASSERT_EQ(again.batches.size(), most + 1) << size;
    EXPECT_EQ(again.batches.back(), batch(9, 0, {"next"})) << size;
  }
  EXPECT_EQ(most, some().size());
}

// The batches of an open journal can be read once more: those that were there, and those that were appended.
TEST(ReportJournal, IsReadAgain) {
  host::SimDisk disk;
  static_cast<void>(bytes_of_some(disk));
  Opened opened = open(disk);
  ASSERT_TRUE(opened.journal->append(batch(9, 0, {"next"})).ok());
  std::vector<ReportBatch> again;
  ASSERT_TRUE(opened.journal->read_again([&](ReportBatch one) { again.push_back(std::move(one)); }).ok());
  ASSERT_EQ(again.size(), opened.batches.size() + 1);
  for (std::size_t i = 0; i < opened.batches.size(); ++i) EXPECT_EQ(again[i], opened.batches[i]);
  EXPECT_EQ(again.back(), batch(9, 0, {"next"}));
  host::SimDisk empty;
  EXPECT_TRUE(open(empty).journal->read_again([](const ReportBatch&) { ADD_FAILURE(); }).ok());
}

// A changed byte, wherever it is, ends the file before the frame that has it.
TEST(ReportJournal, NoticesChangedBytes) {
  host::SimDisk whole;
  const std::string bytes = bytes_of_some(whole);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    host::SimDisk disk;
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    ASSERT_TRUE(host::replace_file(disk, kPath, changed).ok());
    const Opened opened = open(disk);
    ASSERT_LT(opened.batches.size(), some().size()) << at;
    EXPECT_GT(opened.cut, 0U) << at;
    for (std::size_t i = 0; i < opened.batches.size(); ++i) EXPECT_EQ(opened.batches[i], some()[i]) << at;
  }
}

// Wherever a disk runs full, frames that were acknowledged stay readable. Once there is room, the next append
// succeeds, and the one that had failed may be there too.
TEST(ReportJournal, GoesOnAfterAFullDisk) {
  host::SimDisk whole;
  const std::string bytes = bytes_of_some(whole);
  for (std::size_t room = 0; room < bytes.size(); ++room) {
    host::SimDisk disk({.capacity_bytes = room});
    Opened one = open(disk);
    std::vector<ReportBatch> written;
    for (const ReportBatch& each : some()) {
      if (!one.journal->append(each).ok()) break;
      written.push_back(each);
    }
    ASSERT_LT(written.size(), some().size());
    const ReportBatch& failed = some()[written.size()];
    const auto again = one.journal->append(failed);
    ASSERT_FALSE(again.ok());
    EXPECT_THAT(again.error().message(), HasSubstr("No space"));
    disk.restart_count({});
    ASSERT_TRUE(one.journal->append(failed).ok());
    Opened opened = open(disk);
    EXPECT_EQ(opened.cut, 0U) << room;
    ASSERT_GT(opened.batches.size(), written.size());
    for (std::size_t i = 0; i < opened.batches.size(); ++i)
      EXPECT_EQ(opened.batches[i], i < written.size() ? written[i] : failed) << room;
  }
}

// What was synced survives a loss of power, whatever becomes of later frames. Without new frames there is
// nothing to sync.
TEST(ReportJournal, SurvivesALossOfPower) {
  bool lost = false;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    host::SimDisk disk({.seed = seed});
    Opened one = open(disk);
    EXPECT_FALSE(one.journal->sync_work());
    for (const ReportBatch& each : some()) ASSERT_TRUE(one.journal->append(each).ok());
    const auto work = one.journal->sync_work();
    ASSERT_TRUE(one.journal->append(batch(5, 0, {"later"})).ok());
    ASSERT_TRUE(work().ok());
    ASSERT_TRUE(one.journal->append(batch(6, 0, {"last"})).ok());
    const auto left = disk.after_crash();
    const auto found = open(*left).batches;
    ASSERT_GE(found.size(), 4U) << seed;
    for (std::size_t i = 0; i < some().size(); ++i) EXPECT_EQ(found[i], some()[i]);
    lost = lost || found.size() == 4;
    EXPECT_TRUE(one.journal->sync_work());
    EXPECT_FALSE(one.journal->sync_work());
    one.journal->not_synced();
    EXPECT_TRUE(one.journal->sync_work());
  }
  EXPECT_TRUE(lost) << "the last frame was never lost: this test shows nothing";
}

// A journal has a size that it keeps to: its older half goes. What is left is whole, in order, and the
// newest.
TEST(ReportJournal, IsBounded) {
  constexpr std::uint64_t kMost = 10'000;
  host::SimDisk disk;
  ReportJournal journal(disk, kPath, kMost);
  ASSERT_TRUE(journal.open([](const ReportBatch&) {}).ok());
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(journal.append(batch(1, i, {std::string(80, 'x')})).ok());
    ASSERT_LE(*disk.file_size(kPath), kMost + 200);
  }
  std::vector<ReportBatch> again;
  ASSERT_TRUE(journal.read_again([&](ReportBatch one) { again.push_back(std::move(one)); }).ok());
  const Opened opened = open(disk);
  EXPECT_EQ(opened.cut, 0U);
  EXPECT_THAT(opened.batches, ElementsAreArray(again));
  ASSERT_GT(opened.batches.size(), 40U);
  for (std::size_t i = 0; i < opened.batches.size(); ++i)
    EXPECT_EQ(opened.batches[i].first, 1000 - opened.batches.size() + i);
}

// If the disk has no room to shorten it, it stays whole and goes on.
TEST(ReportJournal, GoesOnWhereItCannotBeShortened) {
  constexpr std::uint64_t kMost = 10'000;
  host::SimDisk disk;
  ReportJournal journal(disk, kPath, kMost);
  ASSERT_TRUE(journal.open([](const ReportBatch&) {}).ok());
  disk.restart_count({.capacity_bytes = kMost + 3000});
  std::uint64_t appended = 0;
  while (appended < 200 && journal.append(batch(1, appended, {std::string(80, 'x')})).ok()) ++appended;
  EXPECT_GT(appended, 100U);
  disk.restart_count({});
  EXPECT_EQ(open(disk).batches.size(), appended);
}

}  // namespace
}  // namespace gossamer::node
