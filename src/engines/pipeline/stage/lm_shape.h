// SPDX-License-Identifier: Apache-2.0
//
// LmShape: a decoder-only Transformer with pre-norm layers (Vaswani et al., "Attention is all you need",
// 2017; Radford et al., "Language models are unsupervised multitask learners", 2019), and the tensors of a
// stage of it. The head is a tensor of its own: were it the embedding, a microbatch would visit the first
// stage twice.
//
// A layer, with x [tokens, width]:
//
//   x = x + attention_out(attention(norm(x)))
//   x = x + mlp_out(f(mlp_in(norm(x))))               f is GELU, or SwiGLU: silu(gate) * in
//
// `applied` > 1 takes x through the same layer so many times. Thread rule: plain values, pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/pipeline/stage/stage_backend.h"

namespace gossamer::pipeline {

enum class LmActivation { kGelu, kSwiGlu };
enum class LmNorm { kLayer, kRms };
enum class LmPositions { kLearned, kRotary };
// A key's bias shifts all scores of a query alike, so its gradient is zero but for rounding. Adam makes whole
// steps of such a gradient. kAllButKey leaves it out.
enum class LmBiases { kNone, kAllButKey, kAll };

// What layers compute in. Weights, accumulators and boundaries are double for kF64 and float otherwise.
enum class Precision { kF32, kBf16, kF64 };

struct LmShape {
  std::uint32_t vocabulary = 257;
  std::uint32_t context = 128;  // the most tokens of a window
  std::uint32_t width = 128;
  std::uint32_t heads = 4;  // width / heads is even
  std::uint32_t hidden = 512;
  std::uint32_t layers = 4;
  std::uint32_t applied = 1;
  LmActivation activation = LmActivation::kGelu;
  LmNorm norm = LmNorm::kLayer;
  LmPositions positions = LmPositions::kLearned;
  LmBiases biases = LmBiases::kAllButKey;

  bool operator==(const LmShape&) const = default;
};

// "tiny", "gpt2-small" (124 M parameters and a head of 39 M), "swarm-1b" (4 layers of 201 M, each applied 12
// times). The vocabulary stays the default's: that of the tokenizer takes its place.
struct LmPreset {
  std::string_view name;
  std::string_view help;
  LmShape shape;
};
inline constexpr std::array<LmPreset, 3> kLmPresets = {{
    {.name = "tiny", .help = "0.9 M parameters, for tests and first runs", .shape = {}},
    {.name = "gpt2-small",
     .help = "the smallest GPT-2, with a head of its own",
     .shape = {.context = 1024,
               .width = 768,
               .heads = 12,
               .hidden = 3072,
               .layers = 12,
               .biases = LmBiases::kAll}},
    {.name = "swarm-1b",
     .help = "4 layers of 201 M parameters, each applied 12 times",
     .shape = {.context = 2048,
               .width = 4096,
               .heads = 32,
               .hidden = 16384,
               .layers = 4,
               .applied = 12,
               .positions = LmPositions::kRotary,
               .biases = LmBiases::kNone}},
}};

// kUsage, with the key in `where`, for a shape that no model has.
[[nodiscard]] Result<void> check_shape(const LmShape& shape);

// How a tensor begins: normal numbers of this deviation, or all of them one value.
struct LmTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  double deviation = 0;  // 0: all are `value`
  double value = 0;
  std::uint32_t layer = 0;   // of the model; `layers` for what is in none
  std::uint32_t number = 0;  // within its layer; with `layer` it names the random stream

  [[nodiscard]] std::uint64_t size() const;
};

// The tensors of a stage: the embedding, layer by layer, the head. Weights have deviation 0.02. What is added
// to x has 0.02 / sqrt(2 layers applied), so that x does not grow with depth (GPT-2).
[[nodiscard]] std::vector<LmTensor> lm_tensors(const LmShape& shape, const StageCut& cut);

// Fills `out` with the first weights of a tensor. Every cut of the model begins with the same ones.
void fill_first_weights(const LmTensor& tensor, std::uint64_t seed, Numbers out);

// The parameters of a stage.
[[nodiscard]] std::uint64_t lm_parameters(const LmShape& shape, const StageCut& cut);

}  // namespace gossamer::pipeline
