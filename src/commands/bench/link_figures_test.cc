// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/link_figures.h"

#include <gtest/gtest.h>

namespace gossamer::commands {
namespace {

// Transfers count without the least idle round trip and without the first transfer. Control messages count
// without half of that round trip. Rounds count as they are.
TEST(LinkFigures, SayWhatIsTheLinesOwn) {
  const std::vector<LinkTrialTimes> times = {
      {.trial = LinkTrial::kRoundTrip, .bytes = 64, .seconds = {0.030, 0.020, 0.025}},
      {.trial = LinkTrial::kMessage, .bytes = 10'000'000, .seconds = {3.020, 1.220, 0.820, 0.920}},
      {.trial = LinkTrial::kExchange, .bytes = 65536, .seconds = {0.012, 0.014}},
      {.trial = LinkTrial::kControlBesideBulk, .seconds = {0.022}, .bulk_bytes_per_second = 12.5e6}};
  const auto figures = link_figures(times, 100);
  ASSERT_EQ(figures.size(), times.size());
  EXPECT_NEAR(figures[0].least, 20, 1e-9);
  EXPECT_NEAR(figures[0].median, 25, 1e-9);
  EXPECT_NEAR(figures[1].first, 3000, 1e-9);
  EXPECT_EQ(figures[1].count, 3U);
  EXPECT_NEAR(figures[1].median, 900, 1e-9);
  EXPECT_NEAR(figures[1].most, 1200, 1e-9);
  EXPECT_NEAR(figures[1].mbps, 3 * 80 / 2.9, 1e-5);
  EXPECT_NEAR(figures[1].share, 2.4 / 2.9, 1e-7);
  EXPECT_NEAR(figures[2].median, 13, 1e-9);
  EXPECT_EQ(figures[2].share, 0);
  EXPECT_NEAR(figures[3].median, 12, 1e-9);
  EXPECT_NEAR(figures[3].share, 1, 1e-9);
}

// The 90th percentile of a hundred is not exceeded by 90 of them. A single transfer is not taken away.
TEST(LinkFigures, Quantiles) {
  LinkTrialTimes times{.trial = LinkTrial::kRoundTrip};
  for (int i = 100; i >= 1; --i) times.seconds.push_back(1e-3 * i);
  const auto many = link_figures({times}, 0);
  EXPECT_NEAR(many[0].median, 50.5, 1e-9);
  EXPECT_NEAR(many[0].p90, 90, 1e-9);
  EXPECT_NEAR(many[0].most, 100, 1e-9);
  const auto one = link_figures({{.trial = LinkTrial::kMessages, .bytes = 1000, .seconds = {0.5}}}, 0);
  EXPECT_EQ(one[0].count, 1U);
  EXPECT_NEAR(one[0].median, one[0].first, 1e-9);
}

}  // namespace
}  // namespace gossamer::commands
