// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/measured_file.h"

#include <gtest/gtest.h>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::commands {
namespace {

// Claim: what was saved is read again, to the last digit, and is that of its step alone.
TEST(MeasuredFile, IsReadAgain) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("/parts").ok());
  EXPECT_FALSE(load_measured(disk, "/parts", StepNumber(7)));
  const Measured measured{.metrics_json = R"({"P@1":43.88888888888885,"median_rank":null})",
                          .text = "3 test records\n  P@1",
                          .seconds = 1.25};
  ASSERT_TRUE(save_measured(disk, "/parts", StepNumber(7), measured).ok());
  const auto got = load_measured(disk, "/parts", StepNumber(7));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->metrics_json, measured.metrics_json);
  EXPECT_EQ(got->text, measured.text);
  EXPECT_EQ(got->seconds, measured.seconds);
  EXPECT_TRUE(got->before);
  EXPECT_FALSE(load_measured(disk, "/parts", StepNumber(8)));
}

// Claim: without test records there are no figures, and how likely answers are right is kept to the last bit.
TEST(MeasuredFile, KeepsACalibration) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("/parts").ok());
  const sparse_engine::Calibration calibration{.log = 0.1F, .rest = 0, .offset = -1.2345678F};
  Measured measured;
  measured.calibration = calibration;
  ASSERT_TRUE(save_measured(disk, "/parts", StepNumber(7), measured).ok());
  const auto got = load_measured(disk, "/parts", StepNumber(7));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->metrics_json, "");
  ASSERT_TRUE(got->calibration);
  EXPECT_EQ(*got->calibration, calibration);
}

// Claim: a file that cannot be read is as none: the network can be measured again.
TEST(MeasuredFile, AFileThatCannotBeReadIsNone) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("/parts").ok());
  for (const char* const text :
       {"", "{", "[]", "{\"step\":7}", R"({"step":-7,"seconds":1,"metrics":{},"text":""})",
        R"({"step":7,"seconds":1,"metrics":3,"text":""})", R"({"step":7,"seconds":1,"calibration":3})",
        R"({"step":7,"seconds":1,"calibration":{"log":1,"rest":"x","offset":0}})"}) {
    ASSERT_TRUE(host::replace_file(disk, "/parts/measured.json", text).ok());
    EXPECT_FALSE(load_measured(disk, "/parts", StepNumber(7))) << text;
  }
}

}  // namespace
}  // namespace gossamer::commands
