// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step_wishes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gossamer::sparse_engine {
namespace {

using enum StepWish;

constexpr Duration kEvery{60'000'000'000};

// A member of rank 0 among three, whose steps end one after the other.
class StepWishesTest : public ::testing::Test {
 protected:
  StepWishesTest() { wishes_.restart(0); }
  // The rank that is blamed after a step, if any.
  std::optional<std::size_t> step(std::vector<StepWish> asked, double seconds, Duration every = kEvery) {
    const auto broken = wishes_.asked(asked, {.step = StepNumber(next_ - 1),
                                              .next = StepNumber(next_),
                                              .every = every,
                                              .now = Instant() + from_seconds(seconds)});
    ++next_;
    return broken ? std::optional(broken->rank) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::size_t> given(std::uint64_t step,
                                                 const std::vector<std::string>& bytes) const {
    std::vector<Slices> got;
    for (const std::string& one : bytes) got.push_back(one.empty() ? Slices() : Slices{Slice::of(one)});
    const auto broken = wishes_.given(StepNumber(step), got);
    return broken ? std::optional(broken->rank) : std::nullopt;
  }
  [[nodiscard]] bool stays(double seconds, bool led = true) {
    return wishes_.staying(led, Instant() + from_seconds(seconds)).has_value();
  }

  StepWishes wishes_;
  std::uint64_t next_ = 1;
};

// Claim: a member that asked for the end is blamed for what it gives in the next step, not for a step that
// was in flight. A member that gives nothing, as it holds no columns, is not blamed. Nor is one that has not
// asked.
TEST_F(StepWishesTest, TheEndIsTheEnd) {
  EXPECT_EQ(step({kNothing, kNothing, kHalt}, 0), std::nullopt);
  EXPECT_EQ(wishes_.end(), StepNumber(1));
  EXPECT_EQ(given(0, {"a", "b", "c"}), std::nullopt);
  EXPECT_EQ(given(1, {"a", "b", ""}), std::nullopt);
  EXPECT_EQ(given(1, {"a", "b", "c"}), 2U);
  EXPECT_EQ(step({kNothing, kHalt, kNothing}, 1), std::nullopt);
  EXPECT_EQ(wishes_.end(), StepNumber(1)) << "the first word counts";
  wishes_.restart(0);
  EXPECT_EQ(wishes_.end(), std::nullopt);
  EXPECT_EQ(given(7, {"a", "b", "c"}), std::nullopt) << "in another layout it may take part";
}

// Claim: a member does not judge itself.
TEST_F(StepWishesTest, DoesNotJudgeItself) {
  EXPECT_EQ(step({kHalt, kNothing, kNothing}, 0), std::nullopt);
  EXPECT_EQ(wishes_.end(), StepNumber(1));
  EXPECT_EQ(given(1, {"a", "b", "c"}), std::nullopt);
  EXPECT_FALSE(stays(1000));
  for (int i = 0; i < 9; ++i) EXPECT_EQ(step({kCheckpoint, kNothing, kNothing}, 0, {}), std::nullopt);
}

// Claim: a member that asked for the end is blamed once it has stayed for 150 s. Seconds without a
// coordinator do not count.
TEST_F(StepWishesTest, WhoAskedForTheEndLeaves) {
  EXPECT_EQ(step({kNothing, kHalt, kNothing}, 10), std::nullopt);
  EXPECT_FALSE(stays(159));
  EXPECT_FALSE(stays(161, false));
  EXPECT_FALSE(stays(310));
  EXPECT_TRUE(stays(311));
}

// Claim: where no checkpoint is due by time, the first question breaks a rule.
TEST_F(StepWishesTest, NoCheckpointsByTime) {
  EXPECT_EQ(step({kNothing, kNothing, kNothing}, 0, {}), std::nullopt);
  EXPECT_EQ(step({kNothing, kCheckpoint, kNothing}, 1, {}), 1U);
}

// Claim: a member may ask again in half of the time, and its questions may come two together. The third one
// in less than half of the time breaks the rule. Members are judged each by itself.
TEST_F(StepWishesTest, CheckpointsTooOften) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(step({kNothing, kCheckpoint, kNothing}, 30 * i), std::nullopt);
  EXPECT_EQ(step({kNothing, kNothing, kCheckpoint}, 271), std::nullopt);
  EXPECT_EQ(step({kNothing, kNothing, kCheckpoint}, 272), std::nullopt);
  EXPECT_EQ(step({kNothing, kCheckpoint, kNothing}, 273), std::nullopt);
  EXPECT_EQ(step({kNothing, kNothing, kCheckpoint}, 300), 2U);
}

// Claim: where two steps are in flight, the same question may come with both.
TEST_F(StepWishesTest, OneQuestionWithTwoSteps) {
  const std::vector<StepWish> asked{kNothing, kCheckpoint, kNothing};
  for (std::uint64_t i = 0; i < 6; ++i) {
    const std::uint64_t pair = i / 2;
    const StepWishes::Applied applied{.step = StepNumber(i),
                                      .next = StepNumber(2 * pair + 2),
                                      .every = kEvery,
                                      .now = Instant() + from_seconds(31.0 * static_cast<double>(pair))};
    EXPECT_FALSE(wishes_.asked(asked, applied)) << i;
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
