// SPDX-License-Identifier: Apache-2.0
#include "node/metrics_page.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <string>

namespace gossamer::node {
namespace {

// Metrics of one name are one family, in the order of first appearance. Every label and value
// is there as Prometheus reads it.
TEST(MetricsPage, GroupsByName) {
  MetricsPage page;
  page.gauge("gossamer_link_up", "Up.", 1, {{"peer", "2"}});
  page.counter("gossamer_bytes_total", "Bytes.", 7e9);
  page.gauge("gossamer_link_up", "Up.", 0, {{"peer", "a \"3\""}});
  const CounterSample sample{.name = "gossamer_steps_total", .unit = "steps", .help = "Steps.", .value = 12};
  page.counters({&sample, 1});
  EXPECT_EQ(prometheus::TextSerializer().Serialize(page.families()),
            "# HELP gossamer_link_up Up.\n"
            "# TYPE gossamer_link_up gauge\n"
            "gossamer_link_up{peer=\"2\"} 1\n"
            "gossamer_link_up{peer=\"a \\\"3\\\"\"} 0\n"
            "# HELP gossamer_bytes_total Bytes.\n"
            "# TYPE gossamer_bytes_total counter\n"
            "gossamer_bytes_total 7000000000\n"
            "# HELP gossamer_steps_total Steps.\n"
            "# TYPE gossamer_steps_total counter\n"
            "gossamer_steps_total 12\n");
}

}  // namespace
}  // namespace gossamer::node
