// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/config/lm_config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gossamer::pipeline {
namespace {

LmConfig config_of(const std::vector<std::string>& words) {
  settings::Values values = lm_keys().defaults();
  EXPECT_TRUE(values.apply_words(words).ok());
  return lm_keys().config(values);
}

// Claim: each preset is that of the list, and the word of the key is its name.
TEST(LmConfig, PresetsHaveTheirShapes) {
  for (const LmPreset& preset : kLmPresets) {
    LmShape shape = shape_of(config_of({"model.preset=" + std::string(preset.name)}), 300);
    EXPECT_EQ(shape.vocabulary, 300U);
    shape.vocabulary = preset.shape.vocabulary;
    EXPECT_EQ(shape, preset.shape) << preset.name;
  }
}

// Claim: a key changes its part of a preset, and no other.
TEST(LmConfig, KeysChangeAPartOfAPreset) {
  const LmConfig config = config_of({"model.preset=gpt2-small", "model.layers=3", "model.biases=no-key"});
  LmShape right = kLmPresets[1].shape;
  right.vocabulary = 7;
  right.layers = 3;
  right.biases = LmBiases::kAllButKey;
  EXPECT_EQ(shape_of(config, 7), right);
}

// Claim: a resolved config has no open key but data.vocabulary, is its own resolved config, and trains as it
// says.
TEST(LmConfig, ResolvesWhatIsOpen) {
  const LmConfig open = config_of({"train.epochs=2", "train.batch=10", "train.microbatch=4"});
  const LmConfig closed = resolved(open, 1001);
  EXPECT_EQ(closed.train.steps, 201U);
  EXPECT_EQ(closed.train.warmup_steps, 4U);
  for (const settings::Key& key : lm_keys().all()) {
    EXPECT_EQ(lm_keys().get(closed, key) == "auto",
              key.name == "data.vocabulary" || key.name == "pipeline.stages")
        << key.name;
  }
  EXPECT_EQ(resolved(config_of({"data.tokenizer=sentencepiece", "data.vocabulary=300"}), 1).data.vocabulary,
            300U);
  EXPECT_EQ(lm_keys().values(resolved(closed, 1001)), lm_keys().values(closed));
  EXPECT_EQ(shape_of(closed, 257), shape_of(open, 257));
  const TrainerOptions options = trainer_options(closed);
  EXPECT_EQ(options.batch, 10U);
  EXPECT_EQ(options.microbatch, 4U);
  EXPECT_EQ(options.schedule.steps, 201U);
  EXPECT_EQ(options.schedule.warmup, 4U);
  EXPECT_EQ(options.bad_steps, BadSteps::kStop);
  EXPECT_EQ(resolved(config_of({"train.steps=7"}), 1001).train.steps, 7U);
  EXPECT_EQ(resolved(config_of({"train.epochs=0.001"}), 3).train.steps, 1U);
}

// Claim: what contradicts itself is refused, and the key is named.
TEST(LmConfig, RefusesContradictions) {
  EXPECT_TRUE(validate(config_of({})).ok());
  EXPECT_EQ(validate(config_of({"train.batch=4"})).error().where, "train.microbatch");
  EXPECT_EQ(validate(config_of({"model.heads=3"})).error().where, "model.heads");
  EXPECT_EQ(validate(config_of({"model.context=1048576", "train.microbatch=17"})).error().where,
            "train.microbatch");
  EXPECT_TRUE(validate(config_of({"model.context=1048576", "train.microbatch=16"})).ok());
}

// Claim: checkpoints belong to all keys that shape the model, and to no other.
TEST(LmConfig, FingerprintHasWhatShapesTheModel) {
  const std::string plain = fingerprint(config_of({}));
  for (const char* word : {"seed=2", "model.layers=5", "train.batch=8", "train.lr=0.1", "optimizer.beta2=0.9",
                           "train.precision=bf16"}) {
    EXPECT_NE(fingerprint(config_of({word})), plain) << word;
  }
  for (const char* word :
       {"checkpoint.keep=5", "checkpoint.every_steps=7", "data.test=held-out.txt", "data.train=moved.txt"})
    EXPECT_EQ(fingerprint(config_of({word})), plain) << word;
}

}  // namespace
}  // namespace gossamer::pipeline
