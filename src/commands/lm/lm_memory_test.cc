// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/sim/compute.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

struct MemoryMachine {
  explicit MemoryMachine(std::uint64_t limit)
      : compute({.workers = 1, .memory_limit_bytes = limit}),
        host{.disk = machine.disk,
             .clock = machine.clock,
             .compute = compute,
             .kernels = kernels::kernels_for(kernels::Isa::kScalar),
             .console = machine.console} {}
  run::testing::SimMachine machine;
  host::SimCompute compute;
  run::NodeHost host;
};

pipeline::LmConfig lm_of(const std::vector<std::string>& words) {
  settings::Values values = pipeline::lm_keys().defaults();
  EXPECT_TRUE(values.apply_words(words).ok());
  return pipeline::lm_keys().config(values);
}

// Claim: a parameter takes 16 bytes in training, and 32 in f64; a run fits exactly into what it needs.
TEST(LmMemory, BytesOfAParameter) {
  for (const auto& [word, bytes] :
       {std::pair("train.precision=f32", 16U), std::pair("train.precision=bf16", 16U),
        std::pair("train.precision=f64", 32U)}) {
    const pipeline::LmConfig config = lm_of({word});
    const std::uint64_t needed = bytes * lm_parameter_count(pipeline::shape_of(config, 257));
    const auto fits = check_training_memory(MemoryMachine(needed).host, config, 257);
    ASSERT_TRUE(fits.ok()) << word;
    EXPECT_EQ(*fits, needed);
    EXPECT_FALSE(check_training_memory(MemoryMachine(needed - 1).host, config, 257).ok()) << word;
  }
}

// Claim: what the message says would fit does fit, and one layer more does not.
TEST(LmMemory, NamesWhatWouldFit) {
  for (std::uint64_t gigabytes = 1; gigabytes <= 24; ++gigabytes) {
    const MemoryMachine machine(gigabytes * 1'000'000'000);
    const auto refused =
        check_training_memory(machine.host, lm_of({"model.preset=swarm-1b", "model.layers=9"}), 257);
    ASSERT_FALSE(refused.ok()) << gigabytes;
    const std::string fix = refused.error().fix;
    const std::string layers = "would fit: model.layers=";
    if (!fix.starts_with(layers)) {
      EXPECT_THAT(fix, HasSubstr("model.preset=tiny"));
      EXPECT_LT(gigabytes, 4U);
      continue;
    }
    const std::uint32_t count = static_cast<std::uint32_t>(fix.back() - '0');
    const auto with = [&](std::uint32_t number) {
      return check_training_memory(machine.host,
                                   lm_of({"model.preset=swarm-1b", "model.layers=" + std::to_string(number)}),
                                   257)
          .ok();
    };
    EXPECT_TRUE(with(count)) << fix;
    EXPECT_FALSE(with(count + 1)) << fix;
  }
}

// Claim: f32 is named first where it is enough; a machine too small for anything is told so.
TEST(LmMemory, NamesTheLeastChange) {
  const pipeline::LmConfig doubles = lm_of({"train.precision=f64"});
  const std::uint64_t needed = 32 * lm_parameter_count(pipeline::shape_of(doubles, 257));
  const auto refused = check_training_memory(MemoryMachine(needed - 1).host, doubles, 257);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().fix, "would fit: train.precision=f32");
  const auto nothing = check_training_memory(MemoryMachine(1000).host, doubles, 257);
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().fix, HasSubstr("more memory"));
}

// Claim: a model that is asked needs half of that, in the type of its files.
TEST(LmMemory, AnswersNeedHalf) {
  pipeline::LmHeader header{.about = pipeline::LmAbout(), .dtype = tensors::DType::kF32};
  const std::uint64_t needed = 8 * lm_parameter_count(header.about.shape);
  EXPECT_TRUE(check_answering_memory(MemoryMachine(needed).host, "/m", header).ok());
  EXPECT_EQ(check_answering_memory(MemoryMachine(needed - 1).host, "/m", header).error().where, "/m");
  header.dtype = tensors::DType::kF64;
  EXPECT_FALSE(check_answering_memory(MemoryMachine(2 * needed - 1).host, "/m", header).ok());
  EXPECT_TRUE(check_answering_memory(MemoryMachine(2 * needed).host, "/m", header).ok());
}

}  // namespace
}  // namespace gossamer::commands
