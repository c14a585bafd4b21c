// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/train/trainer.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engines/run/checkpoint_times.h"
#include "engines/run/recent_mean.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/negatives_plan.h"
#include "engines/sparse/train/divergence.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/negatives/negatives.h"
#include "settings/toml.h"

namespace gossamer::sparse_engine {
namespace {

// The line of a removed key in run.toml, and helps of keys before they were written anew. They stay in the
// fingerprint, so that checkpoints of older programs are resumed.
constexpr std::string_view kMicrobatchesOnce =
    "microbatches = 1                         # parts of a step's samples: nodes compute one while they "
    "exchange another; trains the same; an integer 1..16\n";
constexpr std::string_view kHeldOutOnce =
    "# records that training leaves out, to learn the weights of prediction on; 0: none; auto or an integer "
    "0..1000000";
constexpr std::string_view kLogQOnce =
    "# correction for how often a label is active: every label, unbiased given the sample, or off; all, "
    "exact or none";

// Where the line of a key begins.
std::size_t line_of(const std::string& text, std::string_view key) {
  const std::size_t begin = text.find(fmt::format("\n{} = ", key)) + 1;
  CHECK(begin > 0, key);
  return begin;
}

// Puts another help in the place of a key's own one.
void put_help(std::string& text, std::string_view key, std::string_view help) {
  const std::size_t begin = text.find('#', line_of(text, key));
  text.replace(begin, text.find('\n', begin) - begin, help);
}

// The fingerprint of the keys that shape the trained network. It leaves out where data lies, how it is
// checkpointed and how it is used afterwards. It is made of lines with their help: a help that is written
// anew stays here as it was.
std::uint64_t config_fingerprint(TrainConfig config) {
  config.data = {.weighting = config.data.weighting};
  config.checkpoint = {};
  config.cluster = {.codec = config.cluster.codec, .staleness = config.cluster.staleness};
  config.predict = {};
  std::string text = settings::to_toml(train_keys().values(config));
  text.insert(line_of(text, "staleness"), kMicrobatchesOnce);
  put_help(text, "held_out", kHeldOutOnce);
  put_help(text, "logq", kLogQOnce);
  return XXH3_64bits(text.data(), text.size());
}

// One training run: the objects that the loop needs, owned together.
class TrainingRun {
 public:
  TrainingRun(const TrainInputs& inputs, const engine::TrainHooks& hooks)
      : in_(inputs),
        hooks_(hooks),
        network_(network_of(inputs)),
        labels_(sparse::by_row(inputs.labels, network_.order)),
        steps_(inputs.steps, network_.order),
        schedule_(schedule_of(inputs.config, inputs.recipe)),
        fingerprint_(fingerprint_of(inputs)),
        times_({.every_steps = inputs.config.checkpoint.every_steps,
                .every_minutes = inputs.config.checkpoint.every_minutes,
                .steps = inputs.recipe.steps}) {
    sparse::initialize(network_, network_init(inputs.config), labels_.count, inputs.compute);
    hashed_ = hash_tables(inputs, network_);
  }

  Result<void> resume() {
    auto tables = table_state();
    const auto loaded = tensors::load_newest_checkpoint(in_.disk, in_.checkpoint_directory, fingerprint_,
                                                        checkpoint_tensors(network_, tables), hooks_.events);
    if (!loaded.ok()) return loaded.error();
    if (!loaded->has_value()) return {};
    const tensors::CheckpointInfo& info = **loaded;
    next_ = info.next_step;
    if (tables && !info.finished) hashed_->restore(*tables, next_);
    resumed_at_ = next_;
    cost_before_ = info.cost;
    recent_ = engine::RecentMean(info.losses, next_.value);
    hooks_.events("resumed", {{"step", next_.value}, {"from_run", info.run_id}});
    if (info.workers != in_.compute.workers()) {
      hooks_.events("workers_changed", {{"before", static_cast<std::uint64_t>(info.workers)},
                                        {"now", static_cast<std::uint64_t>(in_.compute.workers())}});
    }
    return {};
  }

  Result<TrainOutcome> loop(sparse::Learner& learner) {
    TrainOutcome outcome;
    begin_ = in_.clock.now();
    times_.saved(begin_);
    bool stopped = false;
    while (next_.value < in_.recipe.steps && !stopped) {
      const float rate = schedule_.learning_rate(next_);
      const data::Batch batch = steps_.read(next_);
      const sparse::StepReport report = learner.step(batch, next_, {.learning_rate = rate});
      if (!std::isfinite(report.loss)) return diverged(next_.value + 1, "a loss");
      ++next_;
      outcome.phases += report.phases;
      recent_.add(report.loss);
      hooks_.on_step(progress(report, rate));
      stopped = hooks_.stop_requested();
      if (auto saved = save_when_due(stopped, outcome.checkpoints); !saved.ok()) return saved.error();
    }
    if (next_.value == in_.recipe.steps && !has_finite_weights(network_))
      return diverged(next_.value, "a weight");
    outcome.steps = next_.value;
    outcome.samples = next_.value * in_.config.train.batch;
    outcome.final_loss = recent_.mean();
    outcome.resumed_at = resumed_at_;
    outcome.cost_before = cost_before_;
    if (next_.value == in_.recipe.steps) {
      network_.drop_moments();
      sparse::order_by_label(network_);
      outcome.network = std::move(network_);
    }
    return outcome;
  }

  sparse::Network& network() { return network_; }
  // The counts, by row.
  [[nodiscard]] const sparse::LabelCounts& labels() const { return labels_; }
  // Null in a run without hash tables.
  sparse::HashNegatives* hashed() { return hashed_.get(); }

 private:
  // The whole network, not yet initialized.
  static sparse::Network network_of(const TrainInputs& in) {
    const sparse::NetworkShape shape = network_shape(in.recipe, in.schema.features(), in.schema.labels());
    const unsigned shift = sparse::shard_shift(shape.labels, in.shards);
    sparse::Network network(shape, whole(shape, shift), table_moments(in.config.optimizer.moments));
    network.order = sparse::RowOrder(in.labels.count, shift);
    return network;
  }

  [[nodiscard]] engine::TrainProgress progress(const sparse::StepReport& report, float rate) const {
    const std::uint64_t samples = next_.value * in_.config.train.batch;
    return {.steps_done = next_.value,
            .steps_total = in_.recipe.steps,
            .samples_done = samples,
            .epoch = static_cast<double>(samples) / static_cast<double>(in_.schema.size()),
            .loss = report.loss,
            .learning_rate = rate,
            .active_rows = report.active_rows};
  }

  [[nodiscard]] tensors::RunCost cost() const {
    tensors::RunCost cost{.load_seconds = in_.load_seconds,
                          .train_seconds = (in_.clock.now() - begin_).seconds(),
                          .cpu_seconds = in_.clock.process_cpu().seconds()};
    return cost += cost_before_;
  }

  [[nodiscard]] std::optional<sparse::HashNegatives::State> table_state() const {
    return hashed_ ? std::optional(hashed_->state()) : std::nullopt;
  }

  [[nodiscard]] static Error diverged(std::uint64_t step, std::string_view what) {
    return network_diverged({.where = fmt::format("step {}", step),
                             .got = fmt::format("{} that is no number, or infinite", what),
                             .expected = "finite numbers"});
  }

  // Saves when it is due. A save that fails is reported and the run goes on, unless a stop before the last
  // step asked for it.
  Result<void> save_when_due(bool stopping, tensors::CheckpointCounters& counters) {
    const bool finished = next_.value == in_.recipe.steps;
    const bool asked_for = stopping && !finished;
    if (!asked_for && !times_.due(next_, in_.clock.now())) return {};
    // The checkpoint before stays the newest one.
    if (!has_finite_weights(network_)) return diverged(next_.value, "a weight");
    auto tables = finished ? std::nullopt : table_state();
    auto tensors = checkpoint_tensors(network_, tables);
    if (finished) {
      std::erase_if(tensors, [](const tensors::NamedTensor& tensor) {
        return tensor.use == tensors::TensorUse::kToGoOn;
      });
    }
    const auto saved = tensors::save_checkpoint(in_.disk, in_.checkpoint_directory,
                                                {.next_step = next_,
                                                 .run_id = in_.run_id,
                                                 .config_fingerprint = fingerprint_,
                                                 .workers = in_.compute.workers(),
                                                 .finished = finished,
                                                 .cost = cost(),
                                                 .losses = recent_.losses()},
                                                tensors, static_cast<int>(in_.config.checkpoint.keep));
    times_.saved(in_.clock.now());
    if (saved.ok()) {
      ++counters.written;
      counters.bytes += tensors::checkpoint_bytes(tensors);
      hooks_.events("checkpoint_written", {{"step", next_.value}});
      return {};
    }
    ++counters.failed;
    hooks_.events("checkpoint_failed", {{"step", next_.value}, {"error", saved.error().message()}});
    return asked_for ? saved : Result<void>();
  }

  const TrainInputs& in_;
  const engine::TrainHooks& hooks_;
  sparse::Network network_;
  sparse::LabelCounts labels_;  // by row
  RowSteps steps_;
  std::unique_ptr<sparse::HashNegatives> hashed_;
  sparse::Schedule schedule_;
  std::string fingerprint_;
  StepNumber next_;
  engine::RecentMean recent_;
  std::optional<StepNumber> resumed_at_;
  tensors::RunCost cost_before_;
  Instant begin_;  // when the loop began
  engine::CheckpointTimes times_;
};

}  // namespace

std::vector<tensors::NamedTensor> checkpoint_tensors(sparse::Network& network) {
  const auto bytes = [](auto span) { return std::as_writable_bytes(span); };
  constexpr tensors::TensorUse kToGoOn = tensors::TensorUse::kToGoOn;
  std::vector<tensors::NamedTensor> tensors = {
      {"embedding.weights", bytes(network.embedding.all_weights())},
      {"embedding.moment1", network.embedding.all_moment1(), kToGoOn},
      {"embedding.moment2", bytes(network.embedding.all_moment2()), kToGoOn},
      {"embedding.last_step", bytes(network.embedding.all_last_steps()), kToGoOn},
      {"output.weights", bytes(network.output.all_weights())},
      {"output.moment1", network.output.all_moment1(), kToGoOn},
      {"output.moment2", bytes(network.output.all_moment2()), kToGoOn},
      {"output.last_step", bytes(network.output.all_last_steps()), kToGoOn},
      {"bias.weights", bytes(network.bias.span())},
      {"bias.moment1", bytes(network.bias_moment1.span()), kToGoOn},
      {"bias.moment2", bytes(network.bias_moment2.span()), kToGoOn}};
  for (std::size_t i = 0; i < network.dense.size(); ++i) {
    sparse::DenseLayer& layer = network.dense[i];
    const auto add = [&](std::string_view what, std::span<std::byte> memory, tensors::TensorUse use) {
      tensors.push_back({fmt::format("dense.{}.{}", i + 1, what), memory, use});
    };
    add("weights", bytes(layer.weights.all_weights()), tensors::TensorUse::kResult);
    add("moment1", layer.weights.all_moment1(), kToGoOn);
    add("moment2", bytes(layer.weights.all_moment2()), kToGoOn);
    add("last_step", bytes(layer.weights.all_last_steps()), kToGoOn);
    add("bias.weights", bytes(layer.bias.span()), tensors::TensorUse::kResult);
    add("bias.moment1", bytes(layer.bias_moment1.span()), kToGoOn);
    add("bias.moment2", bytes(layer.bias_moment2.span()), kToGoOn);
  }
  return tensors;
}

std::vector<tensors::NamedTensor> checkpoint_tensors(sparse::Network& network,
                                                     std::optional<sparse::HashNegatives::State>& tables) {
  std::vector<tensors::NamedTensor> tensors = checkpoint_tensors(network);
  if (!tables) return tensors;
  for (const auto& [name, bytes] :
       {std::pair("lsh.keys", std::as_writable_bytes(std::span(tables->keys))),
        {"lsh.allowances", std::as_writable_bytes(std::span(tables->allowances))}})
    tensors.push_back({name, bytes, tensors::TensorUse::kToGoOn});
  return tensors;
}

std::unique_ptr<sparse::HashNegatives> hash_tables(const TrainInputs& inputs,
                                                   const sparse::Network& network) {
  if (!inputs.recipe.tables) return nullptr;
  return std::make_unique<sparse::HashNegatives>(
      sparse::HashNegatives::Parts{.network = network, .kernels = inputs.kernels, .compute = inputs.compute},
      hash_negative_options(inputs.config, *inputs.recipe.tables, inputs.recipe.steps));
}

Result<void> save_trained_checkpoint(const TrainInputs& inputs, tensors::CheckpointInfo info,
                                     sparse::Network& trained) {
  CHECK(inputs.shards == 1, inputs.shards);
  info.finished = true;
  info.config_fingerprint = fingerprint_of(inputs);
  auto tensors = checkpoint_tensors(trained);
  std::erase_if(tensors,
                [](const tensors::NamedTensor& tensor) { return tensor.use == tensors::TensorUse::kToGoOn; });
  return tensors::save_checkpoint(inputs.disk, inputs.checkpoint_directory, info, tensors,
                                  static_cast<int>(inputs.config.checkpoint.keep));
}

std::string fingerprint_of(const TrainInputs& in) {
  return fmt::format("{}-{}", run_fingerprint(in.config, in.recipe, in.schema),
                     sparse::shard_shift(in.schema.labels(), in.shards));
}

std::string run_fingerprint(const TrainConfig& config, const Recipe& recipe, const data::Schema& schema) {
  const DataShape shape = shape_of(schema);
  return fmt::format("{:016x}-{}-{}-{}-{}-{}-{}-{}", config_fingerprint(config), shape.records,
                     shape.features, shape.labels, shape.feature_entries, shape.label_entries, recipe.hidden,
                     recipe.steps);
}

sparse::Schedule schedule_of(const TrainConfig& config, const Recipe& recipe) {
  return {.peak = config.train.lr,
          .warmup_steps = config.train.warmup_steps,
          .total_steps = recipe.steps,
          .decay = config.train.schedule};
}

sparse::NetworkInit network_init(const TrainConfig& config) {
  return {.embedding_stddev = static_cast<float>(config.model.embedding_init),
          .output_stddev = static_cast<float>(config.model.output_init),
          .dense_gain = config.model.activation == kernels::Activation::kRelu ? 1.414F : 1.0F,
          .seed = config.seed};
}

sparse::LearnerOptions learner_options(const TrainConfig& config, const Recipe& recipe) {
  sparse::LearnerOptions options;
  options.batch_max = config.train.batch;
  options.activation = config.model.activation;
  options.dropout = recipe.dropout;
  options.negatives = negative_options(config);
  options.logq = config.loss.logq;
  options.element = config.train.precision;
  options.optimizer.beta1 = config.optimizer.beta1;
  options.optimizer.beta2 = config.optimizer.beta2;
  options.optimizer.epsilon = config.optimizer.epsilon;
  options.optimizer.skipped = config.optimizer.skipped;
  options.seed = config.seed;
  return options;
}

Result<TrainOutcome> train(const TrainInputs& inputs, const engine::TrainHooks& hooks) {
  CHECK(inputs.schema.size() > 0);
  CHECK(inputs.recipe.steps > 0);
  TrainingRun run(inputs, hooks);
  if (auto resumed = run.resume(); !resumed.ok()) return resumed.error();
  sparse::Learner learner({.network = run.network(),
                           .labels = run.labels(),
                           .kernels = inputs.kernels,
                           .compute = inputs.compute,
                           .clock = &inputs.clock,
                           .hashed = run.hashed()},
                          learner_options(inputs.config, inputs.recipe));
  return run.loop(learner);
}

}  // namespace gossamer::sparse_engine
