// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_sparse_step.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "base/human_bytes.h"
#include "base/rng.h"
#include "commands/bench/bench_options.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/train/step_source.h"
#include "learn/sparse/network/network.h"

namespace gossamer::commands {
namespace {

// Where negatives are drawn from: sampled > 0 alone means evenly.
sparse::Negatives drawn(const BenchSparseStep& o) {
  return o.negatives == sparse::Negatives::kInBatch && o.sampled > 0 ? sparse::Negatives::kUniform
                                                                     : o.negatives;
}

// Ranks 0..n-1 with density (rank + 1)^-zipf.
class ZipfRanks {
 public:
  ZipfRanks(std::uint64_t n, double zipf)
      : n_(n), power_(1 - zipf), top_(std::pow(static_cast<double>(n), power_) - 1) {}
  [[nodiscard]] std::uint64_t draw(Rng& rng) const {
    const double u = static_cast<double>(rng.next_u64() >> 11) * 0x1p-53;
    const double x = std::pow(u * top_ + 1, 1 / power_);
    return std::min(n_ - 1, static_cast<std::uint64_t>(x) - 1);
  }
  // The share of draws that give `rank`.
  [[nodiscard]] double share(std::uint64_t rank) const {
    if (n_ == 1) return 1;
    const auto below = [this](double x) { return (std::pow(x, power_) - 1) / top_; };
    return below(static_cast<double>(rank) + 2) - below(static_cast<double>(rank) + 1);
  }

 private:
  std::uint64_t n_;
  double power_;
  double top_;
};

std::vector<std::uint32_t> shuffled(std::uint64_t n, Rng rng) {
  std::vector<std::uint32_t> ids(n);
  std::iota(ids.begin(), ids.end(), 0U);
  for (std::uint64_t i = n; i > 1; --i) std::swap(ids[i - 1], ids[rng.below(i)]);
  return ids;
}

// Adds `count` distinct ids to `out`, sorted.
void draw_distinct(const ZipfRanks& ranks, std::span<const std::uint32_t> ids, std::size_t count, Rng& rng,
                   std::vector<std::uint32_t>& out) {
  const std::size_t first = out.size();
  while (out.size() < first + count) {
    const std::uint32_t id = ids[ranks.draw(rng)];
    if (std::find(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), id) == out.end())
      out.push_back(id);
  }
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
}

struct OwnedBatch {
  std::vector<std::uint32_t> feature_begin = {0};
  std::vector<std::uint32_t> feature;
  std::vector<float> value;
  std::vector<std::uint32_t> label_begin = {0};
  std::vector<std::uint32_t> label;

  [[nodiscard]] data::Batch view() const {
    return {.features = {feature_begin, feature, value}, .labels = {label_begin, label}};
  }
};

struct StepRecords {
  std::vector<OwnedBatch> batches;
  sparse::LabelCounts labels;
};

class MadeSteps final : public sparse_engine::StepSource {
 public:
  explicit MadeSteps(const StepRecords& made) : made_(made) {}
  [[nodiscard]] data::Batch read(StepNumber step) override { return made_.batches[step.value].view(); }

 private:
  const StepRecords& made_;
};

StepRecords make_records(const BenchSparseStep& o) {
  constexpr std::uint64_t kTrainingRecords = 490'449;  // Amazon-670K's; sets how often a label occurs
  const ZipfRanks feature_ranks(o.features, o.feature_zipf);
  const ZipfRanks label_ranks(o.labels, o.label_zipf);
  const std::vector<std::uint32_t> features =
      shuffled(o.features, Rng(o.seed, Purpose::kSynthetic, UINT64_MAX));
  const std::vector<std::uint32_t> labels =
      shuffled(o.labels, Rng(o.seed, Purpose::kSynthetic, UINT64_MAX - 1));
  StepRecords made;
  made.labels.records = kTrainingRecords;
  made.labels.count.resize(o.labels);
  for (std::uint64_t rank = 0; rank < o.labels; ++rank) {
    const double expected =
        label_ranks.share(rank) * static_cast<double>(kTrainingRecords * o.labels_per_row);
    made.labels.count[labels[rank]] = static_cast<std::uint32_t>(
        std::clamp(std::round(expected), 1.0, static_cast<double>(kTrainingRecords)));
  }
  made.batches.resize(o.warmup + o.steps);
  for (std::size_t step = 0; step < made.batches.size(); ++step) {
    OwnedBatch& batch = made.batches[step];
    for (std::uint64_t i = 0; i < o.batch; ++i) {
      Rng rng(o.seed, Purpose::kSynthetic, step * o.batch + i);
      draw_distinct(feature_ranks, features, o.nnz, rng, batch.feature);
      draw_distinct(label_ranks, labels, o.labels_per_row, rng, batch.label);
      batch.feature_begin.push_back(static_cast<std::uint32_t>(batch.feature.size()));
      batch.label_begin.push_back(static_cast<std::uint32_t>(batch.label.size()));
    }
    // Unit length, as after tf-idf weighting.
    batch.value.assign(batch.feature.size(), static_cast<float>(1 / std::sqrt(static_cast<double>(o.nnz))));
  }
  return made;
}

Result<void> check(const run::NodeHost& host, const BenchSparseStep& o) {
  const settings::Keys& keys = bench_sparse_step_keys();
  if (o.nnz * 2 > o.features) {
    return keys.refused_word({"nnz", fmt::format("{} of {} features", o.nnz, o.features)},
                             "at most half of the features");
  }
  if (o.labels_per_row * 2 > o.labels) {
    return keys.refused_word({"labels_per_row", fmt::format("{} of {} labels", o.labels_per_row, o.labels)},
                             "at most half of the labels");
  }
  const sparse::TableMoments moments = sparse_engine::table_moments(o.moments);
  const std::uint64_t table_bytes =
      row_table_bytes({.rows = o.features, .width = o.hidden}, moments.embedding) +
      row_table_bytes({.rows = o.labels, .width = o.hidden}, moments.output);
  const std::uint64_t record_bytes = (o.warmup + o.steps) * o.batch * (8 * o.nnz + 4 * o.labels_per_row);
  const std::uint64_t needed = table_bytes + record_bytes + (std::uint64_t{256} << 20);
  return check_bench_memory(host, needed, "lower hidden, labels, features or steps");
}

// A progress bar redrawn between steps would be measured too; steps are short, so there is none.
BenchSparseStepResult measure(const run::NodeHost& host, const BenchSparseStep& o,
                              sparse_engine::StepSource& steps, sparse::Learner& learner) {
  constexpr sparse::StepSchedule kSchedule{.learning_rate = 0.001F};
  BenchSparseStepResult result;
  for (StepNumber t{0}; t.value < o.warmup; ++t) learner.step(steps.read(t), t, kSchedule);
  const Instant wall = host.clock.now();
  const Duration cpu = host.clock.process_cpu();
  for (StepNumber t{o.warmup}; t.value < o.warmup + o.steps; ++t) {
    const sparse::StepReport report = learner.step(steps.read(t), t, kSchedule);
    result.phases_ms += report.phases;
    result.active_rows += static_cast<double>(report.active_rows);
    result.unique_features += static_cast<double>(report.unique_features);
    result.loss = report.loss;
  }
  const auto n = static_cast<double>(o.steps);
  result.wall_ms_per_step = (host.clock.now() - wall).milliseconds() / n;
  result.cpu_ms_per_step = (host.clock.process_cpu() - cpu).milliseconds() / n;
  result.active_rows /= n;
  result.unique_features /= n;
  sparse::LearnerPhases& p = result.phases_ms;
  for (double* phase : {&p.select, &p.embed, &p.positives, &p.forward, &p.reduce, &p.weights, &p.dense,
                        &p.embedding, &p.waiting}) {
    *phase /= n;
  }
  return result;
}

}  // namespace

// Dense layers and moments are those of a training run, in its words.
const settings::KeyTable<BenchSparseStep>& bench_sparse_step_keys() {
  using settings::key;
  using B = BenchSparseStep;
  const auto rules = [](std::string_view name) { return sparse_engine::train_keys().find(name)->rules; };
  static const settings::KeyTable<B> table(
      {.listed_by = "gossamer bench sparse-step --help", .one = "an option"},
      {key<&B::features>("features", {.min = 1, .max = 4e9}, "rows of the embedding"),
       key<&B::nnz>("nnz", {.min = 1, .max = 65536}, "distinct features of a record"),
       key<&B::labels>("labels", {.min = 1, .max = 4e9}, "rows of the output"),
       key<&B::labels_per_row>("labels_per_row", {.min = 1, .max = 1024}, "distinct labels of a record"),
       key<&B::label_zipf>("label_zipf", {.max = 0.99}, "skew of the labels"),
       key<&B::feature_zipf>("feature_zipf", {.max = 0.99}, "skew of the features"),
       key<&B::hidden>("hidden", {.min = 16, .max = 4096, .multiple_of = 16}, "width of the hidden layer"),
       key<&B::batch>("batch", {.min = 1, .max = 65536}, "records in a step"),
       key<&B::sampled>("sampled", {.max = 16777216}, "negatives drawn in a step"),
       key<&B::shards>("shards", {.min = 1, .max = 65536}, "shards of the output, at least"),
       key<&B::steps>("steps", {.min = 1, .max = 1e9}, "steps that are measured"),
       key<&B::warmup>("warmup", {.max = 1e9}, "steps before them"),
       key<&B::seed>("seed", {.max = 9e15}, "names the made-up records"),
       key<&B::dense>("dense", rules("model.dense"), "widths of further hidden layers, such as 128,64"),
       key<&B::moments>("moments", rules("optimizer.moments"),
                        "element, embedding-block or block (optimizer.moments)"),
       key<&B::negatives>("negatives", {.choices = {"in-batch", "uniform", "frequency"}},
                          "in-batch, uniform or frequency; sampled > 0 alone means uniform")});
  return table;
}

Result<BenchSparseStepResult> bench_sparse_step(const run::NodeHost& host, const BenchSparseStep& options) {
  if (auto done = check(host, options); !done.ok()) return done.error();
  host.say(
      fmt::format("making {} records", run::human_count((options.warmup + options.steps) * options.batch)));
  const StepRecords made = make_records(options);
  const sparse::NetworkShape shape{.features = options.features,
                                   .labels = options.labels,
                                   .hidden = options.hidden,
                                   .dense = {options.dense.begin(), options.dense.end()}};
  const unsigned shift = sparse::shard_shift(shape.labels, options.shards);
  sparse::Network network(shape, whole(shape, shift), sparse_engine::table_moments(options.moments));
  network.order = sparse::RowOrder(made.labels.count, shift);
  const sparse::LabelCounts labels = sparse::by_row(made.labels, network.order);
  sparse::initialize(network, {.seed = options.seed}, labels.count, host.compute);
  MadeSteps made_steps(made);
  sparse_engine::RowSteps steps(made_steps, network.order);
  sparse::Learner learner({.network = network,
                           .labels = labels,
                           .kernels = host.kernels,
                           .compute = host.compute,
                           .clock = &host.clock},
                          {.batch_max = options.batch,
                           .negatives = {.kind = drawn(options), .sampled = options.sampled},
                           .seed = options.seed});
  host.say(fmt::format("measuring {} steps of {} records on {} threads", options.steps, options.batch,
                       host.compute.workers()));
  BenchSparseStepResult result = measure(host, options, steps, learner);
  result.parameters = sparse_engine::parameter_count(shape);
  result.peak_rss_bytes = host.compute.peak_rss_bytes();
  result.precision = kernels::name(learner.element());
  return result;
}

std::string to_json(const BenchSparseStepResult& result, const BenchSparseStep& options,
                    const run::NodeHost& host) {
  nlohmann::ordered_json json = {{"wall_ms_per_step", result.wall_ms_per_step},
                                 {"cpu_ms_per_step", result.cpu_ms_per_step}};
  const sparse::LearnerPhases& p = result.phases_ms;
  json["phases_ms"] = {{"select", p.select},   {"embed", p.embed},         {"positives", p.positives},
                       {"forward", p.forward}, {"reduce", p.reduce},       {"weights", p.weights},
                       {"dense", p.dense},     {"embedding", p.embedding}, {"waiting", p.waiting}};
  json["active_rows"] = result.active_rows;
  json["unique_features"] = result.unique_features;
  json["parameters"] = result.parameters;
  json["peak_rss_bytes"] = result.peak_rss_bytes;
  json["loss"] = result.loss;
  json["isa"] = kernels::name(host.kernels.isa);
  json["precision"] = result.precision;
  json["threads"] = host.compute.workers();
  BenchSparseStep measured = options;
  measured.negatives = drawn(options);
  json["options"] = bench_options_json(bench_sparse_step_keys().values(measured));
  return json.dump();
}

std::string to_text(const BenchSparseStepResult& r) {
  const sparse::LearnerPhases& p = r.phases_ms;
  return fmt::format(
      "{:.2f} ms a step, {:.2f} ms CPU; {:.0f} active rows, {:.0f} features, {} parameters, peak memory {}\n"
      "phases (ms): select {:.2f}, embed {:.2f}, positives {:.2f}, forward {:.2f}, reduce {:.2f}, weights "
      "{:.2f}, "
      "dense {:.2f}, embedding {:.2f}, waiting {:.2f}\n",
      r.wall_ms_per_step, r.cpu_ms_per_step, r.active_rows, r.unique_features, run::human_count(r.parameters),
      human_bytes(r.peak_rss_bytes), p.select, p.embed, p.positives, p.forward, p.reduce, p.weights, p.dense,
      p.embedding, p.waiting);
}

}  // namespace gossamer::commands
