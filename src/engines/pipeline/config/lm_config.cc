// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/config/lm_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "learn/tokens/sentencepiece_tokenizer.h"

namespace gossamer::pipeline {
namespace {

using settings::key;
using T = LmConfig;
using Rows = std::vector<settings::KeyRow<LmConfig>>;

constexpr double kMostCount = 4294967295.0;
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 24;  // of a microbatch
constexpr double kMostSteps = 9007199254740991.0;  // 2^53 - 1: up to here doubles tell all integers apart

Rows lm_data_keys() {
  return {
      key<&T::seed>("seed", {.max = kMostSteps}, "names every random stream of the run"),
      key<&T::data, &LmDataConfig::train>(
          "data.train", {.kept_in = "data/train.tokens"},
          "training text: a file (plain, .gz or .zst), JSON lines with \"text\", or a folder"),
      key<&T::data, &LmDataConfig::test>("data.test", {.kept_in = "data/test.tokens"},
                                         "held-out text; when given, the finished model is measured on it"),
      key<&T::data, &LmDataConfig::skip_bad>("data.skip_bad", {.max = kMostCount},
                                             "bad lines and files to leave out before giving up"),
      key<&T::data, &LmDataConfig::tokenizer>("data.tokenizer", {},
                                              "of a text: bytes; sentencepiece, trained on data.train; or "
                                              "FILE.model of SentencePiece, or its folder"),
      key<&T::data, &LmDataConfig::vocabulary>(
          "data.vocabulary", {.min = tokens::kLeastVocabulary, .max = tokens::kMostVocabulary},
          "tokens of a tokenizer that is trained, at most; auto: 8192")};
}

Rows lm_model_keys() {
  return {
      key<&T::model, &LmModelConfig::preset>("model.preset", {.choices = {"tiny", "gpt2-small", "swarm-1b"}},
                                             "the model; the keys below change a part of it"),
      key<&T::model, &LmModelConfig::context>("model.context", {.min = 1, .max = 1'048'576},
                                              "tokens of a window, which a token can look back over"),
      key<&T::model, &LmModelConfig::width>("model.width", {.min = 2, .max = 65'536, .multiple_of = 2},
                                            "numbers that stand for a token between layers"),
      key<&T::model, &LmModelConfig::heads>("model.heads", {.min = 1, .max = 1024},
                                            "attention heads; model.width is an even multiple of them"),
      key<&T::model, &LmModelConfig::hidden>("model.hidden", {.min = 1, .max = 1'048'576},
                                             "width inside the layers' feed-forward part"),
      key<&T::model, &LmModelConfig::layers>("model.layers", {.min = 1, .max = 1000}, "layers"),
      key<&T::model, &LmModelConfig::applied>("model.applied", {.min = 1, .max = 1000},
                                              "times that each layer is applied, one after the other"),
      key<&T::model, &LmModelConfig::activation>("model.activation", {.choices = {"gelu", "swiglu"}},
                                                 "of the feed-forward part"),
      key<&T::model, &LmModelConfig::norm>("model.norm", {.choices = {"layer", "rms"}},
                                           "how a layer's input is normed"),
      key<&T::model, &LmModelConfig::positions>("model.positions", {.choices = {"learned", "rotary"}},
                                                "how a layer knows where a token stands"),
      key<&T::model, &LmModelConfig::biases>(
          "model.biases", {.choices = {"none", "no-key", "all"}},
          "beside weights; a key's bias has no gradient but rounding, so no-key leaves it out")};
}

Rows lm_train_keys() {
  return {
      key<&T::train, &LmTrainConfig::epochs>("train.epochs", {.min = 0.001, .max = 100'000},
                                             "passes over the training text"),
      key<&T::train, &LmTrainConfig::steps>("train.steps", {.max = kMostSteps},
                                            "optimizer updates; 0: as many as train.epochs needs"),
      key<&T::train, &LmTrainConfig::batch>("train.batch", {.min = 1, .max = 1'048'576}, "windows in a step"),
      key<&T::train, &LmTrainConfig::microbatch>("train.microbatch", {.min = 1, .max = 65'536},
                                                 "windows that are computed together"),
      key<&T::train, &LmTrainConfig::lr>("train.lr", {.min = 1e-9, .max = 10}, "peak learning rate"),
      key<&T::train, &LmTrainConfig::warmup_steps>(
          "train.warmup_steps", {.max = kMostCount},
          "steps in which the learning rate rises to its peak; auto: a fiftieth, at most 1000"),
      key<&T::train, &LmTrainConfig::schedule>("train.schedule",
                                               {.choices = {"constant", "linear", "cosine"}},
                                               "how the learning rate falls after the warm-up"),
      key<&T::train, &LmTrainConfig::lr_floor>(
          "train.lr_floor", {.max = 1}, "share of the peak that the learning rate has at the last step"),
      key<&T::train, &LmTrainConfig::clip>("train.clip", {.max = 1e9},
                                           "largest norm of a step's gradient; 0: any"),
      key<&T::train, &LmTrainConfig::precision>("train.precision", {.choices = {"f32", "bf16", "f64"}},
                                                "what layers compute in; weights are f32, or f64 with f64"),
      key<&T::train, &LmTrainConfig::skip_bad>(
          "train.skip_bad", {}, "leave out a step whose gradient is not finite; else the run ends")};
}

Rows lm_other_keys() {
  return {
      key<&T::optimizer, &LmOptimizerConfig::beta1>("optimizer.beta1", {.max = 0.9999},
                                                    "decay of AdamW's first moment"),
      key<&T::optimizer, &LmOptimizerConfig::beta2>("optimizer.beta2", {.max = 0.999999},
                                                    "decay of AdamW's second moment"),
      key<&T::optimizer, &LmOptimizerConfig::epsilon>("optimizer.epsilon", {.min = 1e-30, .max = 1},
                                                      "keeps AdamW's division finite"),
      key<&T::optimizer, &LmOptimizerConfig::weight_decay>(
          "optimizer.weight_decay", {.max = 10}, "of matrices: in a step weights lose the rate times this"),
      key<&T::checkpoint, &LmCheckpointConfig::every_steps>("checkpoint.every_steps", {.max = kMostSteps},
                                                            "0: by time alone"),
      key<&T::checkpoint, &LmCheckpointConfig::every_minutes>(
          "checkpoint.every_minutes", {.max = 10'080}, "0: by steps alone; a stopped run always writes one"),
      key<&T::checkpoint, &LmCheckpointConfig::keep>("checkpoint.keep", {.min = 1, .max = 1000},
                                                     "newest checkpoints kept"),
      key<&T::pipeline, &LmPipelineConfig::stages>(
          "pipeline.stages", {.min = 1, .max = 1000},
          "of a run by several nodes: runs of layers, each held by one or more; auto: half of the nodes"),
      key<&T::pipeline, &LmPipelineConfig::codec>(
          "pipeline.codec", {.choices = {"f32", "bf16", "int8"}},
          "how numbers travel between stages; those of train.precision=f64 as they are"),
      key<&T::pipeline, &LmPipelineConfig::sums>("pipeline.sums", {.choices = {"f32", "bf16"}},
                                                 "how gradients travel between nodes of a stage")};
}

// A rate that suits the size of the preset (Kaplan et al., "Scaling laws for neural language models", 2020:
// the larger the model, the smaller).
double peak_rate(LmPresetName preset) {
  switch (preset) {
    case LmPresetName::kTiny: return 3e-3;
    case LmPresetName::kGpt2Small: return 6e-4;
    case LmPresetName::kSwarm1b: break;
  }
  return 2e-4;
}

}  // namespace

const settings::KeyTable<LmConfig>& lm_keys() {
  static const settings::KeyTable<LmConfig> table(
      {.listed_by = "gossamer train --keys lm"},
      settings::join_rows<LmConfig>({lm_data_keys(), lm_model_keys(), lm_train_keys(), lm_other_keys()}));
  return table;
}

Result<void> validate(const LmConfig& config) {
  if (auto good = check_shape(shape_of(config, 1)); !good.ok()) return good;
  const std::uint64_t tokens = std::uint64_t{config.train.microbatch} * shape_of(config, 1).context;
  if (tokens > kMostTokens) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "train.microbatch",
                 .what = "no memory holds a microbatch of so many tokens",
                 .got = fmt::format("{} windows of {} tokens", config.train.microbatch,
                                    tokens / config.train.microbatch),
                 .expected = fmt::format("at most {} tokens", kMostTokens)};
  }
  if (config.train.microbatch <= config.train.batch) return {};
  return Error{.kind = ErrorKind::kUsage,
               .where = "train.microbatch",
               .what = "a microbatch is a part of a step",
               .got = fmt::format("{}", config.train.microbatch),
               .expected = fmt::format("at most train.batch, {}", config.train.batch)};
}

LmShape shape_of(const LmConfig& config, std::uint32_t vocabulary) {
  const LmModelConfig& model = config.model;
  const LmShape preset = kLmPresets[static_cast<std::size_t>(model.preset)].shape;
  return {.vocabulary = vocabulary,
          .context = model.context.value_or(preset.context),
          .width = model.width.value_or(preset.width),
          .heads = model.heads.value_or(preset.heads),
          .hidden = model.hidden.value_or(preset.hidden),
          .layers = model.layers.value_or(preset.layers),
          .applied = model.applied.value_or(preset.applied),
          .activation = model.activation.value_or(preset.activation),
          .norm = model.norm.value_or(preset.norm),
          .positions = model.positions.value_or(preset.positions),
          .biases = model.biases.value_or(preset.biases)};
}

LmConfig resolved(const LmConfig& config, std::uint64_t windows) {
  LmConfig all = config;
  const LmShape shape = shape_of(config, 1);
  all.model = {.preset = config.model.preset,
               .context = shape.context,
               .width = shape.width,
               .heads = shape.heads,
               .hidden = shape.hidden,
               .layers = shape.layers,
               .applied = shape.applied,
               .activation = shape.activation,
               .norm = shape.norm,
               .positions = shape.positions,
               .biases = shape.biases};
  LmTrainConfig& train = all.train;
  if (train.steps == 0) {
    const double steps =
        std::ceil(train.epochs * static_cast<double>(windows) / static_cast<double>(train.batch));
    train.steps = static_cast<std::uint64_t>(std::max(1.0, steps));
  }
  constexpr std::uint64_t kLongestWarmup = 1000;
  if (!train.warmup_steps) train.warmup_steps = std::min(kLongestWarmup, train.steps / 50);
  if (!train.lr) train.lr = peak_rate(config.model.preset);
  return all;
}

TrainerOptions trainer_options(const LmConfig& config) {
  const LmTrainConfig& train = config.train;
  return {.batch = train.batch,
          .microbatch = train.microbatch,
          .schedule = {.shape = train.schedule,
                       .peak = train.lr.value(),
                       .warmup = train.warmup_steps.value(),
                       .steps = train.steps,
                       .floor_share = train.lr_floor},
          .adamw = {.beta1 = config.optimizer.beta1,
                    .beta2 = config.optimizer.beta2,
                    .epsilon = config.optimizer.epsilon,
                    .weight_decay = config.optimizer.weight_decay},
          .clip = train.clip,
          .bad_steps = train.skip_bad ? BadSteps::kSkip : BadSteps::kStop};
}

std::string fingerprint(const LmConfig& config) {
  std::string all;
  for (const settings::Key& key : lm_keys().all()) {
    // What travels is rounded in another way, and the model is the same but for that.
    const bool shapes = !key.name.starts_with("checkpoint.") && !key.name.starts_with("data.") &&
                        !key.name.starts_with("pipeline.");
    if (shapes) all += fmt::format("{}={}\n", key.name, lm_keys().get(config, key));
  }
  return all;
}

}  // namespace gossamer::pipeline
