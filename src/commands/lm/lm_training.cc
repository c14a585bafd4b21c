// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_training.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/human_bytes.h"
#include "commands/lm/lm_figures.h"
#include "commands/lm/lm_memory.h"
#include "commands/lm/lm_text.h"
#include "commands/lm/loaded_lm.h"
#include "commands/lm/run_text.h"
#include "commands/lm/text_tokenizer.h"
#include "commands/run/data_sum.h"
#include "engines/pipeline/config/lm_config.h"
#include "engines/pipeline/model/lm_model_file.h"
#include "engines/pipeline/train/lm_run.h"
#include "learn/tokens/byte_tokenizer.h"
#include "learn/tokens/token_windows.h"
#include "tensors/model_directory.h"

namespace gossamer::commands {
namespace {

using pipeline::lm_keys;

Error no_members() {
  return {.kind = ErrorKind::kUsage,
          .where = "lm",
          .what = "steps of a language model by several processes are not there yet",
          .got = "--nodes, or a coordinator",
          .expected = "a run in one process, which uses all cores",
          .fix = "gossamer train lm data.train=FILE --out DIR"};
}

bool is_stdin(const std::string& source) { return source == "-" || source == "/dev/stdin"; }

Error stdin_twice() {
  return {.kind = ErrorKind::kUsage,
          .where = "data.test",
          .what = "standard input can be read only once",
          .got = "'-' for data.train and for data.test",
          .expected = "a file for one of the two",
          .fix = "write one of them to a file first"};
}

// Data members are grouped by what changes when.
class LmTraining final : public Training {
 public:
  LmTraining(const TrainingPlace& place, bool led, const LmModules& modules)
      : host_(place.host),
        paths_(place.paths),
        run_id_(place.run_id),
        stop_requested_(place.stop_requested),
        resume_command_(place.resume_command),
        begins_(place.begins),
        led_(led),
        modules_(modules),
        config_(lm_keys().config(place.config)) {}

  Result<void> prepare() override {
    if (led_) return no_members();
    if (begins_ && config_.data.train.empty()) return missing_text();
    if (auto valid = pipeline::validate(config_); !valid.ok()) return valid;
    if (is_stdin(config_.data.train) && is_stdin(config_.data.test)) return stdin_twice();
    // The least vocabulary: which one it is may need the text.
    const auto fits = check_training_memory(host_, config_, tokens::ByteTokenizer::kVocabulary);
    if (!fits.ok()) return fits.error();
    const auto make_stage = modules_.stages(host_);
    if (!make_stage.ok()) return make_stage.error();
    if (auto made = make_tokenizer(); !made.ok()) return made;
    const auto needed = check_training_memory(host_, config_, tokenizer_->vocabulary());
    if (!needed.ok()) return needed.error();
    if (auto read = read_texts(); !read.ok()) return read;
    keep_ = needed->keep;
    if (auto made = make_model(*make_stage, needed->bytes); !made.ok()) return made;
    if (keep_ != pipeline::Keep::kAll) {
      const std::uint64_t all = training_bytes(config_, tokenizer_->vocabulary(), pipeline::Keep::kAll);
      host_.say(
          fmt::format("layers are computed twice in a step, for lack of memory: to keep what they compute "
                      "takes {}",
                      human_bytes(all)));
    }
    return {};
  }

  [[nodiscard]] settings::Values config() const override { return lm_keys().values(config_); }

  [[nodiscard]] TrainingFacts facts() const override {
    return {.parameters = lm_parameter_count(shape()),
            .batch = config_.train.batch,
            .samples = windows_->windows(),
            .title = title()};
  }

  Result<DoneSteps> train(const engine::TrainHooks& hooks, double load_seconds) override {
    pipeline::TrainerOptions trainer = pipeline::trainer_options(config_);
    trainer.keep = keep_;
    const pipeline::LmRun run{.disk = host_.disk,
                              .clock = host_.clock,
                              .model = *model_,
                              .windows = *windows_,
                              .trainer = trainer,
                              .checkpoints = {.every_steps = config_.checkpoint.every_steps,
                                              .every_minutes = config_.checkpoint.every_minutes,
                                              .steps = config_.train.steps},
                              .keep = static_cast<int>(config_.checkpoint.keep),
                              .directory = paths_.checkpoints(),
                              .run_id = run_id_,
                              .fingerprint = run_fingerprint(),
                              .load_seconds = load_seconds};
    const auto done = pipeline::train_lm(run, hooks);
    if (!done.ok()) return done.error();
    if (done->skipped > 0) {
      host_.warn(fmt::format("{} left out, for the gradient was not finite (train.skip_bad)",
                             run::counted(done->skipped, "step")));
    }
    steps_ = done->steps;
    return DoneSteps{.steps = done->steps,
                     .all = done->all,
                     .final_loss = done->final_loss,
                     .resumed_at = done->resumed_at,
                     .cost_before = done->cost_before};
  }

  // The same step on the same windows has the same gradient again.
  [[nodiscard]] bool ends_for_good(const Error& error) const override {
    return pipeline::tells_of_no_finite_gradient(error);
  }

  Result<void> save() override {
    if (!std::exchange(told_, true)) host_.say("writing the model");
    return pipeline::save_lm_model(
        host_.disk, paths_.model(),
        {.model = *model_,
         .about = {.shape = shape(),
                   .tokenizer = {.name = std::string(tokenizer_->name()), .digest = tokenizer_->digest()},
                   .steps = steps_},
         .tokenizer = tokenizer_->model()});
  }

  Result<void> check_saved() const override {
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

  Result<Measurement> measure() override {
    if (test_ == nullptr) return Measurement();
    if (auto loaded = take_model_as_asked(); !loaded.ok()) return loaded.error();
    const Instant begin = host_.clock.now();
    const Duration cpu = host_.clock.process_cpu();
    const auto measured = measure_tokens(*model_, *test_, *tokenizer_, [this] { return stop_requested_(); });
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

 private:
  [[nodiscard]] pipeline::LmShape shape() const {
    return pipeline::shape_of(config_, tokenizer_->vocabulary());
  }

  // `predict` and `eval` compute in the type of the files. So figures of a run in bf16 are those of float,
  // too.
  Result<void> take_model_as_asked() {
    if (config_.train.precision != pipeline::Precision::kBf16) return {};
    model_.reset();
    auto loaded = load_lm(host_, modules_, paths_.model());
    if (!loaded.ok()) return loaded.error();
    model_ = std::move(loaded->model);
    return {};
  }

  Result<void> make_tokenizer() {
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

  [[nodiscard]] std::string kept_tokenizer() const {
    return fmt::format("{}/{}", paths_.data(), tokens::kTokenizerFile);
  }

  // Mistakes in the test text are told first. A begun run has none, but it may have another training text:
  // then nothing of the run is made of it.
  Result<void> read_texts() {
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

  Result<void> make_model(const MakeStage& make_stage, std::uint64_t needed) {
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
    auto model = make_stage({.shape = shape(),
                             .cut = {.first = 0, .last = shape().layers, .layers = shape().layers},
                             .precision = config_.train.precision,
                             .seed = config_.seed,
                             .threads = host_.compute.workers()});
    if (!model.ok()) return model.error();
    model_ = *std::move(model);
    host_.say(fmt::format("{} parameters, {} of memory, {} steps of {} windows of {} tokens on {} threads",
                          run::human_count(lm_parameter_count(shape())), human_bytes(needed),
                          run::human_count(config_.train.steps), config_.train.batch, shape().context,
                          host_.compute.workers()));
    return {};
  }

  [[nodiscard]] std::string run_fingerprint() const {
    return fmt::format("{}tokens={:016x}\n", pipeline::fingerprint(config_), train_->checksum());
  }

  [[nodiscard]] std::string title() const {
    return fmt::format("{} windows of {} tokens, {} parameters, seed {}",
                       run::human_count(windows_->windows()), shape().context,
                       run::human_count(lm_parameter_count(shape())), config_.seed);
  }

  // Never changes.
  const run::NodeHost& host_;
  const run::RunPaths paths_;
  const std::string run_id_;
  const FunctionRef<bool()> stop_requested_;
  const std::string resume_command_;
  const bool begins_;
  const bool led_;
  const LmModules modules_;

  // prepare() fills these. The config is the user's at first; it ends as what a resumed run starts from.
  pipeline::LmConfig config_;
  std::unique_ptr<tokens::Tokenizer> tokenizer_;
  std::unique_ptr<tokens::TokenFile> train_;
  std::unique_ptr<tokens::TokenFile> test_;  // null: there is no test text
  std::optional<tokens::TokenWindows> windows_;
  std::unique_ptr<pipeline::StageBackend> model_;
  pipeline::Keep keep_ = pipeline::Keep::kAll;  // of a microbatch, as much as fits

  // train() and save() fill these.
  std::uint64_t steps_ = 0;  // that are done
  bool told_ = false;        // that the model is written
};

}  // namespace

std::unique_ptr<Training> lm_training(const TrainingPlace& place, const std::optional<LeadOptions>& lead,
                                      const LmModules& modules) {
  return std::make_unique<LmTraining>(place, lead.has_value(), modules);
}

}  // namespace gossamer::commands
