// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_training.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/human_bytes.h"
#include "commands/lm/lm_material.h"
#include "commands/lm/lm_memory.h"
#include "engines/pipeline/train/lm_run.h"
#include "learn/tokens/byte_tokenizer.h"

namespace gossamer::commands {
namespace {

class LmTraining final : public Training {
 public:
  LmTraining(const TrainingPlace& place, const LmModules& modules)
      : host_(place.host),
        paths_(place.paths),
        run_id_(place.run_id),
        modules_(modules),
        material_(place, modules) {}

  Result<void> prepare() override {
    if (auto good = material_.check(); !good.ok()) return good;
    // The least vocabulary: which one it is may need the text.
    const auto fits = check_training_memory(host_, config_of_run(), tokens::ByteTokenizer::kVocabulary);
    if (!fits.ok()) return fits.error();
    const auto make_stage = modules_.stages(host_);
    if (!make_stage.ok()) return make_stage.error();
    if (auto made = material_.make_tokenizer(); !made.ok()) return made;
    const auto needed = check_training_memory(host_, config_of_run(), vocabulary());
    if (!needed.ok()) return needed.error();
    if (auto read = material_.read_texts(); !read.ok()) return read;
    keep_ = needed->keep;
    if (auto made = make_model(*make_stage, needed->bytes); !made.ok()) return made;
    if (keep_ != pipeline::Keep::kAll) {
      const std::uint64_t all = training_bytes(config_of_run(), vocabulary(), pipeline::Keep::kAll);
      host_.say(
          fmt::format("layers are computed twice in a step, for lack of memory: to keep what they compute "
                      "takes {}",
                      human_bytes(all)));
    }
    return {};
  }

  [[nodiscard]] settings::Values config() const override {
    return pipeline::lm_keys().values(config_of_run());
  }
  [[nodiscard]] TrainingFacts facts() const override { return material_.facts(); }

  Result<DoneSteps> train(const engine::TrainHooks& hooks, double load_seconds) override {
    const pipeline::LmConfig& config = config_of_run();
    pipeline::TrainerOptions trainer = pipeline::trainer_options(config);
    trainer.keep = keep_;
    const pipeline::LmRun run{.disk = host_.disk,
                              .clock = host_.clock,
                              .model = *model_,
                              .windows = material_.windows(),
                              .trainer = trainer,
                              .checkpoints = {.every_steps = config.checkpoint.every_steps,
                                              .every_minutes = config.checkpoint.every_minutes,
                                              .steps = config.train.steps},
                              .keep = static_cast<int>(config.checkpoint.keep),
                              .directory = paths_.checkpoints(),
                              .run_id = run_id_,
                              .fingerprint = material_.run_fingerprint(),
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

  Result<void> save() override { return material_.save_model(*model_, steps_); }
  Result<void> check_saved() const override { return material_.check_saved(); }
  Result<Measurement> measure() override {
    return material_.has_test_text() ? material_.measure(model_) : Measurement();
  }

 private:
  [[nodiscard]] const pipeline::LmConfig& config_of_run() const { return material_.config(); }
  [[nodiscard]] std::uint32_t vocabulary() const { return material_.tokenizer().vocabulary(); }

  Result<void> make_model(const MakeStage& make_stage, std::uint64_t needed) {
    if (auto cut = material_.cut(); !cut.ok()) return cut;
    auto model = material_.make_model(make_stage);
    if (!model.ok()) return model.error();
    model_ = *std::move(model);
    const pipeline::LmShape shape = material_.shape();
    host_.say(fmt::format("{} parameters, {} of memory, {} steps of {} windows of {} tokens on {} threads",
                          run::human_count(lm_parameter_count(shape)), human_bytes(needed),
                          run::human_count(config_of_run().train.steps), config_of_run().train.batch,
                          shape.context, host_.compute.workers()));
    return {};
  }

  const run::NodeHost& host_;
  const run::RunPaths paths_;
  const std::string run_id_;
  const LmModules modules_;
  LmMaterial material_;
  std::unique_ptr<pipeline::StageBackend> model_;
  pipeline::Keep keep_ = pipeline::Keep::kAll;  // of a microbatch, as much as fits
  std::uint64_t steps_ = 0;                     // that are done
};

}  // namespace

std::unique_ptr<Training> lm_training(const TrainingPlace& place, const LmModules& modules) {
  return std::make_unique<LmTraining>(place, modules);
}

}  // namespace gossamer::commands
