// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engines/pipeline/stage/lm_activations.h"
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

using pipeline::Keep;

// Claim: a parameter takes 16 bytes in training, 18 in bf16 and 32 in f64, and the microbatch comes on top. A
// run fits exactly into what it needs.
TEST(LmMemory, BytesOfAParameter) {
  for (const auto& [word, bytes] :
       {std::pair("train.precision=f32", 16U), std::pair("train.precision=bf16", 18U),
        std::pair("train.precision=f64", 32U)}) {
    const pipeline::LmConfig config = lm_of({word, "train.microbatch=3"});
    const pipeline::LmShape shape = pipeline::shape_of(config, 257);
    const auto with = [&](Keep keep) {
      const std::uint64_t peak = pipeline::training_peak_bytes(shape, config.train.precision, 3 * 128, keep);
      return kProgramBytes + bytes * lm_parameter_count(shape) + peak + peak / 3;
    };
    const std::uint64_t all = with(Keep::kAll);
    const std::uint64_t least = with(Keep::kLayerInputs);
    ASSERT_LT(least, all);
    for (const auto& [limit, needed, keep] :
         {std::tuple(all, all, Keep::kAll), std::tuple(all - 1, least, Keep::kLayerInputs),
          std::tuple(least, least, Keep::kLayerInputs)}) {
      const auto fits = check_training_memory(MemoryMachine(limit).host, config, 257);
      ASSERT_TRUE(fits.ok()) << word;
      EXPECT_EQ(fits->bytes, needed) << word;
      EXPECT_EQ(fits->keep, keep) << word;
    }
    EXPECT_FALSE(check_training_memory(MemoryMachine(least - 1).host, config, 257).ok()) << word;
  }
}

struct Fix {
  std::string key;
  std::uint32_t number = 0;
};
// "would fit: KEY=NUMBER"; no key for other words.
Fix fix_of(const Error& error) {
  const std::string begin = "would fit: ";
  const std::size_t equal = error.fix.find('=');
  if (!error.fix.starts_with(begin) || equal == std::string::npos || error.fix.find(' ', equal) < equal)
    return {};
  const std::string number = error.fix.substr(equal + 1);
  if (number.find_first_not_of("0123456789") != std::string::npos) return {};
  return {.key = error.fix.substr(begin.size(), equal - begin.size()),
          .number = static_cast<std::uint32_t>(std::stoul(number))};
}

// Claim: what the message says would fit does fit, and one more does not: windows of a microbatch first, then
// layers.
TEST(LmMemory, NamesWhatWouldFit) {
  int microbatches = 0;
  int layers = 0;
  for (std::uint64_t gigabytes = 1; gigabytes <= 40; ++gigabytes) {
    const MemoryMachine machine(gigabytes * 1'000'000'000);
    const std::vector<std::string> words = {"model.preset=swarm-1b", "model.layers=9", "train.microbatch=100",
                                            "train.batch=100"};
    const auto refused = check_training_memory(machine.host, lm_of(words), 257);
    ASSERT_FALSE(refused.ok()) << gigabytes;
    const Fix fix = fix_of(refused.error());
    (fix.key == "model.layers" ? layers : microbatches) += fix.number > 0 ? 1 : 0;
    if (fix.key.empty()) continue;
    const auto with = [&](std::uint32_t number) {
      std::vector<std::string> all = words;
      all.push_back(fix.key + "=" + std::to_string(number));
      return check_training_memory(machine.host, lm_of(all), 257).ok();
    };
    EXPECT_TRUE(with(fix.number)) << refused.error().fix;
    EXPECT_FALSE(with(fix.number + 1)) << refused.error().fix;
  }
  EXPECT_GT(microbatches, 3);
  EXPECT_EQ(layers, 0) << "100 windows are too many for any layer";
}

// Claim: f32 is named first where it is enough; layers where one window is too much; a machine too small for
// anything is told so.
TEST(LmMemory, NamesTheLeastChange) {
  const pipeline::LmConfig doubles = lm_of({"train.precision=f64"});
  const std::uint64_t needed = training_bytes(doubles, 257, Keep::kLayerInputs);
  const auto refused = check_training_memory(MemoryMachine(needed - 1).host, doubles, 257);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().fix, "would fit: train.precision=f32");
  const std::vector<std::string> words = {"model.preset=swarm-1b", "train.microbatch=1", "model.layers=9"};
  const MemoryMachine machine(20'000'000'000);
  const auto deep = check_training_memory(machine.host, lm_of(words), 257);
  ASSERT_FALSE(deep.ok());
  const Fix fix = fix_of(deep.error());
  ASSERT_EQ(fix.key, "model.layers") << deep.error().fix;
  const auto with = [&](std::uint32_t number) {
    std::vector<std::string> all = words;
    all.back() = "model.layers=" + std::to_string(number);
    return check_training_memory(machine.host, lm_of(all), 257).ok();
  };
  EXPECT_TRUE(with(fix.number));
  EXPECT_FALSE(with(fix.number + 1));
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
