// SPDX-License-Identifier: Apache-2.0
//
// LmConfig: the keys of a run that trains a language model, and what follows from them. A key without a value
// is `auto`: the preset of the model has it, or it follows from the data.
//
// Thread rule: plain values, pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "engines/pipeline/stage/lm_shape.h"
#include "engines/pipeline/train/lone_trainer.h"
#include "exact/step_factors.h"
#include "net/codec/codec.h"
#include "settings/key_table.h"

namespace gossamer::pipeline {

// In the order of kLmPresets.
enum class LmPresetName { kTiny, kGpt2Small, kSwarm1b };

struct LmDataConfig {
  std::string train = {};
  std::string test = {};
  std::uint64_t skip_bad = 0;
  std::string tokenizer = "bytes";  // "bytes", "sentencepiece", or a file with a model of SentencePiece
  std::optional<std::uint32_t> vocabulary = {};
};

struct LmModelConfig {
  LmPresetName preset = LmPresetName::kTiny;
  std::optional<std::uint32_t> context = {};
  std::optional<std::uint32_t> width = {};
  std::optional<std::uint32_t> heads = {};
  std::optional<std::uint32_t> hidden = {};
  std::optional<std::uint32_t> layers = {};
  std::optional<std::uint32_t> applied = {};
  std::optional<LmActivation> activation = {};
  std::optional<LmNorm> norm = {};
  std::optional<LmPositions> positions = {};
  std::optional<LmBiases> biases = {};
};

struct LmTrainConfig {
  double epochs = 1;
  std::uint64_t steps = 0;  // 0: as many as `epochs` needs
  std::uint64_t batch = 32;
  std::uint32_t microbatch = 8;
  std::optional<double> lr = {};
  std::optional<std::uint64_t> warmup_steps = {};
  exact::RateShape schedule = exact::RateShape::kCosine;
  double lr_floor = 0.1;
  double clip = 1;
  Precision precision = Precision::kF32;
  bool skip_bad = false;
};

struct LmOptimizerConfig {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

struct LmCheckpointConfig {
  std::uint64_t every_steps = 0;
  double every_minutes = 10;
  std::uint32_t keep = 2;
};

// What runs by members have beside.
enum class LmSums { kF32, kBf16 };
struct LmPipelineConfig {
  std::optional<std::uint32_t> stages = {};
  net::Codec codec = net::Codec::kBf16;
  LmSums sums = LmSums::kF32;
};

struct LmConfig {
  std::uint64_t seed = 1;
  LmDataConfig data;
  LmModelConfig model;
  LmTrainConfig train;
  LmOptimizerConfig optimizer;
  LmCheckpointConfig checkpoint;
  LmPipelineConfig pipeline;
};

[[nodiscard]] const settings::KeyTable<LmConfig>& lm_keys();

// kUsage for keys that contradict each other. It needs no data.
[[nodiscard]] Result<void> validate(const LmConfig& config);

// The model: the preset's shape, with the keys that are given.
[[nodiscard]] LmShape shape_of(const LmConfig& config, std::uint32_t vocabulary);

// Fills in all that is `auto`, but data.vocabulary, as whether a tokenizer is trained depends on the text,
// and pipeline.stages, as other nodes may do the rest of the run. `windows`: of the training text, at
// least 1. The result is its own resolved config.
[[nodiscard]] LmConfig resolved(const LmConfig& config, std::uint64_t windows);

// Requires a resolved config.
[[nodiscard]] TrainerOptions trainer_options(const LmConfig& config);

// Names everything that shapes the trained model, but for the data: the caller adds the checksum of the
// tokens. Checkpoints of another are refused.
[[nodiscard]] std::string fingerprint(const LmConfig& config);

}  // namespace gossamer::pipeline
