// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/fusion_options.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace gossamer::sparse_engine {
namespace {

// Each option is refused just outside its range and for NaN, and accepted at the ends.
TEST(FusionOptions, Validates) {
  EXPECT_TRUE(validate(FusionOptions{}).ok());
  for (const std::uint32_t n : {0U, 10001U}) {
    EXPECT_FALSE(validate({.candidates = n}).ok());
    EXPECT_FALSE(validate({.neighbours = n}).ok());
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float FusionOptions::* member :
       {&FusionOptions::input_vote_power, &FusionOptions::sharp_vote_power, &FusionOptions::hidden_vote_power,
        &FusionOptions::mixed_vote_power}) {
    for (const auto& [value, good] :
         {std::pair(0.0F, true), {64.0F, true}, {-0.1F, false}, {64.1F, false}, {nan, false}}) {
      FusionOptions options;
      options.*member = value;
      EXPECT_EQ(validate(options).ok(), good) << value;
    }
  }
  for (const auto& [value, good] : {std::pair(1.0F, true), {0.0F, false}, {1.1F, false}, {nan, false}}) {
    EXPECT_EQ(validate({.vote_floor = value}).ok(), good) << value;
  }
  for (std::size_t term = 0; term < kFusionTerms; ++term) {
    for (const auto& [value, good] :
         {std::pair(-1000.0F, true), {1000.0F, true}, {1001.0F, false}, {nan, false}}) {
      FusionOptions options;
      options.weights.value[term] = value;
      EXPECT_EQ(validate(options).ok(), good) << kFusionTermNames[term] << " " << value;
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
