// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_stage.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/human_bytes.h"
#include "base/rng.h"
#include "commands/bench/bench_options.h"
#include "commands/lm/torch_library.h"
#include "engines/pipeline/stage/lm_activations.h"
#include "engines/pipeline/stage/lm_shape.h"
#include "engines/pipeline/stage/stage_optimizer.h"

namespace gossamer::commands {
namespace {

using pipeline::Precision;
using pipeline::StageBackend;
using pipeline::StageTask;

// The gradients of boundaries are small beside these, and both stay finite in bf16.
constexpr float kBoundarySize = 1.0F;
constexpr float kGradientSize = 1e-3F;

pipeline::LmShape shape_of(const BenchStage& o) {
  pipeline::LmShape shape = pipeline::kLmPresets[static_cast<std::size_t>(o.preset)].shape;
  shape.vocabulary = static_cast<std::uint32_t>(o.vocabulary);
  if (o.context > 0) shape.context = static_cast<std::uint32_t>(o.context);
  const auto layers = static_cast<std::uint32_t>(o.layers);
  // A middle stage has one layer more on each side of it.
  const std::uint32_t others = o.position == StagePosition::kWhole    ? 0
                               : o.position == StagePosition::kMiddle ? 2
                                                                      : 1;
  shape.layers = layers + others;
  return shape;
}

pipeline::StageCut cut_of(const BenchStage& o) {
  const std::uint32_t all = shape_of(o).layers;
  const auto layers = static_cast<std::uint32_t>(o.layers);
  const std::uint32_t first =
      o.position == StagePosition::kMiddle || o.position == StagePosition::kLast ? 1 : 0;
  return {.first = first, .last = first + layers, .layers = all};
}

// Even numbers in [-size, size).
template <class T>
std::vector<T> made_up(std::size_t count, float size, Rng rng) {
  std::vector<T> numbers(count);
  for (T& number : numbers) number = static_cast<T>(size * (2 * rng.uniform() - 1));
  return numbers;
}

std::vector<pipeline::TokenNumber> made_up_tokens(std::size_t count, std::uint64_t vocabulary, Rng rng) {
  std::vector<pipeline::TokenNumber> tokens(count);
  for (auto& token : tokens) token = static_cast<pipeline::TokenNumber>(rng.below(vocabulary));
  return tokens;
}

// What a stage is given. Arrays that it does not need are empty.
struct MadeMicrobatch {
  std::vector<pipeline::TokenNumber> tokens, targets;
  std::variant<std::vector<float>, std::vector<double>> boundary, gradient;
  pipeline::Microbatch microbatch;
  std::optional<pipeline::ConstNumbers> output_gradient;
};

pipeline::ConstNumbers view(const std::variant<std::vector<float>, std::vector<double>>& numbers) {
  return std::visit(
      []<class T>(const std::vector<T>& all) -> pipeline::ConstNumbers { return std::span<const T>(all); },
      numbers);
}

template <class T>
void make_boundaries(const BenchStage& o, std::size_t numbers, MadeMicrobatch& made) {
  if (!cut_of(o).has_embedding()) {
    made.boundary = made_up<T>(numbers, kBoundarySize, Rng(o.seed, Purpose::kSynthetic, 2));
    made.microbatch.boundary = view(made.boundary);
  }
  if (!cut_of(o).has_head()) {
    made.gradient = made_up<T>(numbers, kGradientSize, Rng(o.seed, Purpose::kSynthetic, 3));
    made.output_gradient = view(made.gradient);
  }
}

void make_microbatch(const BenchStage& o, MadeMicrobatch& made) {
  const pipeline::LmShape shape = shape_of(o);
  const std::size_t tokens = o.windows * shape.context;
  made.microbatch = {.windows = static_cast<std::uint32_t>(o.windows),
                     .context = shape.context,
                     .tokens = {},
                     .targets = {}};
  if (cut_of(o).has_embedding()) {
    made.tokens = made_up_tokens(tokens, o.vocabulary, Rng(o.seed, Purpose::kSynthetic, 0));
    made.microbatch.tokens = made.tokens;
  }
  if (cut_of(o).has_head()) {
    made.targets = made_up_tokens(tokens, o.vocabulary, Rng(o.seed, Purpose::kSynthetic, 1));
    made.microbatch.targets = made.targets;
  }
  if (o.precision == Precision::kF64) {
    make_boundaries<double>(o, tokens * shape.width, made);
  } else {
    make_boundaries<float>(o, tokens * shape.width, made);
  }
}

Result<void> check(const run::NodeHost& host, const BenchStage& o) {
  const std::uint64_t parameters = pipeline::lm_parameters(shape_of(o), cut_of(o));
  const std::uint64_t number = pipeline::wide_number_bytes(o.precision);
  const std::uint64_t arrays = o.update ? 4 : 2;
  // The least that a microbatch keeps before its way back: the input of each layer that is applied, and
  // graphs.
  const pipeline::LmShape shape = shape_of(o);
  const std::uint64_t tokens = o.windows * shape.context;
  const std::uint64_t pieces = o.layers * shape.applied;
  const std::uint64_t inputs =
      (pieces + 1) * tokens * shape.width * pipeline::layer_number_bytes(o.precision);
  const std::uint64_t graphs =
      (o.keep == pipeline::Keep::kAll ? pieces : 1) * pipeline::layer_graph_bytes(shape, o.precision, tokens);
  return check_bench_memory(host, arrays * number * parameters + inputs + graphs,
                            "lower layers, windows or context, or take a smaller preset");
}

class StageTrials {
 public:
  StageTrials(const run::NodeHost& host, const BenchStage& options, StageBackend& stage)
      : host_(host), options_(options), stage_(stage) {
    make_microbatch(options, made_);
    if (options.update) optimizer_.emplace(stage, exact::AdamWOptions{});
  }

  Result<void> trial() {
    Times times;
    if (auto done = compute(times); !done.ok()) return done;
    if (optimizer_.has_value()) {
      const Instant begin = host_.clock.now();
      optimizer_->begin_step({.step = trials_.size(), .rate = 1e-6, .gradient_scale = 1.0 / tokens()});
      while (optimizer_->apply_next()) continue;
      if (auto changed = stage_.weights_changed(); !changed.ok()) return changed;
      times.update = since(begin);
    }
    trials_.push_back(times);
    return {};
  }

  // Over the trials behind the first `warmup`.
  [[nodiscard]] BenchStageResult result(std::size_t warmup) const {
    const auto median = [&](double Times::* part) {
      std::vector<double> all;
      for (std::size_t i = warmup; i < trials_.size(); ++i) all.push_back(trials_[i].*part);
      std::ranges::sort(all);
      return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
    };
    BenchStageResult result{.forward_seconds = median(&Times::forward),
                            .backward_seconds = median(&Times::backward),
                            .products_seconds = median(&Times::products),
                            .update_seconds = median(&Times::update)};
    const double seconds = result.forward_seconds + result.backward_seconds + result.products_seconds;
    result.tokens_per_second = seconds > 0 ? tokens() / seconds : 0;
    result.tokens = static_cast<std::uint64_t>(tokens());
    result.task_bytes = task_bytes_;
    return result;
  }

 private:
  struct Times {
    double forward = 0, backward = 0, products = 0, update = 0;
  };

  [[nodiscard]] double tokens() const {
    return static_cast<double>(made_.microbatch.windows) * made_.microbatch.context;
  }
  [[nodiscard]] double since(Instant begin) const { return (host_.clock.now() - begin).seconds(); }

  // One call, whose time is added to `seconds`.
  template <class Next>
  Result<bool> timed(const StageTask& task, double& seconds, Next&& next) {
    const Instant begin = host_.clock.now();
    Result<bool> more = next();
    seconds += since(begin);
    task_bytes_ = std::max(task_bytes_, task.bytes());
    return more;
  }

  Result<void> add_products(StageTask& task, Times& times) {
    while (task.can_add()) {
      const auto more = timed(task, times.products, [&] { return task.add_next(); });
      if (!more.ok()) return more.error();
    }
    return {};
  }

  Result<void> compute(Times& times) {
    const auto begun = stage_.begin(made_.microbatch, options_.keep);
    if (!begun.ok()) return begun.error();
    StageTask& task = **begun;
    for (bool more = true; more;) {
      const auto next = timed(task, times.forward, [&] { return task.forward_next(); });
      if (!next.ok()) return next.error();
      more = *next;
    }
    if (auto done = task.begin_backward(made_.output_gradient); !done.ok()) return done;
    for (bool more = true; more;) {
      const auto next = timed(task, times.backward, [&] { return task.backward_next(); });
      if (!next.ok()) return next.error();
      more = *next;
      if (more && options_.products == StageProducts::kLate) continue;
      if (auto added = add_products(task, times); !added.ok()) return added;
    }
    return {};
  }

  const run::NodeHost& host_;
  const BenchStage& options_;
  StageBackend& stage_;
  MadeMicrobatch made_;
  std::optional<pipeline::StageOptimizer> optimizer_;
  std::vector<Times> trials_;
  std::uint64_t task_bytes_ = 0;
};

}  // namespace

const settings::KeyTable<BenchStage>& bench_stage_keys() {
  using settings::key;
  using B = BenchStage;
  static const settings::KeyTable<B> table(
      {.listed_by = "gossamer bench stage --help", .one = "an option"},
      {key<&B::preset>("preset", {.choices = {"tiny", "gpt2-small", "swarm-1b"}},
                       "the model that the stage is a part of"),
       key<&B::position>("position", {.choices = {"first", "middle", "last", "whole"}},
                         "where the stage stands; whole: it is the model"),
       key<&B::layers>("layers", {.min = 1, .max = 998}, "layers of the stage"),
       key<&B::vocabulary>("vocabulary", {.min = 2, .max = 1e7}, "tokens that the model knows"),
       key<&B::windows>("windows", {.min = 1, .max = 65'536}, "windows of the microbatch"),
       key<&B::context>("context", {.max = 65'536}, "tokens of a window; 0: as the preset says"),
       key<&B::precision>("precision", {.choices = {"f32", "bf16", "f64"}}, "what layers compute in"),
       key<&B::keep>("keep", {.choices = {"input", "layer-inputs", "all"}},
                     "what is kept for the way back; the rest is computed again"),
       key<&B::products>("products", {.choices = {"early", "late"}},
                         "when the gradients of weights are formed: layer by layer, or behind all layers"),
       key<&B::update>("update", {.choices = {"yes", "no"}}, "with moments, and an update of the weights"),
       key<&B::trials>("trials", {.min = 1, .max = 10'000}, "microbatches that count"),
       key<&B::warmup>("warmup", {.max = 10'000}, "microbatches before them"),
       key<&B::seed>("seed", {}, "of weights, tokens and boundaries")});
  return table;
}

Result<BenchStageResult> bench_stage(const run::NodeHost& host, const BenchStage& options,
                                     const OpenStages& open) {
  if (auto good = check(host, options); !good.ok()) return good.error();
  const auto make = open(host);
  if (!make.ok()) return make.error();
  const auto stage = (*make)({.shape = shape_of(options),
                              .cut = cut_of(options),
                              .precision = options.precision,
                              .seed = options.seed,
                              .threads = host.compute.workers()});
  if (!stage.ok()) return stage.error();
  const std::uint64_t parameters = pipeline::lm_parameters(shape_of(options), cut_of(options));
  StageTrials trials(host, options, **stage);
  host.say(fmt::format("measuring {} microbatches of {} tokens in a stage of {} parameters on {} threads",
                       options.warmup + options.trials, options.windows * shape_of(options).context,
                       run::human_count(parameters), host.compute.workers()));
  for (std::uint64_t i = 0; i < options.warmup + options.trials; ++i) {
    if (auto done = trials.trial(); !done.ok()) return done.error();
  }
  BenchStageResult result = trials.result(options.warmup);
  result.parameters = parameters;
  result.peak_rss_bytes = host.compute.peak_rss_bytes();
  return result;
}

Result<BenchStageResult> bench_torch_stage(const run::NodeHost& host, const BenchStage& options) {
  return bench_stage(host, options, open_torch_stages);
}

std::string to_json(const BenchStageResult& result, const BenchStage& options, const run::NodeHost& host) {
  const nlohmann::ordered_json json = {{"forward_s", result.forward_seconds},
                                       {"backward_s", result.backward_seconds},
                                       {"products_s", result.products_seconds},
                                       {"update_s", result.update_seconds},
                                       {"tokens_per_second", result.tokens_per_second},
                                       {"tokens", result.tokens},
                                       {"parameters", result.parameters},
                                       {"task_bytes", result.task_bytes},
                                       {"peak_rss_bytes", result.peak_rss_bytes},
                                       {"threads", host.compute.workers()},
                                       {"options", bench_options_json(bench_stage_keys().values(options))}};
  return json.dump();
}

std::string to_text(const BenchStageResult& r) {
  return fmt::format(
      "{:.0f} tokens/s: forward {:.3g} s, backward {:.3g} s, products {:.3g} s; update {:.3g} s\n"
      "{} parameters, {} kept for a microbatch of {} tokens, peak memory {}\n",
      r.tokens_per_second, r.forward_seconds, r.backward_seconds, r.products_seconds, r.update_seconds,
      run::human_count(r.parameters), human_bytes(r.task_bytes), r.tokens, human_bytes(r.peak_rss_bytes));
}

}  // namespace gossamer::commands
