// SPDX-License-Identifier: Apache-2.0
#include "base/counters.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

struct SampleCounters {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  template <class Visitor>
  void describe(Visitor&& v) const {
    v("gossamer_sample_records_total", "records", "Records read.", records);
    v("gossamer_sample_bytes_total", "bytes", "Bytes read.", bytes);
  }
};

// Exporters see every described counter with its current value, in declaration order.
TEST(Counters, ReadListsAllInOrder) {
  SampleCounters counters;
  counters.records += 3;
  counters.bytes += 4096;
  const auto samples = read(counters);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].name, "gossamer_sample_records_total");
  EXPECT_EQ(samples[0].value, 3U);
  EXPECT_EQ(samples[1].unit, "bytes");
  EXPECT_EQ(samples[1].value, 4096U);
}

// An event reaches its sink with its name and typed fields.
TEST(Counters, EventCarriesFields) {
  std::string seen;
  const auto record = [&seen](std::string_view event, EventFields fields) {
    seen = std::string(event);
    for (const EventField& f : fields) seen += " " + std::string(f.key);
    EXPECT_EQ(std::get<std::uint64_t>(fields.begin()->value), 120U);
  };
  const EventSink sink = record;
  sink("checkpoint_written", {{"step", std::uint64_t{120}}, {"cause", std::string("signal")}});
  EXPECT_EQ(seen, "checkpoint_written step cause");
}

}  // namespace
}  // namespace gossamer
