// SPDX-License-Identifier: Apache-2.0
//
// What torch allocates for a microbatch, beside what is computed before.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engines/pipeline/stage/lm_activations.h"
#include "engines/pipeline/torch/torch_stage.h"

namespace gossamer::pipeline {
namespace {

// Counts the bytes that torch allocates on this thread, and gives back, while it is set.
struct TorchBytes final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void* /*memory*/, std::int64_t bytes, std::size_t /*allocated*/,
                         std::size_t /*reserved*/, c10::Device /*device*/) override {
    live += bytes;
    peak = std::max(peak, live);
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  std::int64_t live = 0;
  std::int64_t peak = 0;
};

struct MemoryShape {
  std::string name;
  LmShape shape;
  std::uint32_t windows = 1;
};

// Wide and narrow layers and heads, many words, one window, layers that are applied again; each with both
// kinds of activation, norm and positions.
std::vector<MemoryShape> memory_shapes() {
  const LmShape base{.vocabulary = 257, .context = 128, .width = 128, .heads = 4, .hidden = 512, .layers = 3};
  std::vector<MemoryShape> sizes = {{.name = "tiny", .shape = base, .windows = 2},
                                    {.name = "words", .shape = base},
                                    {.name = "heads", .shape = base},
                                    {.name = "narrow", .shape = base, .windows = 2},
                                    {.name = "deep", .shape = base, .windows = 2},
                                    {.name = "one", .shape = base}};
  sizes[1].shape.vocabulary = 8000;
  sizes[1].shape.layers = 1;
  sizes[2].shape.context = 256;
  sizes[2].shape.width = sizes[2].shape.hidden = 64;
  sizes[2].shape.heads = 32;
  sizes[3].shape.hidden = 64;
  sizes[3].shape.heads = 2;
  sizes[4].shape.applied = 3;
  sizes[4].shape.width = 64;
  sizes[4].shape.layers = 2;
  sizes[5].shape.width = 256;
  sizes[5].shape.layers = 1;
  std::vector<MemoryShape> all;
  for (const MemoryShape& size : sizes) {
    for (int variant = 0; variant < 5; ++variant) {
      MemoryShape one = size;
      one.name += fmt::format(" {}", variant);
      if (variant == 1 || variant == 4) one.shape.activation = LmActivation::kSwiGlu;
      if (variant == 2 || variant == 4) one.shape.norm = LmNorm::kRms;
      if (variant == 3 || variant == 4) one.shape.positions = LmPositions::kRotary;
      if (variant == 2 || variant == 4) one.shape.biases = LmBiases::kNone;
      all.push_back(one);
    }
  }
  return all;
}

struct MemoryCase {
  const MemoryShape& of;
  Precision precision;
  Keep keep;
};

// Takes a microbatch as LoneTrainer does, and looks at its memory after each call.
void expect_memory(const MemoryCase& wanted) {
  const LmShape& shape = wanted.of.shape;
  const std::uint64_t tokens = std::uint64_t{wanted.of.windows} * shape.context;
  const auto stage = *make_torch_stage({.shape = shape,
                                        .cut = {.first = 0, .last = shape.layers, .layers = shape.layers},
                                        .precision = wanted.precision});
  const auto counted = std::make_shared<TorchBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counted);
  const std::vector<TokenNumber> text(tokens, 3);
  const auto task = *stage->begin(
      {.windows = wanted.of.windows, .context = shape.context, .tokens = text, .targets = text}, wanted.keep);
  const auto look = [&] {
    const auto live = static_cast<double>(counted->live);
    EXPECT_NEAR(static_cast<double>(task->bytes()), live, 0.01 * live);
  };
  look();
  while (*task->forward_next()) look();
  look();
  ASSERT_TRUE(task->begin_backward({}).ok());
  for (bool more = true; more;) {
    more = *task->backward_next();
    look();
    while (task->can_add()) (void)*task->add_next();
  }
  look();
  const std::uint64_t told = training_peak_bytes(shape, wanted.precision, tokens, wanted.keep);
  const auto peak = static_cast<double>(counted->peak);
  EXPECT_GE(static_cast<double>(told), peak);
  EXPECT_LE(static_cast<double>(told), 1.4 * peak + (1 << 20));
}

// Claim: a task tells the memory that it has to the hundredth part, after each call. The peak that is told
// before a microbatch is computed is not less than what it takes, and at most two fifths and a
// megabyte more.
TEST(TorchMemory, IsToldBefore) {
  for (const MemoryShape& shape : memory_shapes()) {
    for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kF64}) {
      for (const Keep keep : {Keep::kInput, Keep::kLayerInputs, Keep::kAll}) {
        SCOPED_TRACE(fmt::format("{} precision {} keep {}", shape.name, static_cast<int>(precision),
                                 static_cast<int>(keep)));
        expect_memory({.of = shape, .precision = precision, .keep = keep});
      }
    }
  }
}

}  // namespace
}  // namespace gossamer::pipeline
