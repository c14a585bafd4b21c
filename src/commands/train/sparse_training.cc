// SPDX-License-Identifier: Apache-2.0
#include "commands/train/sparse_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/human_bytes.h"
#include "commands/predict/prediction.h"
#include "commands/records/training_data.h"
#include "commands/records/vocabulary_file.h"
#include "commands/records/word_data.h"
#include "commands/run/train_run.h"
#include "commands/train/disk_space.h"
#include "commands/train/evaluation_records.h"
#include "commands/train/run_refusals.h"
#include "commands/train/training_samples.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/fleet/fleet_resume.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/predict/fusion_learning.h"
#include "engines/sparse/train/model_assembly.h"
#include "engines/sparse/train/trainer.h"

namespace gossamer::commands {
namespace {
using sparse_engine::DataFormat;
using sparse_engine::save_model;
using sparse_engine::train_keys;

// Data members stand in the order of their use.
class SparseTraining final : public Training {
 public:
  SparseTraining(const TrainingPlace& place, std::shared_ptr<StepRunner> runner)
      : host_(place.host),
        paths_(place.paths),
        run_id_(place.run_id),
        stop_requested_(place.stop_requested),
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
            .samples = samples_.has_value() ? samples_->schema().size() : shape_.records,
            .title = title()};
  }

  Result<DoneSteps> train(const engine::TrainHooks& hooks, double load_seconds) override {
    samples_.emplace(data_, weighting_, config_, recipe_, host_.compute);
    if (auto done = import_test(); !done.ok()) return done.error();
    const sparse_engine::TrainInputs inputs{.disk = host_.disk,
                                            .compute = host_.compute,
                                            .clock = host_.clock,
                                            .kernels = host_.kernels,
                                            .schema = samples_->schema(),
                                            .labels = samples_->labels(),
                                            .steps = samples_->steps(),
                                            .config = config_,
                                            .recipe = recipe_,
                                            .run_id = run_id_,
                                            .checkpoint_directory = paths_.checkpoints(),
                                            .load_seconds = load_seconds};
    auto outcome = runner_ == nullptr ? train_alone(inputs, hooks) : runner_->train(paths_, inputs, hooks);
    if (!outcome.ok()) return outcome.error();
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
    auto assembled =
        network_ ? assemble(std::move(*network_)) : Result<sparse_engine::Model>(assemble_shape());
    if (!assembled.ok()) return assembled.error();
    model_ = *std::move(assembled);
    host_.say("writing the model");
    std::vector<tensors::TensorSource> network;
    if (parts_) network = std::move(parts_->tensors);
    return save_model(host_.disk, paths_.model(), *model_, {.network = std::move(network)});
  }

  Result<Measurement> measure() override {
    if (parts_) return measured_by_members();
    if (!test_.has_value()) return Measurement();
    auto measured = measure_here();
    if (measured.ok() || !stop_requested_()) return measured;
    return Measurement{.stopped =
                           fmt::format("stopped while measuring; the model is in {}; to measure it: --resume",
                                       paths_.model())};
  }

  void finished() override {
    if (runner_ != nullptr) runner_->saved();
  }

 private:
  // Mistakes in the test set are told before the training, not after it.
  Result<void> find_test() {
    if (config_.data.test.empty()) return {};
    if (config_.data.test == "-") return no_test_from_stdin();
    auto source = find_source(host_.disk, config_.data.test, config_.data.format);
    if (!source.ok()) return source.error();
    test_ = std::move(*source);
    return check_records(host_, *test_, config_.data.skip_bad);
  }

  Result<void> check_kinds() {
    if (!test_.has_value()) return {};
    const FeatureKind wanted = data_.words != nullptr         ? FeatureKind::kWords
                               : of_sessions()                ? FeatureKind::kSessions
                               : data_.featurizer.has_value() ? FeatureKind::kText
                                                              : feature_kind(*data_.records);
    const auto kind = feature_kind(host_, *test_);
    if (!kind.ok()) return kind.error();
    if (*kind == wanted) return {};
    return Error{.kind = ErrorKind::kUsage,
                 .where = "data.test",
                 .what = "training and test records are of different kinds",
                 .got = fmt::format("{} in {}", name(*kind), config_.data.test),
                 .expected = fmt::format("{}, like the training records", name(wanted)),
                 .fix = "give a test set of the same kind"};
  }

  // Opens the cache of an earlier part of this run, or reads the user's files.
  Result<void> load() {
    auto there = open_cache(host_, config_, {.directory = paths_.cache()});
    if (!there.ok()) return there.error();
    if (!there->has_value()) return import();
    data_ = **std::move(there);
    return {};
  }

  Result<void> import() {
    if (config_.data.train.empty()) return missing_data();
    auto source = find_source(host_.disk, config_.data.train, config_.data.format);
    if (!source.ok()) return source.error();
    if ((*source).path == "-" && (*source).format == RecordFormat::kJsonlText) return no_text_from_stdin();
    if ((*source).format == RecordFormat::kText) {
      if (config_.data.format == DataFormat::kText) return import_text(*source);
      config_.data.format = DataFormat::kText;
      if (auto valid = sparse_engine::validate(config_); !valid.ok()) return valid;
      return load();
    }
    std::string cache = paths_.cache() + "/train.cache";
    if ((*source).format == RecordFormat::kCache) {
      cache = (*source).path;
    } else if (auto done = import_into(cache, *source); !done.ok()) {
      return done;
    }
    auto opened = data::CachedDataset::open(host_.disk, cache, host_.compute);
    if (!opened.ok()) return opened.error();
    data_.records = std::move(*opened);
    return {};
  }

  // Imports a plain text, as numbers of words instead of records.
  Result<void> import_text(const Source& source) {
    auto imported = import_words(host_, {.path = source.path,
                                         .words = config_.word2vec,
                                         .skip_bad = config_.data.skip_bad,
                                         .stop = [this] { return stop_requested_(); }});
    if (!imported.ok()) return imported.error();
    const std::string cache = paths_.cache() + "/train.words";
    if (auto done = write_word_cache(host_.disk, cache, *imported); !done.ok()) return done;
    data_.words = std::make_unique<WordTraining>(*std::move(imported), config_, host_.compute);
    return {};
  }

  Result<void> import_into(const std::string& cache, const Source& source) {
    // A resumed run has no other sign of it.
    if (source.format == RecordFormat::kSessions) config_.data.format = DataFormat::kSessions;
    auto imported = import_records(host_, {.sources = {source},
                                           .cache_path = cache,
                                           .text = config_.text,
                                           .sessions = config_.sessions,
                                           .skip_bad = config_.data.skip_bad,
                                           .stop = [this] { return stop_requested_(); }});
    if (!imported.ok()) return imported.error();
    data_.featurizer = std::move((*imported).featurizer);
    if (!data_.featurizer.has_value()) return {};
    return write_vocabulary(host_.disk, paths_.cache() + "/vocabulary.json", *data_.featurizer);
  }
  [[nodiscard]] std::uint64_t nodes() const { return runner_ != nullptr ? runner_->nodes() : 1; }
  [[nodiscard]] bool of_sessions() const { return config_.data.format == DataFormat::kSessions; }
  // How queries that are lines of names are read, and the task they are for.
  [[nodiscard]] std::optional<data::LineShape> line() const {
    if (data_.words != nullptr) return word_line_shape(config_.word2vec);
    if (of_sessions()) return line_shape(config_.sessions);
    return std::nullopt;
  }
  [[nodiscard]] std::string describe_data() const {
    if (data_.words != nullptr) {
      return fmt::format("{} words of text, {} different; {} samples an epoch",
                         run::human_count(data_.words->words()), run::human_count(shape_.labels),
                         run::human_count(shape_.records));
    }
    const auto records = static_cast<double>(shape_.records);
    return fmt::format("{} records, {} features, {} labels ({:.1f} features and {:.1f} labels a record)",
                       run::human_count(shape_.records), run::human_count(shape_.features),
                       run::human_count(shape_.labels), static_cast<double>(shape_.feature_entries) / records,
                       static_cast<double>(shape_.label_entries) / records);
  }

  Result<void> derive() {
    shape_ = sparse_engine::shape_of(data_.schema());
    host_.say(describe_data());
    auto recipe = sparse_engine::derive_recipe(config_, shape_);
    if (!recipe.ok()) return recipe.error();
    recipe_ = std::move(*recipe);
    for (const std::string& reason : recipe_.reasons) host_.say(reason);
    config_.model.hidden = recipe_.hidden;
    config_.model.dropout = recipe_.dropout;
    config_.train.steps = recipe_.steps;
    // Each process has the words of a text in memory.
    const std::uint64_t processes = runner_ != nullptr ? 1 + nodes() : 1;
    const std::uint64_t needed = run_memory(host_, runner_.get(), config_, recipe_, shape_) +
                                 (data_.words != nullptr ? processes * data_.words->bytes() : 0);
    if (needed > host_.compute.memory_limit_bytes())
      return too_little_memory(host_, runner_.get(), config_, shape_, needed);
    sparse_engine::DiskNeeded disk = sparse_engine::disk_needed(config_, recipe_, data_.schema());
    if (runner_ != nullptr) disk.parts = disk.last_checkpoint;
    if (auto fits = check_run_space(
            host_.disk, {.config = config_, .paths = paths_, .steps = recipe_.steps, .needed = disk});
        !fits.ok()) {
      return fits;
    }
    text::FittedWeighting fitted = weigh(data_, config_);
    weighting_ = std::move(fitted.weighting);
    if (!fitted.reason.empty()) host_.say(fmt::format("data.weighting: {}", fitted.reason));
    parameters_ =
        sparse_engine::parameter_count(sparse_engine::network_shape(recipe_, shape_.features, shape_.labels));
    host_.say(fmt::format("{} parameters, {} of memory, {} steps of {} records on {} threads ({})",
                          run::human_count(parameters_), human_bytes(needed), run::human_count(recipe_.steps),
                          config_.train.batch, host_.compute.workers(), kernels::name(host_.kernels.isa)));
    return {};
  }

  static Result<sparse_engine::TrainOutcome> train_alone(const sparse_engine::TrainInputs& inputs,
                                                         const engine::TrainHooks& hooks) {
    if (auto joined = sparse_engine::join_fleet_checkpoint(inputs, hooks.events); !joined.ok())
      return joined.error();
    return sparse_engine::train(inputs, hooks);
  }

  [[nodiscard]] sparse_engine::Model assemble_words(sparse::Network network) const {
    data_.words->restore_frequencies(network);
    return sparse_engine::assemble_model({.network = std::move(network),
                                          .schema = data_.words->schema(),
                                          .label_count = data_.words->word_counts(),
                                          .training_rows = data_.words->words(),
                                          .weighting = weighting_,
                                          .featurizer = {},
                                          .task = "word2vec",
                                          .line = line(),
                                          .config = config_},
                                         host_.kernels, host_.compute);
  }

  // The network is untouched, and takes no memory, where only its shape matters.
  [[nodiscard]] sparse_engine::Model assemble_records(sparse::Network network) const {
    return sparse_engine::assemble_model({.network = std::move(network),
                                          .schema = samples_->kept(),
                                          .records = &samples_->kept(),
                                          .weighting = weighting_,
                                          .featurizer = data_.featurizer,
                                          .task = of_sessions() ? "next-item" : "xmc",
                                          .line = line(),
                                          .config = config_},
                                         host_.kernels, host_.compute);
  }
  [[nodiscard]] sparse_engine::Model assemble_shape() const {
    return assemble_records(sparse::Network(
        sparse_engine::network_shape(recipe_, shape_.features, shape_.labels), sparse::Moments::kNone));
  }
  [[nodiscard]] std::string test_cache() const { return fmt::format("{}/{}", paths_.cache(), kTestCache); }
  // Imports the test records for the nodes, which measure what they have trained.
  Result<void> import_test() {
    const bool by_nodes = runner_ != nullptr && sparse_engine::stays_in_parts(config_);
    if (!by_nodes || !test_.has_value()) return {};
    const auto there = host_.disk.exists(test_cache());
    if (!there.ok()) return there.error();
    if (*there) return {};
    return write_test_cache(host_, assemble_shape(), {.source = *test_, .skip_bad = config_.data.skip_bad},
                            test_cache());
  }

  // Makes the model of all records. The weights of its fusion come from records that training left out.
  Result<sparse_engine::Model> assemble(sparse::Network network) {
    if (data_.words != nullptr) return assemble_words(std::move(network));
    const data::HoldOut& hold_out = samples_->hold_out();
    sparse_engine::Model model = assemble_records(std::move(network));
    if (hold_out.held() == 0) return model;
    const auto fitted =
        sparse_engine::learn_fusion_weights(model, *data_.records, hold_out, host_.kernels, host_.compute);
    if (!fitted.ok()) return fitted.error();
    model.fusion.weights = (*fitted).weights;
    sparse_engine::set_given_weights(config_.predict, model.fusion.weights);
    host_.say(fmt::format("weights of prediction, from {} held-out records: {} (loss {:.3f}, before {:.3f})",
                          run::human_count((*fitted).records), sparse_engine::describe(model.fusion.weights),
                          (*fitted).loss, (*fitted).loss_before));
    sparse_engine::replace_records(model, *data_.records, host_.kernels, host_.compute);
    return model;
  }

  Result<Measurement> measured_by_members() {
    if (parts_->ranks.has_value()) {
      const auto metrics = metrics_of_ranks(host_, *model_, test_cache(), *parts_->ranks);
      if (!metrics.ok()) return metrics.error();
      host_.say(metrics_text(*metrics));
      return Measurement{
          .metrics_json = metrics_json(*metrics), .seconds = parts_->eval_seconds, .while_training = true};
    }
    Measurement none{.seconds = parts_->eval_seconds, .while_training = true};
    if (test_.has_value()) {
      none.stopped = fmt::format(
          "stopped while measuring; the model is in {0}; to measure it: gossamer eval {0} --data {1}",
          paths_.root, config_.data.test);
    }
    return none;
  }

  Result<Measurement> measure_here() {
    const Instant begin = host_.clock.now();
    const Duration cpu = host_.clock.process_cpu();
    auto metrics = evaluate_model(
        host_, *model_,
        {.source = *test_, .skip_bad = config_.data.skip_bad, .stop = [this] { return stop_requested_(); }});
    if (!metrics.ok()) return metrics.error();
    host_.say(metrics_text(*metrics));
    return Measurement{.metrics_json = metrics_json(*metrics),
                       .seconds = (host_.clock.now() - begin).seconds(),
                       .cpu_seconds = (host_.clock.process_cpu() - cpu).seconds()};
  }

  [[nodiscard]] std::string title() const {
    return fmt::format("{} {}, {} labels, {} parameters, seed {}", run::human_count(shape_.records),
                       data_.words != nullptr ? "samples an epoch" : "records",
                       run::human_count(shape_.labels), run::human_count(parameters_), config_.seed);
  }

  const run::NodeHost& host_;
  const run::RunPaths paths_;
  const std::string run_id_;
  const FunctionRef<bool()> stop_requested_;
  const std::shared_ptr<StepRunner> runner_;
  sparse_engine::TrainConfig config_;

  std::optional<Source> test_;
  TrainingData data_;
  text::FeatureWeighting weighting_;
  std::optional<TrainingSamples> samples_;
  sparse_engine::DataShape shape_;
  sparse_engine::Recipe recipe_;
  std::uint64_t parameters_ = 0;
  std::optional<sparse::Network> network_;  // the result: in one memory, or in parts
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
                       .stop_requested = request.stop_requested});
}

}  // namespace gossamer::commands
