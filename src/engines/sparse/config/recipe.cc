// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "learn/data/hold_out.h"
#include "learn/sparse/network/row_table.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::uint32_t kDefaultHidden = 256;
constexpr double kDefaultDropout = 0.35;
constexpr std::uint64_t kFloat = 4;

// Small sets need more passes to be learnt. Large ones show every label often enough in fewer.
constexpr double kMostEpochs = 7;
constexpr double kFewestEpochs = 2;
constexpr double kFullEpochRecords = 100'000;
// Sets of a few thousand records are not learnt before a few hundred steps.
constexpr double kFewestSteps = 400;
constexpr double kMostEpochsOfFew = 50;

// What prediction needs is learnt on so many records. Training misses them less the more records there are.
struct HeldOutShare {
  std::uint64_t divisor;
  std::uint64_t most;
};
constexpr std::uint64_t kFewestToHoldOut = 2'000;
constexpr HeldOutShare kForTheFusion = {.divisor = 20,
                                        .most = 2'000};  // six weights; all become training rows
constexpr HeldOutShare kForCalibration = {.divisor = 50,
                                          .most = 1'000};  // three numbers; the records are lost

std::uint64_t held_out_for(const TrainConfig& config, const DataShape& shape) {
  if (config.data.format == data::RecordFormat::kText) return 0;  // windows are no answers to be judged
  const PredictConfig& predict = config.predict;
  const auto weights = predict.given_weights();
  const bool all_given =
      std::ranges::all_of(weights, [](const std::optional<double>& given) { return given.has_value(); });
  if (config.predict.held_out) return std::min<std::uint64_t>(*config.predict.held_out, shape.records / 2);
  if (shape.records < kFewestToHoldOut || (predict.instances && all_given)) return 0;
  const HeldOutShare& share = predict.instances ? kForTheFusion : kForCalibration;
  return std::min(shape.records / share.divisor, share.most);
}

double epochs_for(std::uint64_t records, double batch) {
  const auto n = static_cast<double>(std::max<std::uint64_t>(records, 1));
  const double usual =
      std::clamp(std::round(kMostEpochs * std::sqrt(kFullEpochRecords / n)), kFewestEpochs, kMostEpochs);
  return std::max(usual, std::min(std::round(kFewestSteps * batch / n), kMostEpochsOfFew));
}

// The step of a row's last update is kept in 32 bits (learn/sparse/network/adam.h).
Result<void> check_steps(const TrainConfig& config, std::uint64_t steps) {
  constexpr std::uint64_t kMostSteps = 0xFFFF'FFFF;
  if (steps <= kMostSteps) return {};
  return Error{.kind = ErrorKind::kUsage,
               .where = config.train.steps > 0 ? "train.steps" : "train.epochs",
               .what = "the run has too many steps",
               .got = fmt::format("{} steps", steps),
               .expected = fmt::format("at most {}", kMostSteps),
               .fix = "take fewer, or a larger train.batch"};
}

Result<void> check_trainable(const DataShape& shape) {
  const auto refuse = [](std::string got, std::string expected) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = "data.train",
                 .what = "nothing to train on",
                 .got = std::move(got),
                 .expected = std::move(expected),
                 .fix =
                     "check the file, or import it and look: gossamer data import KIND FILE --out DIR; "
                     "gossamer data inspect DIR"};
  };
  if (shape.records == 0) return refuse("no records", "at least one");
  if (shape.feature_entries == 0) return refuse("records without any feature", "features in some records");
  if (shape.label_entries == 0) return refuse("records without any label", "labels in some records");
  return {};
}

// Instances have numbers of 32 bits for where a record begins.
Result<void> check_instances(const TrainConfig& config, const DataShape& shape) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (!config.predict.instances || (shape.feature_entries <= kMost && shape.label_entries <= kMost))
    return {};
  return Error{.kind = ErrorKind::kUsage,
               .where = "predict.instances",
               .what = "a model cannot keep so many records",
               .got = fmt::format("true with {} features and {} labels of all records together",
                                  shape.feature_entries, shape.label_entries),
               .expected = fmt::format("at most {} of each", kMost),
               .fix = "set predict.instances=false: answers come from the network alone"};
}

// The width of the layer that the output sees.
std::uint64_t last_hidden(const Recipe& recipe) {
  return recipe.dense.empty() ? recipe.hidden : recipe.dense.back();
}

// Numbers in weights and biases of the dense layers, rows padded to strides.
std::uint64_t dense_numbers(const Recipe& recipe) {
  std::uint64_t numbers = 0;
  std::uint64_t inputs = recipe.hidden;
  for (const std::uint64_t units : recipe.dense) {
    numbers += units * sparse::row_stride(inputs) + sparse::row_stride(units);
    inputs = units;
  }
  return numbers;
}

// Bytes of moments and last steps, for the tables, the biases and the dense layers.
std::uint64_t moment_bytes(const TrainConfig& config, const Recipe& recipe, std::uint64_t features,
                           std::uint64_t labels) {
  const sparse::TableMoments moments = table_moments(config.optimizer.moments);
  const auto of_table = [](sparse::Moments kept, const sparse::RowTableShape& table) {
    return row_table_bytes(table, kept) - row_table_bytes(table, sparse::Moments::kNone);
  };
  return of_table(moments.embedding, {.rows = features, .width = recipe.hidden}) +
         of_table(moments.output, {.rows = labels, .width = last_hidden(recipe)}) +
         2 * kFloat * (labels + dense_numbers(recipe));
}

}  // namespace

DataShape shape_of(const data::Schema& schema) {
  return {.records = schema.size(),
          .features = schema.features(),
          .labels = schema.labels(),
          .feature_entries = schema.feature_entries(),
          .label_entries = schema.label_entries()};
}

sparse::NetworkShape network_shape(const Recipe& recipe, std::uint32_t features, std::uint32_t labels) {
  return {.features = features,
          .labels = labels,
          .hidden = recipe.hidden,
          .dense = {recipe.dense.begin(), recipe.dense.end()}};
}

std::uint64_t parameter_count(const sparse::NetworkShape& shape) {
  std::uint64_t count = shape.features * shape.hidden + shape.labels * (shape.last_hidden() + 1);
  std::uint64_t inputs = shape.hidden;
  for (const std::uint64_t units : shape.dense) {
    count += units * (inputs + 1);
    inputs = units;
  }
  return count;
}

sparse::TableMoments table_moments(MomentsKind kind) {
  using enum sparse::Moments;
  // In the order of the words that users write.
  constexpr std::array kTables = {sparse::TableMoments{.embedding = kElement, .output = kElement},
                                  sparse::TableMoments{.embedding = kBlock, .output = kElement},
                                  sparse::TableMoments{.embedding = kBlock, .output = kBlock}};
  return kTables[static_cast<std::size_t>(kind)];
}

Result<Recipe> derive_recipe(const TrainConfig& config, const DataShape& shape) {
  if (auto good = check_trainable(shape); !good.ok()) return good.error();
  if (auto good = check_instances(config, shape); !good.ok()) return good.error();
  Recipe recipe;
  const auto because = [&recipe](std::string_view key, const auto& value, std::string_view reason) {
    recipe.reasons.push_back(fmt::format("{} = {}: {}", key, value, reason));
  };
  recipe.hidden = config.model.hidden.value_or(kDefaultHidden);
  if (!config.model.hidden)
    because("model.hidden", recipe.hidden, "wider gained less than it cost on validation data");
  recipe.dense = config.model.dense;
  recipe.dropout = config.model.dropout.value_or(kDefaultDropout);
  if (!config.model.dropout)
    because("model.dropout", recipe.dropout, "best on validation data of several sizes");

  recipe.held_out = held_out_for(config, shape);
  if (!config.predict.held_out && config.data.format != data::RecordFormat::kText) {
    const char* used = config.predict.instances ? "the weights of prediction are learnt on them"
                                                : "they tell how likely answers are right";
    because(
        "predict.held_out", recipe.held_out,
        recipe.held_out > 0 ? used : "too few records to spare any, or all weights of prediction are given");
  }
  const std::uint64_t records = data::HoldOut(shape.records, recipe.held_out).kept();
  const double batch = config.train.batch;
  const double epochs = config.train.epochs.value_or(epochs_for(shape.records, batch));
  const double steps = std::ceil(epochs * static_cast<double>(records) / batch);
  recipe.steps = config.train.steps > 0 ? config.train.steps
                                        : std::max<std::uint64_t>(1, static_cast<std::uint64_t>(steps));
  if (auto good = check_steps(config, recipe.steps); !good.ok()) return good.error();
  if (!config.train.epochs && config.train.steps == 0) {
    because("train.epochs", epochs, fmt::format("{} records; {} steps of {}", records, recipe.steps, batch));
  }
  if (finds_negatives(config)) {
    auto planned = plan_tables(config.lsh, shape.labels, static_cast<std::uint32_t>(last_hidden(recipe)));
    if (!planned.ok()) return planned.error();
    recipe.tables = planned->plan;
    recipe.reasons.insert(recipe.reasons.end(), planned->reasons.begin(), planned->reasons.end());
  }
  return recipe;
}

std::uint64_t active_rows(const TrainConfig& config, const DataShape& shape) {
  const double labels_a_record =
      static_cast<double>(shape.label_entries) / static_cast<double>(shape.records);
  const auto positives = static_cast<std::uint64_t>(std::ceil(labels_a_record * config.train.batch));
  const std::uint64_t further = std::uint64_t{config.train.sampled} + config.train.hard_negatives;
  return std::min<std::uint64_t>(shape.labels, positives + further);
}

std::uint64_t memory_needed(const TrainConfig& config, const Recipe& recipe, const DataShape& shape,
                            const RunProcess& process) {
  const std::uint64_t first = sparse::row_stride(recipe.hidden);
  const std::uint64_t stride = sparse::row_stride(last_hidden(recipe));
  const std::uint64_t dense = dense_numbers(recipe);
  // Weights, biases, and counts of labels, by label and by row.
  const std::uint64_t weights = (shape.features * first + shape.labels * (stride + 3) + dense) * kFloat;
  const std::uint64_t moments = moment_bytes(config, recipe, shape.features, shape.labels);
  // The table from which negatives are drawn, with the memory for making it.
  const std::uint64_t drawn = config.train.sampled > 0 ? shape.labels * std::uint64_t{24} : 0;
  const std::uint64_t active = active_rows(config, shape) + 128;  // each has a score for each sample
  const std::uint64_t hashing =
      recipe.tables ? table_memory(*recipe.tables, shape.labels, process.workers) : 0;
  std::uint64_t widths = first + (recipe.dense.empty() ? 0 : first);
  for (const std::uint32_t units : recipe.dense) widths += 2 * sparse::row_stride(units);
  const std::uint64_t step =
      (active * config.train.batch + widths * config.train.batch * 8 + 2 * dense) * kFloat;
  const std::uint64_t instances =
      config.predict.instances
          ? shape.feature_entries * 8 + shape.label_entries * 4 + shape.records * (stride * 2 + 8)
          : 0;
  const std::uint64_t training = process.steps_elsewhere ? 0 : moments + drawn + step + hashing;
  // Moments and the step's buffers are gone when the model is assembled.
  return weights + std::max(training, instances + process.prediction_bytes) + (std::uint64_t{64} << 20);
}

DiskNeeded disk_needed(const TrainConfig& config, const Recipe& recipe, const data::Schema& schema) {
  constexpr std::uint64_t kHeaders = std::uint64_t{16} << 10;
  const std::uint64_t features = schema.features();
  const std::uint64_t labels = schema.labels();
  const std::uint64_t hidden = last_hidden(recipe);
  DiskNeeded needed;
  const std::uint64_t numbers = features * sparse::row_stride(recipe.hidden) +
                                labels * (sparse::row_stride(hidden) + 1) + dense_numbers(recipe);
  needed.last_checkpoint = kFloat * numbers + kHeaders;
  needed.checkpoint = needed.last_checkpoint + moment_bytes(config, recipe, features, labels);
  if (recipe.tables) needed.checkpoint += table_checkpoint_bytes(*recipe.tables, labels);
  // Weights, bias, counts of labels, idf of features.
  needed.model =
      4 * (features * recipe.hidden + labels * hidden + dense_numbers(recipe) + 2 * labels + features) +
      kHeaders;
  if (schema.has_label_names()) {
    for (std::uint32_t l = 0; l < labels; ++l) needed.model += 8 + schema.label_name(l).size();
  }
  // In text, features have their document frequency beside them.
  if (schema.has_feature_names()) {
    for (std::uint32_t f = 0; f < features; ++f) needed.model += 12 + schema.feature_name(f).size();
  }
  if (config.predict.instances) {
    needed.model += 8 * schema.feature_entries() + 4 * schema.label_entries() + 8 * schema.size() +
                    2 * schema.size() * hidden;
  }
  return needed;
}

}  // namespace gossamer::sparse_engine
