// SPDX-License-Identifier: Apache-2.0
#include "commands/train/sparse_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/human_bytes.h"
#include "base/shell_word.h"
#include "commands/predict/prediction.h"
#include "commands/records/evaluation_set.h"
#include "commands/records/record_formats.h"
#include "commands/records/record_import.h"
#include "commands/records/training_data.h"
#include "commands/run/data_sum.h"
#include "commands/run/train_run.h"
#include "commands/train/disk_space.h"
#include "commands/train/measured.h"
#include "commands/train/run_refusals.h"
#include "commands/train/samples.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/fleet/fleet_resume.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/train/divergence.h"
#include "engines/sparse/train/trainer.h"

namespace gossamer::commands {
namespace {
using sparse_engine::save_model;
using sparse_engine::train_keys;

// Data members are grouped by what changes when.
class SparseTraining final : public Training {
 public:
  SparseTraining(const TrainingPlace& place, std::shared_ptr<StepRunner> runner)
      : host_(place.host),
        paths_(place.paths),
        run_id_(place.run_id),
        stop_requested_(place.stop_requested),
        resume_command_(place.resume_command),
        begins_(place.begins),
        runner_(std::move(runner)),
        config_(train_keys().config(place.config)) {}

  Result<void> prepare() override {
    if (auto done = find_test(); !done.ok()) return done;
    if (auto done = load(); !done.ok()) return done;
    if (auto done = check_kinds(); !done.ok()) return done;
    return derive();
  }
  [[nodiscard]] settings::Values config() const override { return train_keys().values(config_); }
  [[nodiscard]] TrainingFacts facts() const override {
    return {.parameters = parameters_,
            .batch = config_.train.batch,
            .samples = begun_ ? samples_->trained().size() : shape_.records,
            .title = title()};
  }

  Result<DoneSteps> train(const engine::TrainHooks& hooks, double load_seconds) override {
    samples_->begin({.config = config_, .recipe = recipe_, .weighting = weighting_});
    begun_ = true;
    if (runner_ != nullptr && sparse_engine::answers_at_the_end(config_, recipe_.held_out)) {
      runner_->measure_by([this](StepRunner::MakePredictor make, const std::function<bool()>& stop) {
        return measure_in_parts(make, stop);
      });
    }
    const sparse_engine::TrainInputs inputs{.disk = host_.disk,
                                            .compute = host_.compute,
                                            .clock = host_.clock,
                                            .kernels = host_.kernels,
                                            .schema = samples_->trained(),
                                            .labels = samples_->labels(),
                                            .steps = samples_->steps(),
                                            .config = config_,
                                            .recipe = recipe_,
                                            .run_id = run_id_,
                                            .checkpoint_directory = paths_.checkpoints(),
                                            .load_seconds = load_seconds};
    auto outcome = runner_ == nullptr ? train_alone(inputs, hooks) : runner_->train(paths_, inputs, hooks);
    if (!outcome.ok()) return with_its_fix(outcome.error());
    network_ = std::move(outcome->network);
    if (!network_ && runner_ != nullptr) {
      auto parts = runner_->take_parts();
      if (!parts.ok()) return parts.error();
      parts_ = *std::move(parts);
    }
    return DoneSteps{.steps = outcome->steps,
                     .all = network_.has_value() || parts_.has_value(),
                     .final_loss = outcome->final_loss,
                     .resumed_at = outcome->resumed_at,
                     .cost_before = outcome->cost_before};
  }
  [[nodiscard]] StepsCost cost() const override {
    if (runner_ == nullptr) return {};
    StepsCost cost = runner_->cost();
    cost.nodes = runner_->nodes();
    return cost;
  }

  Result<void> save() override {
    if (!model_) {
      if (auto made = make_model(); !made.ok()) return made;
      host_.say("writing the model");
    }
    std::vector<tensors::TensorSource> network;
    if (parts_) network = parts_->tensors;
    return save_model(host_.disk, paths_.model(), *model_, {.network = std::move(network)});
  }

  // The same steps on the same data diverge again.
  [[nodiscard]] bool ends_for_good(const Error& error) const override {
    return sparse_engine::tells_of_divergence(error);
  }

  Result<void> check_saved() const override {
    return sparse_engine::check_model_files(host_.disk, paths_.model());
  }

  Result<Measurement> measure() override {
    if (parts_) return measured_by_members();
    if (!test_.has_value()) return Measurement();
    auto measured = measure_here(*model_);
    if (measured.ok() || !stop_requested_()) return measured;
    return Measurement{.stopped =
                           fmt::format("stopped while measuring; the model is in {}; to measure it: {}",
                                       paths_.model(), resume_command_)};
  }

  void finished() override {
    if (runner_ != nullptr) runner_->saved();
  }

 private:
  // The error of a node that has ended says that the run goes on with --resume. A diverged one does not.
  static Error with_its_fix(Error error) {
    if (sparse_engine::tells_of_divergence(error)) error.fix = sparse_engine::network_diverged({}).fix;
    return error;
  }
  // A run that goes on may have been begun from another working directory.
  [[nodiscard]] Error not_there(std::string_view key, Error error) const {
    if (!begins_ && error.kind == ErrorKind::kFailed)
      error.fix = fmt::format("put it back, or say where it lies: {} {}=PATH", resume_command_, key);
    return error;
  }

  // Mistakes in the test set are told before the training, not after it.
  Result<void> find_test() {
    if (config_.data.test.empty()) return {};
    if (is_read_once(host_.disk, config_.data.test)) return no_test_from_stdin(config_.data.test);
    auto source = find_source(host_.disk, config_.data.test, config_.data.format);
    if (!source.ok()) return not_there("data.test", source.error());
    test_ = std::move(*source);
    return check_records(host_, *test_, config_.data.skip_bad);
  }

  Result<void> check_kinds() {
    if (!test_.has_value()) return {};
    const FeatureKind wanted = samples_->features();
    const auto kind = feature_kind(host_, *test_);
    if (!kind.ok()) return kind.error();
    if (*kind == wanted) return check_label_naming(host_, *test_, samples_->schema().has_label_names());
    return Error{.kind = ErrorKind::kUsage,
                 .where = "data.test",
                 .what = "training and test records are of different kinds",
                 .got = fmt::format("{} in {}", name(*kind), config_.data.test),
                 .expected = fmt::format("{}, like the training records", name(wanted)),
                 .fix = "give a test set of the same kind"};
  }

  // Opens the cache of an earlier part of this run, or reads the user's files into it.
  Result<void> load() {
    CachePlace place{.directory = paths_.cache()};
    auto kept = open(place);
    if (kept.ok() && samples_ != nullptr) {
      const auto data = check_run_data(
          host_.disk, paths_, {.checksum = samples_->checksum(), .former = samples_->former_checksum()});
      if (!data.ok()) return data.error();
      if (*data == RunData::kSame) return {};
      samples_.reset();
      kept = other_data(paths_.cache());
    }
    if (!kept.ok() && kept.error().kind == ErrorKind::kBadData) kept = remove_cache(kept.error());
    if (!kept.ok()) return kept;
    if (auto imported = import(place); !imported.ok()) return imported;
    if (auto opened = open(place); !opened.ok()) return opened;
    if (samples_ == nullptr) return missing_data();
    const auto data = check_run_data(
        host_.disk, paths_, {.checksum = samples_->checksum(), .former = samples_->former_checksum()});
    if (!data.ok()) return data.error();
    return *data == RunData::kSame ? Result<void>() : other_data(config_.data.train);
  }

  [[nodiscard]] Error other_data(const std::string& where) const {
    return {
        .kind = ErrorKind::kBadData,
        .where = where,
        .what = "these are not the training records that the run began with",
        .got = "records, an order or names with another checksum",
        .expected = "the checksum in " + paths_.data_sum(),
        .fix = "put the records of the run's beginning back, and resume; other records are for a new run"};
  }

  // What the run keeps of its data is made anew, where the user's files still are and can be told from
  // others.
  Result<void> remove_cache(Error damaged) {
    const std::string& from = config_.data.train;
    const auto known = has_data_sum(host_.disk, paths_);
    if (!known.ok()) return known.error();
    const std::string again = fmt::format("rm -rf {}; {}", shell_word(paths_.cache()), resume_command_);
    if (is_read_once(host_.disk, from)) {
      damaged.fix = fmt::format("give the same training records once more at {}: {}", from, again);
      return damaged;
    }
    const auto source = find_source(host_.disk, from, config_.data.format);
    if (!source.ok()) {
      damaged.fix = fmt::format("put the training records back at {}, and resume: they are read again", from);
      return damaged;
    }
    if (!*known) {
      damaged.fix = fmt::format("if {} is as it was when the run began, have it read again: {}", from, again);
      return damaged;
    }
    host_.warn(fmt::format("what the run kept of its data is damaged, and {} is read again: {}: {}", from,
                           damaged.where, damaged.what));
    return host_.disk.remove_all(paths_.cache());
  }

  Result<void> open(const CachePlace& place) {
    auto opened = open_samples(host_, config_, place);
    if (!opened.ok()) return opened.error();
    samples_ = *std::move(opened);
    return {};
  }

  Result<void> import(CachePlace& place) {
    if (config_.data.train.empty()) return missing_data();
    const auto source = find_source(host_.disk, config_.data.train, config_.data.format);
    if (!source.ok()) return not_there("data.train", source.error());
    const RecordRow& row = row_of(source->format);
    if (row.count != nullptr && is_read_once(host_.disk, source->path))
      return no_text_from_stdin(source->path);
    if (row.format == data::RecordFormat::kCache) {
      place.records = source->path;
      return {};
    }
    // A resumed run has no other sign of what the content does not tell.
    if (row.lines != nullptr) config_.data.format = row.format;
    if (auto valid = sparse_engine::validate(config_); !valid.ok()) return valid;
    const auto imported =
        import_records(host_, {.sources = {*source},
                               .cache_path = fmt::format("{}/{}", place.directory, row.cached),
                               .text = config_.text,
                               .sessions = config_.sessions,
                               .words = config_.word2vec,
                               .skip_bad = config_.data.skip_bad,
                               .stop = [this] { return stop_requested_(); }});
    if (!imported.ok()) return imported.error();
    if (const std::string some = describe_unlabelled(*source, *imported); !some.empty()) host_.warn(some);
    return lacks_labels(*source, *imported) ? Result<void>(no_labels(*source, &*imported)) : Result<void>();
  }

  [[nodiscard]] std::uint64_t nodes() const { return runner_ != nullptr ? runner_->nodes() : 1; }

  Result<void> derive() {
    shape_ = sparse_engine::shape_of(samples_->schema());
    host_.say(samples_->describe());
    settle_before_recipe();
    auto recipe = sparse_engine::derive_recipe(config_, shape_);
    if (!recipe.ok()) return recipe.error();
    recipe_ = std::move(*recipe);
    if (!config_.predict.instances) config_.predict.held_out = recipe_.held_out;
    for (const std::string& reason : recipe_.reasons) host_.say(reason);
    config_.model.hidden = recipe_.hidden;
    config_.model.dropout = recipe_.dropout;
    config_.train.steps = recipe_.steps;
    settle_precision();
    const std::uint64_t processes = runner_ != nullptr ? 1 + nodes() : 1;
    const std::uint64_t needed =
        run_memory(host_, runner_.get(), config_, recipe_, shape_) + processes * samples_->bytes();
    if (needed > host_.compute.memory_limit_bytes())
      return too_little_memory(host_, runner_.get(), config_, shape_, needed);
    sparse_engine::DiskNeeded disk = sparse_engine::disk_needed(config_, recipe_, samples_->schema());
    if (runner_ != nullptr) disk.parts = disk.last_checkpoint;
    if (auto fits = check_run_space(
            host_.disk,
            {.config = config_, .paths = paths_, .steps = recipe_.steps, .needed = disk, .begins = begins_});
        !fits.ok()) {
      return fits;
    }
    text::FittedWeighting fitted = samples_->weigh(config_);
    weighting_ = std::move(fitted.weighting);
    if (!fitted.reason.empty()) host_.say(fmt::format("data.weighting: {}", fitted.reason));
    parameters_ =
        sparse_engine::parameter_count(sparse_engine::network_shape(recipe_, shape_.features, shape_.labels));
    host_.say(fmt::format("{} parameters, {} of memory, {} steps of {} records on {} threads ({})",
                          run::human_count(parameters_), human_bytes(needed), run::human_count(recipe_.steps),
                          config_.train.batch, host_.compute.workers(), kernels::name(host_.kernels.isa)));
    return {};
  }

  // The members of a fleet may have CPUs of two kinds, and each would choose for itself. A run of an earlier
  // version has not settled it, and its checkpoints say so: it goes on as it began.
  void settle_precision() {
    if (runner_ == nullptr || !begins_ || config_.train.precision) return;
    config_.train.precision = kernels::preferred_element(host_.kernels.isa);
    host_.say(fmt::format("train.precision: {} at every member, what this machine multiplies faster",
                          kernels::name(*config_.train.precision)));
  }

  // A run of an earlier version without training records held out none, and does not say so.
  void settle_before_recipe() {
    if (!begins_ && !config_.predict.instances && !config_.predict.held_out) config_.predict.held_out = 0;
  }

  static Result<sparse_engine::TrainOutcome> train_alone(const sparse_engine::TrainInputs& inputs,
                                                         const engine::TrainHooks& hooks) {
    if (auto joined = sparse_engine::join_fleet_checkpoint(inputs, hooks.events); !joined.ok())
      return joined.error();
    return sparse_engine::train(inputs, hooks);
  }

  // The model of a network that no memory holds.
  [[nodiscard]] sparse_engine::Model shape_of_model() const {
    return samples_->model_of(sparse::Network(
        sparse_engine::network_shape(recipe_, shape_.features, shape_.labels), sparse::Moments::kNone));
  }
  [[nodiscard]] EvaluateRequest test_request(std::function<bool()> stop = {}) const {
    return {.source = *test_, .skip_bad = config_.data.skip_bad, .stop = [this, stop = std::move(stop)] {
              return stop_requested_() || (stop && stop());
            }};
  }
  // Measures what nodes hold in parts, on a thread of the runner.
  Result<Measured> measure_in_parts(StepRunner::MakePredictor make, const std::function<bool()>& stop) const {
    sparse_engine::Model model = shape_of_model();
    const auto predictor = make(model);
    if (auto done = samples_->calibrate(model, *predictor); !done.ok()) return done.error();
    Measured measured;
    if (test_.has_value()) {
      auto figures = measure_trained(host_, model, test_request(stop), predictor.get());
      if (!figures.ok()) return figures.error();
      measured = *std::move(figures);
    }
    measured.calibration = model.fusion.net_calibration;
    return measured;
  }

  Result<void> make_model() {
    if (network_) {
      model_ = samples_->model_of(std::move(*network_));
      return samples_->complete(*model_);
    }
    model_ = shape_of_model();
    take_calibration();
    return {};
  }

  // The members that held the network have ended, or could not answer: then the model gives no probabilities.
  void take_calibration() {
    if (recipe_.held_out == 0 || !parts_) return;
    if (parts_->measured && parts_->measured->ok())
      model_->fusion.net_calibration = (*parts_->measured)->calibration;
    if (!model_->fusion.net_calibration)
      host_.warn(
          "answers of this model have no probabilities: no member has answered for the held-out records");
  }

  Result<Measurement> measured_by_members() {
    if (!parts_->measured) return test_.has_value() ? measure_alone() : Result<Measurement>(Measurement());
    if (!parts_->measured->ok()) return parts_->measured->error();
    if (!test_.has_value()) return Measurement();
    return told(**parts_->measured, !(*parts_->measured)->before);
  }

  // The nodes have not measured what they had trained, so this process does. If it is to stop, or has too
  // little memory, it says how the model can be measured.
  Result<Measurement> measure_alone() {
    const std::uint64_t needed = run_memory(host_, nullptr, config_, recipe_, shape_);
    const bool fits = needed <= host_.compute.memory_limit_bytes();
    if (fits && !stop_requested_()) {
      const auto model = open_model(host_, paths_.root);
      if (!model.ok()) return model.error();
      auto measured = measure_here(*model);
      if (measured.ok() || !stop_requested_()) return measured;
    }
    return Measurement{
        .stopped = fmt::format("{}; the model is in {}; to measure it: gossamer eval {}{} --data {}",
                               fits ? "stopped while measuring" : "not measured, for lack of memory",
                               paths_.root, paths_.root, fits ? "" : " --nodes N", config_.data.test)};
  }

  Result<Measurement> measure_here(const sparse_engine::Model& model) {
    const auto measured = measure_trained(host_, model, test_request());
    if (!measured.ok()) return measured.error();
    return told(*measured, false);
  }

  [[nodiscard]] Measurement told(const Measured& measured, bool while_training) const {
    host_.say(measured.text);
    return {.metrics_json = measured.metrics_json,
            .seconds = measured.seconds,
            .cpu_seconds = measured.cpu_seconds,
            .while_training = while_training,
            .text = measured.text};
  }

  [[nodiscard]] std::string title() const {
    return fmt::format("{} {}, {} labels, {} parameters, seed {}", run::human_count(shape_.records),
                       samples_->counted(), run::human_count(shape_.labels), run::human_count(parameters_),
                       config_.seed);
  }

  // Never changes.
  const run::NodeHost& host_;
  const run::RunPaths paths_;
  const std::string run_id_;
  const FunctionRef<bool()> stop_requested_;
  const std::string resume_command_;
  const bool begins_;
  const std::shared_ptr<StepRunner> runner_;  // null: this process does the steps

  // prepare() fills these. They stay as they are from the first step on. The config is the user's at first;
  // it ends as what a resumed run starts from.
  sparse_engine::TrainConfig config_;
  std::optional<Source> test_;  // nothing: there are no test records
  std::unique_ptr<Samples> samples_;
  sparse_engine::DataShape shape_;
  sparse_engine::Recipe recipe_;
  text::FeatureWeighting weighting_;
  std::uint64_t parameters_ = 0;

  // train() and save() fill these. The result is in one memory, or in parts.
  bool begun_ = false;  // the samples are those of the recipe
  std::optional<sparse::Network> network_;
  std::optional<NetworkInParts> parts_;
  std::optional<sparse_engine::Model> model_;
};

}  // namespace

std::unique_ptr<Training> sparse_training(const TrainingPlace& place, std::shared_ptr<StepRunner> runner) {
  return std::make_unique<SparseTraining>(place, std::move(runner));
}

Result<TrainResult> run_training(const run::NodeHost& host, const TrainRequest& request) {
  const std::shared_ptr<StepRunner> borrowed(std::shared_ptr<StepRunner>(), request.runner);
  return run_training(host, "sparse",
                      [&](const TrainingPlace& place) { return sparse_training(place, borrowed); },
                      {.directory = request.directory,
                       .resume = request.resume,
                       .config = train_keys().values(request.config),
                       .settings = request.settings,
                       .stop_requested = request.stop_requested,
                       .model_patience = request.model_patience});
}

}  // namespace gossamer::commands
