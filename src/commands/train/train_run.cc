// SPDX-License-Identifier: Apache-2.0
#include "commands/train/train_run.h"

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
#include "commands/train/disk_space.h"
#include "commands/train/evaluation_records.h"
#include "commands/train/run_refusals.h"
#include "commands/train/step_watch.h"
#include "commands/train/train_summary.h"
#include "commands/train/training_samples.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/fleet/fleet_resume.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/predict/fusion_learning.h"
#include "engines/sparse/train/model_assembly.h"
#include "engines/sparse/train/trainer.h"
#include "host/api/files.h"
#include "run/curve_svg.h"
#include "run/run_log.h"

namespace gossamer::commands {
namespace {
using sparse_engine::DataFormat;
using sparse_engine::save_model;
using sparse_engine::train_keys;

double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

// One run, part by part. Data members stand in the order of their use.
class TrainingJob {
 public:
  TrainingJob(const run::NodeHost& host, const TrainRequest& request, run::RunDirectory directory)
      : host_(host),
        request_(request),
        directory_(std::move(directory)),
        config_(directory_.is_new() ? request.config : train_keys().config(directory_.config())),
        log_(host.disk, host.clock,
             {.metrics = directory_.paths().metrics(), .events = directory_.paths().events()}) {}

  Result<TrainResult> run() {
    if (auto done = prepare(); !done.ok()) {
      directory_.abandon();
      if (!request_.stop_requested()) return done.error();
      host_.say("stopped before the first step; nothing is left behind");
      return TrainResult{.stopped = true, .summary = {}};
    }
    auto outcome = train();
    if (!outcome.ok()) return outcome.error();
    if (!(*outcome).network.has_value()) {
      auto parts = take_parts();
      if (!parts.ok()) return parts.error();
      if (parts->has_value()) return finish_parts(*outcome, **std::move(parts));
      host_.say(fmt::format("stopped after step {}; continue with: --resume", (*outcome).steps));
      return TrainResult{.stopped = true, .summary = {}};
    }
    return finish(std::move(*outcome));
  }

 private:
  Result<void> prepare() {
    if (auto done = find_test(); !done.ok()) return done;
    if (auto done = load(); !done.ok()) return done;
    if (auto done = check_kinds(); !done.ok()) return done;
    if (auto done = derive(); !done.ok()) return done;
    if (auto done = host_.disk.make_directories(directory_.paths().checkpoints()); !done.ok()) return done;
    // From here on run.toml is the resolved config, which a resumed run starts from.
    return directory_.write_config(train_keys().values(config_));
  }

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
    auto there = open_cache(host_, config_, {.directory = directory_.paths().cache()});
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
    std::string cache = directory_.paths().cache() + "/train.cache";
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
                                         .stop = [this] { return request_.stop_requested(); }});
    if (!imported.ok()) return imported.error();
    const std::string cache = directory_.paths().cache() + "/train.words";
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
                                           .stop = [this] { return request_.stop_requested(); }});
    if (!imported.ok()) return imported.error();
    data_.featurizer = std::move((*imported).featurizer);
    if (!data_.featurizer.has_value()) return {};
    return write_vocabulary(host_.disk, directory_.paths().cache() + "/vocabulary.json", *data_.featurizer);
  }
  [[nodiscard]] std::uint64_t nodes() const {
    return request_.runner != nullptr ? request_.runner->nodes() : 1;
  }
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
    const std::uint64_t processes = request_.runner != nullptr ? 1 + nodes() : 1;
    const std::uint64_t needed = run_memory(host_, request_.runner, config_, recipe_, shape_) +
                                 (data_.words != nullptr ? processes * data_.words->bytes() : 0);
    if (needed > host_.compute.memory_limit_bytes())
      return too_little_memory(host_, request_.runner, config_, shape_, needed);
    sparse_engine::DiskNeeded disk = sparse_engine::disk_needed(config_, recipe_, data_.schema());
    if (request_.runner != nullptr) disk.parts = disk.last_checkpoint;
    if (auto fits = check_run_space(
            host_.disk,
            {.config = config_, .paths = directory_.paths(), .steps = recipe_.steps, .needed = disk});
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
    load_seconds_ = (host_.clock.now() - start_).seconds();
    return {};
  }

  static Result<sparse_engine::TrainOutcome> train_alone(const sparse_engine::TrainInputs& inputs,
                                                         const sparse_engine::TrainHooks& hooks) {
    if (auto joined = sparse_engine::join_fleet_checkpoint(inputs, hooks.events); !joined.ok())
      return joined.error();
    return sparse_engine::train(inputs, hooks);
  }

  Result<sparse_engine::TrainOutcome> train() {
    const auto events = [this](std::string_view name, EventFields fields) { log_.event(name, fields); };
    events("run_started", {{"run_id", directory_.run_id()},
                           {"threads", static_cast<std::uint64_t>(host_.compute.workers())},
                           {"isa", std::string(kernels::name(host_.kernels.isa))}});
    StepWatch watch(host_, log_, config_.train.batch);
    const auto on_step = [&watch](const sparse_engine::TrainProgress& progress) { watch.on_step(progress); };
    const Instant begin = host_.clock.now();
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
                                            .run_id = directory_.run_id(),
                                            .checkpoint_directory = directory_.paths().checkpoints(),
                                            .load_seconds = load_seconds_};
    const sparse_engine::TrainHooks hooks{
        .on_step = on_step, .stop_requested = request_.stop_requested, .events = events};
    auto outcome = request_.runner == nullptr ? train_alone(inputs, hooks)
                                              : request_.runner->train(directory_.paths(), inputs, hooks);
    watch.finish();
    steps_seconds_ = (host_.clock.now() - begin).seconds();
    train_begin_ = begin;
    own_steps_ = watch.steps_seen();
    if (watch.error().has_value()) return *watch.error();
    if (outcome.ok() && own_steps_ == 0) {
      // All steps were done before. The log gives their curve.
      if (auto done = log_.continue_at((*outcome).steps); !done.ok()) return done.error();
    }
    return outcome;
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
  [[nodiscard]] std::string test_cache() const {
    return fmt::format("{}/{}", directory_.paths().cache(), kTestCache);
  }
  // Imports the test records for the nodes, which measure what they have trained.
  Result<void> import_test() {
    const bool by_nodes = request_.runner != nullptr && sparse_engine::stays_in_parts(config_);
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

  Result<TrainResult> finish(sparse_engine::TrainOutcome outcome) {
    auto assembled = assemble(std::move(*outcome.network));
    if (!assembled.ok()) return assembled.error();
    const sparse_engine::Model& model = *assembled;
    auto summary = save(model, {}, outcome);
    if (!summary.ok()) return summary.error();
    if (test_.has_value()) {
      if (auto done = evaluate(model, *summary); !done.ok()) {
        if (!request_.stop_requested()) return done.error();
        host_.say(fmt::format("stopped while measuring; the model is in {}; to measure it: --resume",
                              directory_.paths().model()));
        return TrainResult{.stopped = true, .summary = {}};
      }
    }
    return end(*std::move(summary));
  }

  Result<std::optional<NetworkInParts>> take_parts() {
    if (request_.runner == nullptr) return std::optional<NetworkInParts>();
    return request_.runner->take_parts();
  }

  Result<TrainResult> finish_parts(const sparse_engine::TrainOutcome& outcome, NetworkInParts parts) {
    const sparse_engine::Model model = assemble_shape();
    auto summary = save(model, std::move(parts.tensors), outcome);
    if (!summary.ok()) return summary.error();
    summary->eval_seconds = parts.eval_seconds;
    summary->train_seconds -= parts.eval_seconds;
    if (parts.ranks.has_value()) {
      const auto metrics = metrics_of_ranks(host_, model, test_cache(), *parts.ranks);
      if (!metrics.ok()) return metrics.error();
      host_.say(metrics_text(*metrics));
      summary->metrics_json = metrics_json(*metrics);
    } else if (test_.has_value()) {
      host_.say(
          fmt::format("stopped while measuring; the model is in {0}; to measure it: gossamer eval {0} "
                      "--data {1}",
                      directory_.paths().root, config_.data.test));
      return TrainResult{.stopped = true, .summary = {}};
    }
    return end(*std::move(summary));
  }

  // Saves the model. `network` has its tensors, where the model does not have them.
  Result<TrainSummary> save(const sparse_engine::Model& model, std::vector<tensors::TensorSource> network,
                            const sparse_engine::TrainOutcome& outcome) {
    const run::RunPaths& paths = directory_.paths();
    host_.say("writing the model");
    if (auto done = save_model(host_.disk, paths.model(), model, {.network = std::move(network)}); !done.ok())
      return done.error();
    TrainSummary summary = summarize(outcome);
    const std::string curve = run::curve_svg(log_.curve(), title());
    if (auto done = host::replace_file(host_.disk, paths.curve(), curve); !done.ok()) return done.error();
    return summary;
  }

  Result<TrainResult> end(TrainSummary summary) {
    summary.peak_rss_bytes = std::max(summary.peak_rss_bytes, host_.compute.peak_rss_bytes());
    TrainResult result{.stopped = false, .summary = to_json(summary)};
    log_.event("run_finished", {{"steps", summary.steps}});
    if (log_.first_error().has_value()) {
      host_.say(fmt::format("warning: the logs are incomplete: {}", log_.first_error()->message()));
    }
    const std::string path = directory_.paths().summary();
    if (auto done = host::replace_file(host_.disk, path, result.summary + "\n"); !done.ok())
      return done.error();
    if (request_.runner != nullptr) request_.runner->saved();
    return result;
  }

  Result<void> evaluate(const sparse_engine::Model& model, TrainSummary& summary) {
    const Instant begin = host_.clock.now();
    const Duration cpu = host_.clock.process_cpu();
    auto metrics =
        evaluate_model(host_, model, {.source = *test_, .skip_bad = config_.data.skip_bad, .stop = [this] {
                                        return request_.stop_requested();
                                      }});
    if (!metrics.ok()) return metrics.error();
    host_.say(metrics_text(*metrics));
    summary.metrics_json = metrics_json(*metrics);
    summary.eval_seconds = (host_.clock.now() - begin).seconds();
    summary.eval_cpu_seconds = (host_.clock.process_cpu() - cpu).seconds();
    return {};
  }

  [[nodiscard]] TrainSummary summarize(const sparse_engine::TrainOutcome& outcome) const {
    TrainSummary summary;
    const StepRunner::Cost others = request_.runner != nullptr ? request_.runner->cost() : StepRunner::Cost();
    summary.run_id = directory_.run_id();
    summary.nodes = nodes();
    summary.peak_rss_bytes = others.peak_rss_bytes;
    summary.bytes_sent_per_node_per_step = others.step_bytes;
    summary.background_bytes_per_node_per_step = others.background_bytes;
    summary.recoveries = others.recoveries;
    summary.parameters = parameters_;
    summary.steps = outcome.steps;
    summary.samples = outcome.samples;
    summary.epochs = static_cast<double>(outcome.samples) / static_cast<double>(samples_->schema().size());
    const double own_train_seconds = (host_.clock.now() - train_begin_).seconds();
    const double own_cpu_seconds = host_.clock.process_cpu().seconds() + others.cpu_seconds;
    const tensors::RunCost& before = outcome.cost_before;
    summary.load_seconds = before.load_seconds + load_seconds_;
    summary.train_seconds = before.train_seconds + own_train_seconds;
    summary.cpu_seconds = before.cpu_seconds + own_cpu_seconds;
    summary.samples_per_second =
        rate(static_cast<double>(outcome.samples), before.train_seconds + steps_seconds_);
    if (outcome.resumed_at.has_value()) {
      const double own_samples = static_cast<double>(own_steps_) * config_.train.batch;
      summary.since_resume = {.step = (*outcome.resumed_at).value,
                              .train_seconds = own_train_seconds,
                              .load_seconds = load_seconds_,
                              .cpu_seconds = own_cpu_seconds,
                              .samples_per_second = rate(own_samples, steps_seconds_)};
    }
    summary.final_loss = outcome.final_loss;
    summary.model_dir = directory_.paths().model();
    return summary;
  }

  [[nodiscard]] std::string title() const {
    return fmt::format("{} {}, {} labels, {} parameters, seed {}", run::human_count(shape_.records),
                       data_.words != nullptr ? "samples an epoch" : "records",
                       run::human_count(shape_.labels), run::human_count(parameters_), config_.seed);
  }

  const run::NodeHost& host_;
  const TrainRequest& request_;
  run::RunDirectory directory_;
  sparse_engine::TrainConfig config_;
  run::RunLog log_;
  Instant start_ = host_.clock.now();

  std::optional<Source> test_;
  TrainingData data_;
  text::FeatureWeighting weighting_;
  std::optional<TrainingSamples> samples_;
  sparse_engine::DataShape shape_;
  sparse_engine::Recipe recipe_;
  std::uint64_t parameters_ = 0;
  double load_seconds_ = 0;
  double steps_seconds_ = 0;
  std::uint64_t own_steps_ = 0;
  Instant train_begin_;
};

}  // namespace

Result<TrainResult> run_training(const run::NodeHost& host, const TrainRequest& request) {
  // 40 bits of the time in microseconds tell runs apart. The id is a name and protects nothing.
  const auto microseconds = static_cast<std::uint64_t>(host.clock.wall_seconds() * 1e6);
  const std::string run_id = fmt::format("{:010x}", microseconds & 0xFFFFFFFFFF);
  auto directory = run::RunDirectory::open(host.disk, {.directory = request.directory,
                                                       .resume = request.resume,
                                                       .config = train_keys().values(request.config),
                                                       .settings = request.settings,
                                                       .run_id = run_id});
  if (!directory.ok()) return directory.error();
  if ((*directory).finished_summary().has_value()) {
    host.say("the run is finished already");
    std::string summary = *(*directory).finished_summary();
    while (!summary.empty() && summary.back() == '\n') summary.pop_back();
    return TrainResult{.stopped = false, .summary = std::move(summary)};
  }
  TrainingJob job(host, request, std::move(*directory));
  return job.run();
}

}  // namespace gossamer::commands
