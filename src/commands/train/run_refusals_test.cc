// SPDX-License-Identifier: Apache-2.0
#include "commands/train/run_refusals.h"

#include <gtest/gtest.h>

#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;

// It is only asked for the memory that its members take on this machine.
class LeadingRunner final : public StepRunner {
 public:
  [[nodiscard]] std::uint64_t nodes() const override { return 0; }
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig&, const sparse_engine::Recipe&,
                                            const sparse_engine::DataShape&) const override {
    return needed;
  }
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths&,
                                                          const sparse_engine::TrainInputs&,
                                                          const engine::TrainHooks&) override {
    return Error{};
  }
  [[nodiscard]] StepsCost cost() const override { return {}; }

  std::uint64_t needed = 0;
};

// A process that leads, and does no steps, needs the memory of the model alone.
TEST(RunRefusals, ALeadNeedsNoMemoryForSteps) {
  SimMachine machine;
  LeadingRunner runner;
  const sparse_engine::DataShape shape{.records = 1000,
                                       .features = 400'000,
                                       .labels = 200'000,
                                       .feature_entries = 20000,
                                       .label_entries = 10000};
  sparse_engine::TrainConfig config;
  config.train.batch = 10'000;
  const sparse_engine::Recipe recipe{.hidden = 512, .steps = 6};
  const run::NodeHost host = machine.host();
  const std::uint64_t alone = run_memory(host, nullptr, config, recipe, shape);
  const std::uint64_t lead = run_memory(host, &runner, config, recipe, shape);
  const std::uint64_t weights = std::uint64_t{shape.features + shape.labels} * 512 * 4;
  EXPECT_GT(alone, 2 * weights);
  EXPECT_GT(lead, weights);
  EXPECT_LT(lead, weights + weights / 2);
  runner.needed = alone + 1;
  EXPECT_EQ(run_memory(host, &runner, config, recipe, shape), alone + 1);
}

// Claim: the hidden width that a refused run is told to take is the largest power of 2 with which it fits.
// The next one is too large.
TEST(RunRefusals, NamesAWidthThatFits) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  const sparse_engine::DataShape shape{.records = 1000,
                                       .features = 4'000'000,
                                       .labels = 2'000'000,
                                       .feature_entries = 20000,
                                       .label_entries = 10000};
  sparse_engine::TrainConfig config;
  config.model.hidden = 4096;
  config.optimizer.moments = sparse_engine::MomentsKind::kBlock;
  const auto needed = [&](std::uint32_t hidden) {
    sparse_engine::TrainConfig with = config;
    with.model.hidden = hidden;
    return run_memory(host, nullptr, with, *sparse_engine::derive_recipe(with, shape), shape);
  };
  const std::uint64_t limit = host.compute.memory_limit_bytes();
  std::uint32_t fits = 16;
  while (needed(2 * fits) <= limit) fits *= 2;
  ASSERT_GT(fits, 16U);
  ASSERT_LT(fits, 2048U);
  EXPECT_EQ(too_little_memory(host, nullptr, config, shape, needed(4096)).fix,
            "would fit: model.hidden=" + std::to_string(fits));
}

// A lead that only puts parts together needs 40 bytes for each feature and label, also where they are so many
// that this is more than 4 GiB.
TEST(RunRefusals, ALeadOfPartsNeedsMemoryForCounts) {
  SimMachine machine;
  LeadingRunner runner;
  sparse_engine::TrainConfig config;
  config.predict.instances = false;
  const sparse_engine::DataShape shape{.records = 1000,
                                       .features = 4'000'000'000,
                                       .labels = 1'000'000'000,
                                       .feature_entries = 20000,
                                       .label_entries = 10000};
  const std::uint64_t counts = std::uint64_t{40} * 5'000'000'000;
  const std::uint64_t lead = run_memory(machine.host(), &runner, config, {.hidden = 512, .steps = 6}, shape);
  EXPECT_GT(lead, counts);
  EXPECT_LT(lead, counts + (std::uint64_t{1} << 30));
}

}  // namespace
}  // namespace gossamer::commands
