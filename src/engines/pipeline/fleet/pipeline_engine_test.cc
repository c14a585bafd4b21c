// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/pipeline_engine.h"

#include <gtest/gtest.h>

#include "engines/pipeline/fleet/test_toy_fleet.h"

namespace gossamer::pipeline {
namespace {

constexpr std::uint64_t kSteps = 12;

// Claim: one, two, four and six members end with the weights of one process, whatever stages they have, and
// peers have the same bits.
TEST(PipelineEngine, EqualsOneProcess) {
  const PipelineJob job = toy_job(kSteps);
  const ToyWeights alone = toy_alone(job);
  struct Case {
    std::size_t members;
    std::optional<std::uint32_t> stages;
  };
  for (const Case& one : {Case{1, {}}, Case{2, 1}, Case{2, 2}, Case{4, {}}, Case{4, 4}, Case{6, {}}}) {
    ToyFleet fleet(job, {.members = one.members, .stages = one.stages});
    ASSERT_TRUE(fleet.run_to(kSteps)) << one.members << " members are at step " << fleet.step() << ", "
                                      << fleet.fleet().failure().value_or("no failure");
    fleet.fleet().run_for(1);
    EXPECT_LT(distance(alone, fleet.weights()), 1e-12) << one.members << " members";
  }
}

}  // namespace
}  // namespace gossamer::pipeline
