// SPDX-License-Identifier: Apache-2.0
#include "commands/train/train_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/human_bytes.h"
#include "commands/predict/prediction.h"
#include "commands/records/record_formats.h"
#include "commands/records/record_import.h"
#include "commands/records/training_data.h"
#include "commands/train/disk_space.h"
#include "commands/train/run_refusals.h"
#include "commands/train/samples.h"
#include "commands/train/step_watch.h"
#include "commands/train/train_summary.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/fleet/fleet_resume.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/train/trainer.h"
#include "host/api/files.h"
#include "run/curve_svg.h"
#include "run/run_log.h"

namespace gossamer::commands {
namespace {
using sparse_engine::save_model;
using sparse_engine::train_keys;

double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

// One run, part by part. Data members are grouped by what changes when.
class TrainingJob {
 public:
  TrainingJob(const run::NodeHost& host, const TrainRequest& request, run::RunDirectory directory)
      : host_(host),
        request_(request),
        directory_(std::move(directory)),
        log_(host.disk, host.clock,
             {.metrics = directory_.paths().metrics(), .events = directory_.paths().events()}),
        config_(directory_.is_new() ? request.config : train_keys().config(directory_.config())) {}

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
    const FeatureKind wanted = samples_->features();
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

  // Opens the cache of an earlier part of this run, or reads the user's files into it.
  Result<void> load() {
    CachePlace place{.directory = directory_.paths().cache()};
    if (auto opened = open(place); !opened.ok() || samples_ != nullptr) return opened;
    if (auto imported = import(place); !imported.ok()) return imported;
    if (auto opened = open(place); !opened.ok()) return opened;
    return samples_ != nullptr ? Result<void>() : missing_data();
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
    if (!source.ok()) return source.error();
    const RecordRow& row = row_of(source->format);
    if (source->path == "-" && row.count != nullptr) return no_text_from_stdin();
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
                               .stop = [this] { return request_.stop_requested(); }});
    return imported.ok() ? Result<void>() : imported.error();
  }

  [[nodiscard]] std::uint64_t nodes() const {
    return request_.runner != nullptr ? request_.runner->nodes() : 1;
  }

  Result<void> derive() {
    shape_ = sparse_engine::shape_of(samples_->schema());
    host_.say(samples_->describe());
    auto recipe = sparse_engine::derive_recipe(config_, shape_);
    if (!recipe.ok()) return recipe.error();
    recipe_ = std::move(*recipe);
    for (const std::string& reason : recipe_.reasons) host_.say(reason);
    config_.model.hidden = recipe_.hidden;
    config_.model.dropout = recipe_.dropout;
    config_.train.steps = recipe_.steps;
    const std::uint64_t processes = request_.runner != nullptr ? 1 + nodes() : 1;
    const std::uint64_t needed =
        run_memory(host_, request_.runner, config_, recipe_, shape_) + processes * samples_->bytes();
    if (needed > host_.compute.memory_limit_bytes())
      return too_little_memory(host_, request_.runner, config_, shape_, needed);
    sparse_engine::DiskNeeded disk = sparse_engine::disk_needed(config_, recipe_, samples_->schema());
    if (request_.runner != nullptr) disk.parts = disk.last_checkpoint;
    if (auto fits = check_run_space(
            host_.disk,
            {.config = config_, .paths = directory_.paths(), .steps = recipe_.steps, .needed = disk});
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
    samples_->begin({.config = config_, .recipe = recipe_, .weighting = weighting_});
    if (test_.has_value() && request_.runner != nullptr && sparse_engine::stays_in_parts(config_)) {
      request_.runner->measure_by([this](StepRunner::MakePredictor make, const std::function<bool()>& stop) {
        return measure(make, stop);
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
                                            .run_id = directory_.run_id(),
                                            .checkpoint_directory = directory_.paths().checkpoints(),
                                            .load_seconds = load_seconds_};
    const sparse_engine::TrainHooks hooks{
        .on_step = on_step, .stop_requested = request_.stop_requested, .events = events};
    auto outcome = request_.runner == nullptr ? train_alone(inputs, hooks)
                                              : request_.runner->train(directory_.paths(), inputs, hooks);
    watch.finish();
    own_ = {.begin = begin, .seconds = (host_.clock.now() - begin).seconds(), .steps = watch.steps_seen()};
    if (watch.error().has_value()) return *watch.error();
    if (outcome.ok() && own_.steps == 0) {
      // All steps were done before. The log gives their curve.
      if (auto done = log_.continue_at((*outcome).steps); !done.ok()) return done.error();
    }
    return outcome;
  }
  // The model of a network that no memory holds.
  [[nodiscard]] sparse_engine::Model shape_of_model() const {
    return samples_->model_of(sparse::Network(
        sparse_engine::network_shape(recipe_, shape_.features, shape_.labels), sparse::Moments::kNone));
  }
  // Measures what nodes hold in parts, on a thread of the runner.
  Result<Measured> measure(StepRunner::MakePredictor make, const std::function<bool()>& stop) const {
    const sparse_engine::Model model = shape_of_model();
    const auto predictor = make(model);
    return measure_model(host_, model, test_request(stop), predictor.get());
  }
  [[nodiscard]] EvaluateRequest test_request(std::function<bool()> stop = {}) const {
    return {.source = *test_, .skip_bad = config_.data.skip_bad, .stop = [this, stop = std::move(stop)] {
              return request_.stop_requested() || (stop && stop());
            }};
  }

  Result<TrainResult> finish(sparse_engine::TrainOutcome outcome) {
    sparse_engine::Model model = samples_->model_of(std::move(*outcome.network));
    if (auto done = samples_->complete(model); !done.ok()) return done.error();
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
    const sparse_engine::Model model = shape_of_model();
    auto summary = save(model, std::move(parts.tensors), outcome);
    if (!summary.ok()) return summary.error();
    if (parts.measured.has_value()) {
      if (!parts.measured->ok()) return parts.measured->error();
      const Measured& measured = **parts.measured;
      if (!measured.before) summary->train_seconds -= measured.seconds;
      tell(measured, *summary);
    } else if (test_.has_value()) {
      const auto done = measure_alone(*summary);
      if (!done.ok()) return done.error();
      if (!*done) return TrainResult{.stopped = true, .summary = {}};
    }
    return end(*std::move(summary));
  }

  // The nodes have not measured what they had trained, so this process does. False: it is to stop, or it has
  // too little memory, and says how the model can be measured.
  Result<bool> measure_alone(TrainSummary& summary) {
    const std::uint64_t needed = run_memory(host_, nullptr, config_, recipe_, shape_);
    const bool fits = needed <= host_.compute.memory_limit_bytes();
    if (fits && !request_.stop_requested()) {
      const auto model = open_model(host_, directory_.paths().root);
      if (!model.ok()) return model.error();
      auto done = evaluate(*model, summary);
      if (done.ok()) return true;
      if (!request_.stop_requested()) return done.error();
    }
    host_.say(fmt::format("{}; the model is in {}; to measure it: gossamer eval {}{} --data {}",
                          fits ? "stopped while measuring" : "not measured, for lack of memory",
                          directory_.paths().root, directory_.paths().root, fits ? "" : " --nodes N",
                          config_.data.test));
    return false;
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
    const auto measured = measure_model(host_, model, test_request());
    if (!measured.ok()) return measured.error();
    tell(*measured, summary);
    return {};
  }
  void tell(const Measured& measured, TrainSummary& summary) const {
    host_.say(measured.text);
    summary.metrics_json = measured.metrics_json;
    summary.eval_seconds = measured.seconds;
    summary.eval_cpu_seconds = measured.cpu_seconds;
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
    summary.epochs = static_cast<double>(outcome.samples) / static_cast<double>(samples_->trained().size());
    const double own_train_seconds = (host_.clock.now() - own_.begin).seconds();
    const double own_cpu_seconds = host_.clock.process_cpu().seconds() + others.cpu_seconds;
    const tensors::RunCost& before = outcome.cost_before;
    summary.load_seconds = before.load_seconds + load_seconds_;
    summary.train_seconds = before.train_seconds + own_train_seconds;
    summary.cpu_seconds = before.cpu_seconds + own_cpu_seconds;
    summary.samples_per_second =
        rate(static_cast<double>(outcome.samples), before.train_seconds + own_.seconds);
    if (outcome.resumed_at.has_value()) {
      const double own_samples = static_cast<double>(own_.steps) * config_.train.batch;
      summary.since_resume = {.step = (*outcome.resumed_at).value,
                              .train_seconds = own_train_seconds,
                              .load_seconds = load_seconds_,
                              .cpu_seconds = own_cpu_seconds,
                              .samples_per_second = rate(own_samples, own_.seconds)};
    }
    summary.final_loss = outcome.final_loss;
    summary.model_dir = directory_.paths().model();
    return summary;
  }

  [[nodiscard]] std::string title() const {
    return fmt::format("{} {}, {} labels, {} parameters, seed {}", run::human_count(shape_.records),
                       samples_->counted(), run::human_count(shape_.labels), run::human_count(parameters_),
                       config_.seed);
  }

  // Never changes.
  const run::NodeHost& host_;
  const TrainRequest& request_;
  const Instant start_ = host_.clock.now();

  // Grow from the first line to the last.
  run::RunDirectory directory_;
  run::RunLog log_;

  // prepare() fills these. They stay as they are from the first step on. The config is the user's at first;
  // it ends as what a resumed run starts from.
  sparse_engine::TrainConfig config_;
  std::optional<Source> test_;  // nothing: there are no test records
  std::unique_ptr<Samples> samples_;
  sparse_engine::DataShape shape_;
  sparse_engine::Recipe recipe_;
  text::FeatureWeighting weighting_;
  std::uint64_t parameters_ = 0;
  double load_seconds_ = 0;

  // train() sets this: the steps that this process has seen, without those of earlier ones.
  struct OwnSteps {
    Instant begin;
    double seconds = 0;  // until the last step
    std::uint64_t steps = 0;
  } own_;
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
