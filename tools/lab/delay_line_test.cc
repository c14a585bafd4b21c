// SPDX-License-Identifier: Apache-2.0
#include "tools/lab/delay_line.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace gossamer::lab {
namespace {

// Each look gives the last packet that has waited for the delay and was not given before, and nothing else.
// That holds for every delay of 0..3, every pattern of arrivals in six moments and every pattern of looks.
TEST(DelayLine, ReleasesEachPacketOnceItHasWaitedAndNotBefore) {
  constexpr int kMoments = 6;
  for (std::int64_t delay = 0; delay <= 3; ++delay) {
    for (unsigned arrivals = 0; arrivals < 1U << kMoments; ++arrivals) {
      for (unsigned looks = 0; looks < 1U << kMoments; ++looks) {
        SCOPED_TRACE(testing::Message()
                     << "delay " << delay << " arrivals " << arrivals << " looks " << looks);
        DelayLine line(Duration{delay});
        std::vector<std::int64_t> came;  // the moment of each packet, by number
        std::size_t gone = 0;
        for (std::int64_t now = 0; now < kMoments; ++now) {
          if ((arrivals >> now & 1) != 0) {
            line.hold(static_cast<std::uint32_t>(came.size()), Instant{now});
            came.push_back(now);
          }
          if ((looks >> now & 1) == 0) continue;
          std::optional<std::uint32_t> expected;
          for (; gone < came.size() && came[gone] + delay <= now; ++gone) {
            expected = static_cast<std::uint32_t>(gone);
          }
          ASSERT_EQ(line.release(Instant{now}), expected);
          const std::optional<Instant> next =
              gone < came.size() ? std::optional(Instant{came[gone] + delay}) : std::nullopt;
          ASSERT_EQ(line.next_due(), next);
        }
      }
    }
  }
}

// Packets keep their order where the kernel's numbers wrap.
TEST(DelayLine, NumbersMayWrap) {
  DelayLine line(Duration{5});
  line.hold(std::numeric_limits<std::uint32_t>::max(), Instant{0});
  line.hold(0, Instant{1});
  EXPECT_EQ(line.release(Instant{5}), std::numeric_limits<std::uint32_t>::max());
  EXPECT_EQ(line.release(Instant{6}), 0);
}

}  // namespace
}  // namespace gossamer::lab
