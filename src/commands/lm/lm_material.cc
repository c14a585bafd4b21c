// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_material.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "commands/lm/lm_figures.h"
#include "commands/lm/lm_memory.h"
#include "commands/lm/lm_text.h"
#include "commands/lm/loaded_lm.h"
#include "commands/lm/run_text.h"
#include "commands/lm/text_tokenizer.h"
#include "commands/run/data_sum.h"
#include "engines/pipeline/model/lm_model_file.h"
#include "tensors/model_directory.h"

namespace gossamer::commands {
namespace {

bool is_stdin(const std::string& source) { return source == "-" || source == "/dev/stdin"; }

Error stdin_twice() {
  return {.kind = ErrorKind::kUsage,
          .where = "data.test",
          .what = "standard input can be read only once",
          .got = "'-' for data.train and for data.test",
          .expected = "a file for one of the two",
          .fix = "write one of them to a file first"};
}

}  // namespace

LmMaterial::LmMaterial(const TrainingPlace& place, const LmModules& modules)
    : host_(place.host),
      paths_(place.paths),
      stop_requested_(place.stop_requested),
      resume_command_(place.resume_command),
      begins_(place.begins),
      modules_(modules),
      config_(pipeline::lm_keys().config(place.config)) {}

Result<void> LmMaterial::check() const {
  if (begins_ && config_.data.train.empty()) return missing_text();
  if (auto valid = pipeline::validate(config_); !valid.ok()) return valid;
  if (is_stdin(config_.data.train) && is_stdin(config_.data.test)) return stdin_twice();
  return {};
}

std::string LmMaterial::kept_tokenizer() const {
  return fmt::format("{}/{}", paths_.data(), tokens::kTokenizerFile);
}

Result<void> LmMaterial::make_tokenizer() {
  const auto begun = has_data_sum(host_.disk, paths_);
  if (!begun.ok()) return begun.error();
  // A user's tokens say nothing about a run that has none yet.
  const auto digest = digest_of_tokens(host_.disk, paths_, *begun ? config_.data.train : "");
  if (!digest.ok()) return digest.error();
  auto made = tokenizer_of_text(host_, modules_.pieces,
                                {.word = config_.data.tokenizer,
                                 .vocabulary = config_.data.vocabulary,
                                 .sources = {config_.data.train},
                                 .skip_bad = config_.data.skip_bad,
                                 .kept = kept_tokenizer(),
                                 .digest = *digest,
                                 .first = begins_ && !*begun,
                                 .stop = [this] { return stop_requested_(); }});
  if (!made.ok()) return made.error();
  tokenizer_ = *std::move(made);
  // That of a begun run is kept when its tokens are those of the run: a user's tokens may be others now.
  if (*begun) return {};
  return keep_tokenizer(host_.disk, kept_tokenizer(), *tokenizer_);
}

// Mistakes in the test text are told first. A begun run has none, but it may have another training text:
// then nothing of the run is made of it.
Result<void> LmMaterial::read_texts() {
  const RunTexts texts{.host = host_,
                       .paths = paths_,
                       .tokenizer = *tokenizer_,
                       .skip_bad = config_.data.skip_bad,
                       .resume_command = resume_command_,
                       .stop = [this] { return stop_requested_(); }};
  const auto begun = has_data_sum(host_.disk, paths_);
  if (!begun.ok()) return begun.error();
  for (const bool now : {*begun, !*begun}) {
    auto file = now ? training_text(texts, config_.data.train) : test_text(texts, config_.data.test);
    if (!file.ok()) return file.error();
    (now ? train_ : test_) = *std::move(file);
  }
  return keep_tokenizer(host_.disk, kept_tokenizer(), *tokenizer_);
}

Result<void> LmMaterial::cut() {
  auto windows = tokens::TokenWindows::cut(*train_, {.context = shape().context, .seed = config_.seed});
  if (!windows.ok()) {
    Error error = windows.error();
    if (!config_.data.train.empty()) error.where = config_.data.train;
    error.fix = fmt::format("take a longer text, or a smaller model.context (at most {})",
                            train_->size() > 1 ? train_->size() - 1 : 1);
    return error;
  }
  windows_.emplace(*std::move(windows));
  config_ = pipeline::resolved(config_, windows_->windows());
  return {};
}

std::string LmMaterial::run_fingerprint() const {
  return fmt::format("{}tokens={:016x}\n", pipeline::fingerprint(config_), train_->checksum());
}

TrainingFacts LmMaterial::facts() const {
  return {.parameters = lm_parameter_count(shape()),
          .batch = config_.train.batch,
          .samples = windows_->windows(),
          .title = fmt::format("{} windows of {} tokens, {} parameters, seed {}",
                               run::human_count(windows_->windows()), shape().context,
                               run::human_count(lm_parameter_count(shape())), config_.seed)};
}

Result<std::unique_ptr<pipeline::StageBackend>> LmMaterial::make_model(const MakeStage& make_stage) const {
  return make_stage({.shape = shape(),
                     .cut = {.first = 0, .last = shape().layers, .layers = shape().layers},
                     .precision = config_.train.precision,
                     .seed = config_.seed,
                     .threads = host_.compute.workers()});
}

Result<void> LmMaterial::save_model(pipeline::StageBackend& model, std::uint64_t steps) {
  if (!std::exchange(told_, true)) host_.say("writing the model");
  return pipeline::save_lm_model(
      host_.disk, paths_.model(),
      {.model = model,
       .about = {.shape = shape(),
                 .tokenizer = {.name = std::string(tokenizer_->name()), .digest = tokenizer_->digest()},
                 .steps = steps},
       .tokenizer = tokenizer_->model()});
}

Result<void> LmMaterial::check_saved() const {
  const auto opened = pipeline::open_lm_model(host_.disk, paths_.model());
  if (!opened.ok()) return opened.error();
  if (const auto tokenizer = pipeline::read_tokenizer(host_.disk, *opened); !tokenizer.ok())
    return tokenizer.error();
  for (const tensors::ShardEntry& shard : opened->header.shards) {
    const auto whole = tensors::map_shard(host_.disk, opened->directory, shard);
    if (!whole.ok()) return whole.error();
  }
  return {};
}

Result<void> LmMaterial::take_model_as_asked(std::unique_ptr<pipeline::StageBackend>& model) const {
  if (config_.train.precision != pipeline::Precision::kBf16) return {};
  model.reset();
  auto loaded = load_lm(host_, modules_, paths_.model());
  if (!loaded.ok()) return loaded.error();
  model = std::move(loaded->model);
  return {};
}

Result<Measurement> LmMaterial::measure(std::unique_ptr<pipeline::StageBackend>& model) {
  if (auto loaded = take_model_as_asked(model); !loaded.ok()) return loaded.error();
  const Instant begin = host_.clock.now();
  const Duration cpu = host_.clock.process_cpu();
  const auto measured = measure_tokens(*model, *test_, *tokenizer_, [this] { return stop_requested_(); });
  if (!measured.ok() && stop_requested_()) {
    return Measurement{.stopped =
                           fmt::format("stopped while measuring; the model is in {}; to measure it: {}",
                                       paths_.model(), resume_command_)};
  }
  if (!measured.ok()) return measured.error();
  const std::string text = lm_metrics_text(*measured);
  host_.say(text);
  return Measurement{.metrics_json = lm_metrics_json(*measured),
                     .seconds = (host_.clock.now() - begin).seconds(),
                     .cpu_seconds = (host_.clock.process_cpu() - cpu).seconds(),
                     .text = text};
}

}  // namespace gossamer::commands
