// SPDX-License-Identifier: Apache-2.0
//
// LmMaterial: what a training run of a language model begins with, and what becomes of the trained one. A run
// in one process and the lead of several use it alike. Its parts in order:
//
//   check()       what the keys alone tell
//   read()        tokenizer and texts: from the user, or those of an earlier part of the run
//   cut()         windows; keys that are open get their values
//   save_model(), measure()   once no step is left
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/function_ref.h"
#include "base/result.h"
#include "commands/engine/training.h"
#include "commands/lm/lm_modules.h"
#include "engines/pipeline/config/lm_config.h"
#include "engines/pipeline/stage/lm_shape.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "learn/tokens/token_file.h"
#include "learn/tokens/token_windows.h"
#include "learn/tokens/tokenizer.h"
#include "run/node_host.h"
#include "run/run_directory.h"

namespace gossamer::commands {

class LmMaterial {
 public:
  // The host outlives it.
  LmMaterial(const TrainingPlace& place, const LmModules& modules);

  [[nodiscard]] Result<void> check() const;
  [[nodiscard]] Result<void> make_tokenizer();
  [[nodiscard]] Result<void> read_texts();
  [[nodiscard]] Result<void> cut();

  // The user's at first; after cut() what a resumed run starts from.
  [[nodiscard]] const pipeline::LmConfig& config() const { return config_; }
  // After make_tokenizer().
  [[nodiscard]] const tokens::Tokenizer& tokenizer() const { return *tokenizer_; }
  [[nodiscard]] pipeline::LmShape shape() const {
    return pipeline::shape_of(config_, tokenizer_->vocabulary());
  }
  // After read_texts() and cut().
  [[nodiscard]] const tokens::TokenFile& text() const { return *train_; }
  [[nodiscard]] const tokens::TokenWindows& windows() const { return *windows_; }
  [[nodiscard]] std::string run_fingerprint() const;
  [[nodiscard]] TrainingFacts facts() const;

  // The whole model, with the first weights of the run.
  [[nodiscard]] Result<std::unique_ptr<pipeline::StageBackend>> make_model(const MakeStage& make_stage) const;
  [[nodiscard]] Result<void> save_model(pipeline::StageBackend& model, std::uint64_t steps);
  // Looks whether the written model is whole.
  [[nodiscard]] Result<void> check_saved() const;
  [[nodiscard]] bool has_test_text() const { return test_ != nullptr; }
  // Requires a test text. `predict` and `eval` compute in the type of the files, and so does this: a model
  // that was trained in bf16 is loaded anew.
  [[nodiscard]] Result<Measurement> measure(std::unique_ptr<pipeline::StageBackend>& model);

 private:
  [[nodiscard]] std::string kept_tokenizer() const;
  [[nodiscard]] Result<void> take_model_as_asked(std::unique_ptr<pipeline::StageBackend>& model) const;

  const run::NodeHost& host_;
  const run::RunPaths paths_;
  const FunctionRef<bool()> stop_requested_;
  const std::string resume_command_;
  const bool begins_;
  const LmModules modules_;
  pipeline::LmConfig config_;
  std::unique_ptr<tokens::Tokenizer> tokenizer_;
  std::unique_ptr<tokens::TokenFile> train_;
  std::unique_ptr<tokens::TokenFile> test_;  // null: there is no test text
  std::optional<tokens::TokenWindows> windows_;
  bool told_ = false;  // that the model is written
};

}  // namespace gossamer::commands
