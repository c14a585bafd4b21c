// SPDX-License-Identifier: Apache-2.0
#include "commands/records/import_space.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "commands/records/data_import.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;

std::string named_records(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "{\"features\": {\"word " + std::to_string(i % 50) + "\": 1, \"b\": 2.5}, \"labels\": [\"l\"]}\n";
  }
  return text;
}

std::string text_records(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "{\"text\": \"some words, number " + std::to_string(i) + "\", \"labels\": [" +
            std::to_string(i % 9) + "]}\n";
  }
  return text;
}

struct Case {
  const char* file;
  data::RecordFormat kind;
  std::string (*records)(int);
};
const std::vector<Case> kCases = {{"t.txt", data::RecordFormat::kXmc, run::testing::two_classes},
                                  {"n.jsonl", data::RecordFormat::kJsonlText, named_records},
                                  {"t.jsonl", data::RecordFormat::kJsonlText, text_records}};

// The estimate is at most what the import writes, and not much less; small files are looked at as a whole,
// large ones by their first megabytes.
TEST(ImportSpace, IsEstimated) {
  for (const Case& each : kCases) {
    for (const int records : {3000, 250'000}) {
      SCOPED_TRACE(::testing::Message() << each.file << " " << records);
      SimMachine machine;
      write(machine.disk, each.file, each.records(records));
      const auto source = find_source(machine.disk, each.file, each.kind);
      ASSERT_TRUE(source.ok());
      const ImportEstimate estimate = estimate_import(machine.disk, {*source});
      EXPECT_EQ(estimate.exact, records == 3000);
      const auto done =
          import_data(machine.host(), {.kind = each.kind, .sources = {each.file}, .directory = "out"});
      ASSERT_TRUE(done.ok()) << done.error().message();
      const auto written = static_cast<double>(*machine.disk.file_size(done->path));
      EXPECT_LE(static_cast<double>(estimate.bytes), 1.02 * written);
      EXPECT_GE(static_cast<double>(estimate.bytes), 0.85 * written);
    }
  }
}

// A disk with room for the import is never refused; one that is clearly too small is, before anything is
// written, and nothing is left behind.
TEST(ImportSpace, IsNeeded) {
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.file);
    SimMachine machine;
    const std::string text = each.records(3000);
    write(machine.disk, each.file, text);
    const DataImportRequest request{.kind = each.kind, .sources = {each.file}, .directory = "out"};
    ASSERT_TRUE(import_data(machine.host(), request).ok());
    const std::uint64_t written =
        host::SimDiskOptions{}.capacity_bytes - *machine.disk.free_bytes("/") - text.size();
    ASSERT_TRUE(machine.disk.remove_all("out").ok());

    machine.disk.restart_count({.capacity_bytes = text.size() + written});
    EXPECT_TRUE(import_data(machine.host(), request).ok());
    ASSERT_TRUE(machine.disk.remove_all("out").ok());

    machine.disk.restart_count({.capacity_bytes = text.size() + written / 2});
    const auto refused = import_data(machine.host(), request);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kFailed);
    EXPECT_EQ(refused.error().what, "the disk is too small for the records");
    EXPECT_FALSE(*machine.disk.exists("out"));
  }
}

// A sample may mislead: only less than half of its estimate is refused, the rest is told.
TEST(ImportSpace, SamplesOnlyWarn) {
  SimMachine machine;
  machine.disk.restart_count({.capacity_bytes = 600'000});
  const run::NodeHost host = machine.host();
  EXPECT_TRUE(check_import_space(host, {.bytes = 600'000, .exact = false}, "out").ok());
  EXPECT_EQ(machine.console.text, "");
  EXPECT_TRUE(check_import_space(host, {.bytes = 1'200'001, .exact = false}, "out").ok());
  EXPECT_TRUE(machine.said("may be too small"));
  EXPECT_FALSE(check_import_space(host, {.bytes = 1'200'002, .exact = false}, "out").ok());
  EXPECT_FALSE(check_import_space(host, {.bytes = 600'001, .exact = true}, "out").ok());
  EXPECT_EQ(estimate_import(machine.disk, {{.path = "-", .format = data::RecordFormat::kXmc}}).bytes, 0U);
}

// A disk that cannot tell what is free refuses nothing.
TEST(ImportSpace, UnknownIsEnough) {
  SimMachine machine;
  machine.disk.restart_count({.capacity_bytes = 0, .fail_at_operation = 0});
  EXPECT_TRUE(check_import_space(machine.host(), {.bytes = 1}, "out").ok());
}

}  // namespace
}  // namespace gossamer::commands
