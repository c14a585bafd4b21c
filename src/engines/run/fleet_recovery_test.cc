// SPDX-License-Identifier: Apache-2.0
#include "engines/run/fleet_recovery.h"

#include <gtest/gtest.h>

#include <set>

namespace gossamer::engine {
namespace {

const FleetRecovery kRecovery{.epoch = Epoch(3),
                              .step = StepNumber(20),
                              .cause = "box was lost",
                              .total = from_milliseconds(1500),
                              .detect = from_milliseconds(100),
                              .agree = from_milliseconds(200),
                              .load = from_milliseconds(300),
                              .replay = from_milliseconds(400),
                              .steps_replayed = 5};

// Each field has its own name and the value of its member, times in seconds.
TEST(FleetRecovery, FieldsAreDescribedOnce) {
  std::set<std::string_view> names;
  for (const EventField& field : fields_of(kRecovery))
    EXPECT_TRUE(names.insert(field.key).second) << field.key;
  const auto value = [](std::string_view name) {
    for (const EventField& field : fields_of(kRecovery)) {
      if (field.key == name) return field.value;
    }
    return decltype(EventField::value)();
  };
  EXPECT_EQ(std::get<std::string>(value("cause")), "box was lost");
  EXPECT_EQ(std::get<std::uint64_t>(value("step")), 20U);
  EXPECT_DOUBLE_EQ(std::get<double>(value("seconds")), 1.5);
  EXPECT_DOUBLE_EQ(std::get<double>(value("detect_seconds")), 0.1);
  EXPECT_DOUBLE_EQ(std::get<double>(value("agree_seconds")), 0.2);
  EXPECT_DOUBLE_EQ(std::get<double>(value("load_seconds")), 0.3);
  EXPECT_DOUBLE_EQ(std::get<double>(value("replay_seconds")), 0.4);
  EXPECT_EQ(std::get<std::uint64_t>(value("steps_replayed")), 5U);
}

}  // namespace
}  // namespace gossamer::engine
