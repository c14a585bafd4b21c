// SPDX-License-Identifier: Apache-2.0
#include "run/lead_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::run {
namespace {

using ::testing::HasSubstr;

class LeadFileTest : public ::testing::Test {
 protected:
  LeadFileTest() { EXPECT_TRUE(disk_.make_directories("/lead").ok()); }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(host::replace_file(disk_, "/lead/" + name, text).ok());
  }
  host::SimDisk disk_;
};

// What was kept is read, whatever texts have in them.
TEST_F(LeadFileTest, IsReadAsItWasWritten) {
  const LeadFile check{.engine = "check",
                       .settings = {"old=007", "pause=0.5", "things=12", "word=a\"b"},
                       .first = 3,
                       .store = "etcd:http://a:1,http://b:1",
                       .standbys = {"a:7070", "b:7070"}};
  const LeadFile trained{
      .engine = "sparse", .start = StepNumber(20), .nodes = 4, .certificate_seconds = 86400};
  for (const LeadFile& file : {check, trained}) {
    ASSERT_TRUE(keep_lead_file(disk_, "/lead", file).ok());
    const auto read = read_lead_file(disk_, "/lead");
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(read->settings, file.settings);
    EXPECT_EQ(*read, file);
  }
}

// The lines are those of older versions, with numbers as numbers.
TEST_F(LeadFileTest, IsForPeople) {
  ASSERT_TRUE(
      keep_lead_file(disk_, "/lead", {.engine = "check", .settings = {"things=12"}, .first = 2}).ok());
  EXPECT_EQ(*host::read_text(disk_, lead_file_path("/lead")),
            "engine = \"check\"\nthings = 12\nfirst = 2\nstore = \"\"\nstandby = \"\"\n");
}

// An older version's run.toml is read where there is no lead.toml. A directory without both has no run yet.
TEST_F(LeadFileTest, OlderVersionsHaveAnotherName) {
  EXPECT_EQ(*read_lead_file(disk_, "/lead"), LeadFile());
  write("run.toml", "engine = \"check\"\nthings = 5\nfirst = 2\nstore = \"\"\nstandby = \"b:1\"\n");
  const auto old = read_lead_file(disk_, "/lead");
  ASSERT_TRUE(old.ok()) << old.error().message();
  EXPECT_EQ(*old, (LeadFile{.engine = "check", .settings = {"things=5"}, .first = 2, .standbys = {"b:1"}}));
  EXPECT_FALSE(old->start);
  write("run.toml", "# run 0123456789\nengine = \"toy\"\nbatch = 5\n[train]\nrows = 3\n");
  EXPECT_EQ(*read_lead_file(disk_, "/lead"), LeadFile()) << "that is the config of a training run";
  write("lead.toml", "engine = \"sparse\"\n");
  EXPECT_EQ(read_lead_file(disk_, "/lead")->engine, "sparse");
}

// Another kind of file is refused, with the place.
TEST_F(LeadFileTest, RefusesOtherFiles) {
  for (const char* const text :
       {"engine = ", "[train]\nbatch = 3\n", "things = 0.5\n", "first = \"two\"\n", "start = -1\n",
        "standby = [\"b:1\"]\n", "certificates = 0\n", "certificates = 9223372036854775807\n"}) {
    write("lead.toml", text);
    const auto read = read_lead_file(disk_, "/lead");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(read.error().where, HasSubstr("/lead/lead.toml")) << text;
  }
}

}  // namespace
}  // namespace gossamer::run
