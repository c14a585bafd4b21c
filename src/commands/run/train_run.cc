// SPDX-License-Identifier: Apache-2.0
#include "commands/run/train_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/shell_word.h"
#include "commands/run/checkpoint_warnings.h"
#include "commands/run/kept_network.h"
#include "commands/run/step_watch.h"
#include "commands/run/train_summary.h"
#include "host/api/files.h"
#include "kernels/isa.h"
#include "node/event_loop.h"
#include "run/curve_svg.h"
#include "run/lead_file.h"
#include "run/run_log.h"
#include "tensors/checkpoint.h"

namespace gossamer::commands {
namespace {

// How often a model that cannot be written is tried again.
constexpr Duration kModelEvery{1'000'000'000};

double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

// Whether the steps are done by this process, or by members that it starts.
bool keeps_threads(const RunRequest& request) { return !request.lead || request.lead->own; }

// Whether no process has resolved the run's config yet. The directory of checkpoints is made right after
// that.
bool is_unresolved(const run::NodeHost& host, const run::RunDirectory& directory) {
  const auto there = host.disk.exists(directory.paths().checkpoints());
  return directory.is_new() || (there.ok() && !*there);
}

// One run, part by part. Data members stand in the order of their use.
class TrainRun {
 public:
  TrainRun(const run::NodeHost& host, const std::string& engine, const MakeTraining& make,
           const RunRequest& request, run::RunDirectory directory)
      : host_(host),
        engine_(engine),
        request_(request),
        directory_(std::move(directory)),
        log_(host.disk, host.clock,
             {.metrics = directory_.paths().metrics(), .events = directory_.paths().events()}),
        training_(make({.host = host,
                        .paths = directory_.paths(),
                        .run_id = directory_.run_id(),
                        .config = directory_.is_new() ? request.config : directory_.config(),
                        .stop_requested = request.stop_requested,
                        .resume_command = request.resume_command,
                        .begins = is_unresolved(host, directory_)})) {}

  // The run was finished before. If its model has lost a file since, or one is damaged, it is written again,
  // where the trained network is kept. The figures stay as they are, and so does what was found in its place.
  Result<TrainResult> return_finished() {
    TrainResult before{.stopped = false, .summary = *directory_.finished_summary()};
    while (!before.summary.empty() && before.summary.back() == '\n') before.summary.pop_back();
    const auto whole = training_->check_saved();
    if (whole.ok()) {
      host_.say("the run is finished already");
      return before;
    }
    if (whole.error().kind == ErrorKind::kRefused) return whole.error();  // another version can read it
    const auto kept = kept_network(host_.disk, directory_.paths(), before.summary);
    if (!kept.ok()) return kept.error();
    if (!kept->trained) return model_gone(whole.error(), *kept);
    host_.warn(fmt::format("the run is finished, but its model is not whole: {}", whole.error().message()));
    host_.say(fmt::format("the model is written again, from the checkpoint of step {}", kept->step.value));
    if (auto done = prepare(); !done.ok()) return done.error();
    const auto done = train();
    if (!done.ok()) return failed(done.error());
    if (reached_ > 0) return model_gone(whole.error(), {.step = StepNumber(reached_)});
    if (!done->all) return TrainResult{.stopped = true, .summary = {}};
    if (auto moved = set_aside(directory_.paths().model()); !moved.ok()) return failed(moved.error());
    if (auto saved = save_patiently(); !saved.ok()) return failed(saved.error());
    training_->finished();
    return before;
  }

  Result<TrainResult> run() {
    if (finished_before()) return return_finished();
    tell_threads();
    auto begun = prepare();
    // From here on run.toml is the resolved config, which a resumed run starts from.
    if (begun.ok()) begun = directory_.write_config(training_->config());
    if (begun.ok()) begun = host_.disk.make_directories(directory_.paths().checkpoints());
    if (!begun.ok()) {
      directory_.abandon();
      if (!request_.stop_requested()) return begun.error();
      tell("stopped before the first step; nothing is left behind");
      return TrainResult{.stopped = true, .summary = {}};
    }
    const auto done = train();
    if (!done.ok()) return failed(done.error());
    if (!done->all) {
      tell(fmt::format("stopped after step {}; continue with: {}", done->steps, request_.resume_command));
      return TrainResult{.stopped = true, .summary = {}};
    }
    auto finished = finish(*done);
    return finished.ok() ? finished : failed(finished.error());
  }

 private:
  [[nodiscard]] bool finished_before() const { return directory_.finished_summary().has_value(); }

  // With another number of threads, sums are added in another order. Members from anywhere have their own.
  void tell_threads() {
    const auto before = directory_.threads_before();
    const int now = host_.compute.workers();
    if (!keeps_threads(request_) || !before || *before == now) return;
    if (same_threads_each(*before)) return;
    host_.warn(
        fmt::format("the run was done with {} so far, and goes on with {}: the model will "
                    "differ in its last bits; the same bits: --threads {}",
                    run::counted(static_cast<std::uint64_t>(*before), "thread"), now, *before));
  }

  // Only the threads of one node matter, where the run has as many nodes as before. They share all of them.
  [[nodiscard]] bool same_threads_each(int before) const {
    if (!request_.lead) return false;
    const auto file = run::read_lead_file(host_.disk, directory_.paths().lead());
    const OwnNodes& own = *request_.lead->own;
    const std::size_t each = std::max<std::size_t>(1, static_cast<std::size_t>(before) / own.nodes);
    return file.ok() && file->nodes == own.nodes && each == own.threads_each;
  }

  [[nodiscard]] Error model_gone(const Error& why, const KeptNetwork& kept) const {
    const std::string summary = directory_.paths().summary();
    return {.kind = ErrorKind::kBadData,
            .where = why.where,
            .what = "the run is finished, but its model is not whole",
            .got = why.got.empty() ? why.what : fmt::format("{}: {}", why.what, why.got),
            .expected = "all files of the model, or a checkpoint of the last step to write it again from",
            .fix = fmt::format("restore them, or train again from step {}: rm {}, then: {}",
                               kept.step.value + 1, shell_word(summary), request_.resume_command)};
  }

  // What the run has kept is not lost. Where the world has failed, the same run may go on later.
  Error failed(const Error& error) {
    if (saved_) tell(fmt::format("the model is in {}", directory_.paths().model()));
    if (error.kind == ErrorKind::kFailed && !training_->ends_for_good(error)) {
      warn_of_lost_steps();
      tell(fmt::format("once the cause is mended, continue with: {}", request_.resume_command));
    }
    return error;
  }

  // Writes a line for people, also when quiet: what a run has come to is no progress.
  void tell(std::string_view line) const { host_.console.write(std::string(line) + "\n"); }

  // What was done after the newest checkpoint ends with this process. The files of members are looked after
  // by the lead, which tells of them itself.
  void warn_of_lost_steps() const {
    if (request_.lead) return;
    const auto newest = tensors::newest_checkpoint(host_.disk, directory_.paths().checkpoints());
    if (!newest.ok()) return;
    const std::uint64_t kept = *newest ? (*newest)->next_step.value : 0;
    if (reached_ <= kept) return;
    const std::string lost = run::counted(reached_ - kept, "step");
    if (kept > 0) {
      host_.warn(fmt::format("the newest checkpoint is of step {}: --resume does {} again", kept, lost));
    } else {
      host_.warn(fmt::format("there is no checkpoint: --resume begins at step 1, and does {} again", lost));
    }
  }

  // Writes the model. The trained network may be in this memory alone, where a full disk took no checkpoint
  // either: so files that cannot be written are tried again for a while.
  Result<void> save_patiently() {
    const Instant since = host_.clock.now();
    Result<void> saved = training_->save();
    const auto may_pass = [&] {
      return !saved.ok() && saved.error().kind == ErrorKind::kFailed &&
             saved.error().where.starts_with(directory_.paths().model());
    };
    if (!may_pass() || request_.model_patience == Duration()) return saved;
    host_.warn(fmt::format("the model cannot be written: {}\nIt is tried again for {:.0f} s.",
                           saved.error().message(), request_.model_patience.seconds()));
    node::EventLoop loop(host_.clock);
    Instant next = since + kModelEvery;
    loop.run(
        [&]() -> std::optional<Instant> {
          if (loop.now() < next) return next;
          saved = training_->save();
          next = loop.now() + kModelEvery;
          return next;
        },
        [&] {
          return !may_pass() || loop.now() - since >= request_.model_patience || request_.stop_requested();
        });
    return saved;
  }

  Result<void> prepare() {
    if (auto done = training_->prepare(); !done.ok()) return done;
    load_seconds_ = (host_.clock.now() - start_).seconds();
    facts_ = training_->facts();
    return {};
  }

  // It may hold files of the user's, and what is damaged may be mended.
  Result<void> set_aside(const std::string& path) {
    auto there = host_.disk.exists(path);
    if (!there.ok()) return there.error();
    if (!*there) return {};
    std::string aside = path + ".damaged";
    for (int number = 2; there.ok() && *there; ++number) {
      there = host_.disk.exists(aside);
      if (there.ok() && *there) aside = fmt::format("{}.damaged-{}", path, number);
    }
    if (!there.ok()) return there.error();
    if (auto moved = host_.disk.rename(path, aside); !moved.ok()) return moved;
    host_.say(fmt::format("what was left of it is in {}", aside));
    return host_.disk.sync_directory(directory_.paths().root);
  }

  Result<DoneSteps> train() {
    const auto events = [this](std::string_view name, EventFields fields) {
      log_.event(name, fields);
      warnings_.on_event(name, fields);
      if (name == "checkpoint_damaged") warn_of_damage(fields);
      if (name == "resumed") tell_start(fields);
    };
    events("run_started", {{"run_id", directory_.run_id()},
                           {"threads", static_cast<std::uint64_t>(host_.compute.workers())},
                           {"isa", std::string(kernels::name(host_.kernels.isa))}});
    StepWatch watch(host_, log_, facts_.batch);
    const auto on_step = [this, &watch](const engine::TrainProgress& progress) {
      if (progress.steps_done == 1) tell_beginning();
      reached_ = progress.steps_done;
      if (!finished_before()) watch.on_step(progress);
    };
    // A finished run ends with the first step that it would do anew: nobody has asked for that.
    const auto stop = [this] { return request_.stop_requested() || (finished_before() && reached_ > 0); };
    train_begin_ = host_.clock.now();
    auto done =
        training_->train({.on_step = on_step, .stop_requested = stop, .events = events}, load_seconds_);
    watch.finish();
    steps_seconds_ = (host_.clock.now() - train_begin_).seconds();
    own_steps_ = watch.steps_seen();
    if (watch.error().has_value()) return *watch.error();
    if (done.ok() && own_steps_ == 0 && reached_ == 0) {
      // All steps were done before. The log gives their curve.
      if (auto kept = log_.continue_at(done->steps); !kept.ok()) return kept.error();
    }
    return done;
  }

  // Says which file is damaged, once. Each of its pieces, and each member, tells of it.
  void warn_of_damage(EventFields fields) {
    for (const EventField& field : fields) {
      const auto* const file = std::get_if<std::string>(&field.value);
      if (field.key != "file" || file == nullptr || !damaged_.insert(*file).second) continue;
      host_.warn(fmt::format("{} is damaged; other files or an older checkpoint are taken instead", *file));
    }
  }

  // Says with which step the run goes on. After damage it may be one that nobody expects.
  void tell_start(EventFields fields) {
    started_ = true;
    if (finished_before()) return;
    const auto step = std::ranges::find(fields, "step", &EventField::key);
    const auto* const number = step == fields.end() ? nullptr : std::get_if<std::uint64_t>(&step->value);
    if (number == nullptr) return;
    const std::string line = fmt::format("goes on at step {}", *number);
    if (damaged_.empty()) {
      host_.say(line);
    } else {
      host_.warn(fmt::format("the run {}", line));
    }
  }

  // A run that was begun before does its first step here. If it says nothing, it goes on from a checkpoint.
  void tell_beginning() {
    if (std::exchange(started_, true) || directory_.is_new() || finished_before()) return;
    host_.warn(fmt::format("{} has no whole checkpoint of this run: it begins again at its first step",
                           directory_.paths().checkpoints()));
  }

  Result<TrainResult> finish(const DoneSteps& done) {
    facts_ = training_->facts();
    if (auto saved = save_patiently(); !saved.ok()) return saved.error();
    saved_ = true;
    TrainSummary summary = summarize(done);
    const std::string curve = curve_svg(log_.curve(), facts_.title);
    if (auto kept = host::replace_file(host_.disk, directory_.paths().curve(), curve); !kept.ok())
      return kept.error();
    const auto measured = training_->measure();
    if (!measured.ok()) return measured.error();
    if (!measured->stopped.empty()) {
      tell(measured->stopped);
      return TrainResult{.stopped = true, .summary = {}};
    }
    summary.metrics_json = measured->metrics_json;
    summary.eval_seconds = measured->seconds;
    summary.eval_cpu_seconds = measured->cpu_seconds;
    if (measured->while_training) summary.train_seconds -= measured->seconds;
    auto ended = end(summary);
    if (ended.ok()) ended->figures = measured->text;
    return ended;
  }

  Result<TrainResult> end(TrainSummary& summary) {
    summary.peak_rss_bytes = std::max(summary.peak_rss_bytes, host_.compute.peak_rss_bytes());
    TrainResult result{.stopped = false, .summary = to_json(summary)};
    log_.event("run_finished", {{"steps", summary.steps}});
    if (log_.first_error().has_value())
      host_.warn(fmt::format("the logs are incomplete: {}", log_.first_error()->message()));
    const std::string path = directory_.paths().summary();
    if (auto done = host::replace_file(host_.disk, path, result.summary + "\n"); !done.ok())
      return done.error();
    training_->finished();
    return result;
  }

  [[nodiscard]] TrainSummary summarize(const DoneSteps& done) const {
    const StepsCost others = training_->cost();
    const std::uint64_t samples = done.steps * facts_.batch;
    TrainSummary summary;
    summary.engine = engine_;
    summary.run_id = directory_.run_id();
    summary.nodes = others.nodes;
    summary.peak_rss_bytes = others.peak_rss_bytes;
    summary.bytes_sent_per_node_per_step = others.step_bytes;
    summary.background_bytes_per_node_per_step = others.background_bytes;
    summary.recoveries = others.recoveries;
    summary.parameters = facts_.parameters;
    summary.steps = done.steps;
    summary.samples = samples;
    summary.epochs = static_cast<double>(samples) / static_cast<double>(facts_.samples);
    const double own_train_seconds = (host_.clock.now() - train_begin_).seconds();
    const double own_cpu_seconds = host_.clock.process_cpu().seconds() + others.cpu_seconds;
    const tensors::RunCost& before = done.cost_before;
    summary.load_seconds = before.load_seconds + load_seconds_;
    summary.train_seconds = before.train_seconds + own_train_seconds;
    summary.cpu_seconds = before.cpu_seconds + own_cpu_seconds;
    summary.samples_per_second = rate(static_cast<double>(samples), before.train_seconds + steps_seconds_);
    if (done.resumed_at.has_value()) {
      const double own_samples = static_cast<double>(own_steps_) * static_cast<double>(facts_.batch);
      summary.since_resume = {.step = (*done.resumed_at).value,
                              .train_seconds = own_train_seconds,
                              .load_seconds = load_seconds_,
                              .cpu_seconds = own_cpu_seconds,
                              .samples_per_second = rate(own_samples, steps_seconds_)};
    }
    summary.final_loss = done.final_loss;
    summary.model_dir = directory_.paths().model();
    return summary;
  }

  const run::NodeHost& host_;
  const std::string engine_;
  const RunRequest& request_;
  run::RunDirectory directory_;
  CheckpointWarnings warnings_{host_};
  std::set<std::string> damaged_;  // files that were said to be
  bool started_ = false;           // the step that the run goes on at was said, or it has begun
  run::RunLog log_;
  const Instant start_ = host_.clock.now();
  const std::unique_ptr<Training> training_;
  TrainingFacts facts_;
  double load_seconds_ = 0;
  double steps_seconds_ = 0;
  std::uint64_t own_steps_ = 0;
  std::uint64_t reached_ = 0;  // steps of the run that are done
  Instant train_begin_;
  bool saved_ = false;  // the model is written
};

}  // namespace

Result<TrainResult> run_training(const run::NodeHost& host, const EngineEntry& engine,
                                 const RunRequest& request) {
  return run_training(
      host, std::string(engine.name),
      [&](const TrainingPlace& place) { return engine.prepare(place, request.lead); }, request);
}

Result<TrainResult> run_training(const run::NodeHost& host, const std::string& name, const MakeTraining& make,
                                 const RunRequest& request) {
  // 40 bits of the time in microseconds tell runs apart. The id is a name and protects nothing.
  const auto microseconds = static_cast<std::uint64_t>(host.clock.wall_seconds() * 1e6);
  const std::string run_id = fmt::format("{:010x}", microseconds & 0xFFFFFFFFFF);
  auto directory =
      run::RunDirectory::open(host.disk, {.directory = request.directory,
                                          .resume = request.resume,
                                          .engine = request.engine,
                                          .config = request.config,
                                          .settings = request.settings,
                                          .run_id = run_id,
                                          .threads = keeps_threads(request) ? host.compute.workers() : 0});
  if (!directory.ok()) return directory.error();
  TrainRun run(host, name, make, request, std::move(*directory));
  return run.run();
}

}  // namespace gossamer::commands
