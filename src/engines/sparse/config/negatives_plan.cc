// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/negatives_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <utility>

#include "learn/lsh/bucket_block.h"
#include "learn/lsh/tables.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::uint32_t kMostTables = 50;
constexpr std::uint32_t kFewestTables = 4;
constexpr std::uint32_t kMostKeyBits = 16;   // limit of HashNegatives
constexpr std::uint32_t kMostCodeBits = 32;  // limit of lsh::HashFamily
constexpr double kRowsInBucket = 128;
constexpr std::uint64_t kFreeBytes = std::uint64_t{1} << 20;
constexpr std::uint32_t kWinnerBits = 3;  // of a function, which gives the place in a window of 8

std::uint32_t bits_of(sparse::HashKind family) {
  return family == sparse::HashKind::kWinner ? kWinnerBits : 1;
}

std::uint32_t wanted_functions(sparse::HashKind family, std::uint64_t labels) {
  const double bits = std::log2(std::max(1.0, static_cast<double>(labels) / kRowsInBucket));
  const double each = bits_of(family);
  return static_cast<std::uint32_t>(std::clamp(std::round(bits / each), 1.0, std::floor(16 / each)));
}

bool fits(const TablePlan& plan, std::uint64_t labels, std::uint64_t hidden) {
  const std::uint64_t limit = std::max(kFreeBytes, labels * hidden * sizeof(float) / 4);
  return lsh::most_table_bytes({.rows = labels, .tables = plan.tables, .key_bits = plan.key_bits}) <= limit;
}

Error usage(std::string_view where, std::string what, std::string got, std::string expected,
            std::string fix) {
  return {.kind = ErrorKind::kUsage,
          .where = std::string(where),
          .what = std::move(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = std::move(fix)};
}

Result<void> check_own_sets(const TrainConfig& config) {
  if (config.train.negatives != sparse::Negatives::kLsh || config.loss.logq != sparse::LogQ::kNone ||
      config.lsh.queries < config.train.batch) {
    return usage("lsh.sets", "samples cannot have sets of their own",
                 "lsh.sets = own beside other keys that need a shared set",
                 "train.negatives = lsh, loss.logq = none and lsh.queries >= train.batch",
                 "set those, or lsh.sets=shared");
  }
  return {};
}

}  // namespace

bool finds_negatives(const TrainConfig& config) {
  return config.train.negatives == sparse::Negatives::kLsh || config.train.hard_negatives > 0;
}

Result<void> check_negatives(const TrainConfig& config) {
  const TrainingConfig& train = config.train;
  if (train.negatives != sparse::Negatives::kInBatch && train.sampled == 0) {
    return usage("train.negatives", "no negatives would be drawn", "train.sampled = 0",
                 "train.sampled >= 1 with any train.negatives but in-batch",
                 "set train.sampled, for example to 2048");
  }
  if (train.negatives == sparse::Negatives::kInBatch && train.sampled > 0) {
    return usage("train.sampled", "nothing would be drawn",
                 fmt::format("{} with train.negatives = in-batch", train.sampled),
                 "train.negatives = uniform, frequency or lsh with train.sampled > 0",
                 "set train.negatives=uniform, or leave train.sampled out");
  }
  if (train.negatives == sparse::Negatives::kInBatch && train.batch == 1 && train.hard_negatives == 0) {
    return usage("train.batch", "a record alone in its step has no wrong label to learn from",
                 "1 with train.negatives = in-batch", "train.batch >= 2, or labels that are drawn or found",
                 "raise train.batch, or set train.negatives=uniform with train.sampled, for example 2048");
  }
  if (train.negatives == sparse::Negatives::kLsh && train.hard_negatives > 0) {
    return usage("train.hard_negatives", "hash tables would be asked for twice",
                 fmt::format("{} with train.negatives = lsh", train.hard_negatives), "one of the two",
                 "leave out train.hard_negatives, or set train.negatives=in-batch");
  }
  if (!finds_negatives(config)) return {};
  if (config.lsh.sets == sparse::HashSets::kOwn) return check_own_sets(config);
  const bool draws =
      train.negatives == sparse::Negatives::kUniform || train.negatives == sparse::Negatives::kFrequency;
  if (config.loss.logq == sparse::LogQ::kExact && !draws && config.lsh.queries + 1 >= train.batch) {
    return usage("lsh.queries", "labels that no asking sample brings would have no chance",
                 fmt::format("{} of {} samples ask, nothing is drawn, loss.logq = exact", config.lsh.queries,
                             train.batch),
                 "samples that do not ask, or drawn labels",
                 "lower lsh.queries, or set train.negatives=uniform with train.sampled and "
                 "train.hard_negatives");
  }
  return {};
}

Result<PlannedTables> plan_tables(const HashConfig& config, std::uint64_t labels, std::uint64_t hidden) {
  PlannedTables out;
  TablePlan& plan = out.plan;
  plan.functions = config.functions.value_or(wanted_functions(config.family, labels));
  const std::uint32_t code_bits = plan.functions * bits_of(config.family);
  if (code_bits > kMostCodeBits) {
    const std::uint32_t most = kMostCodeBits / bits_of(config.family);
    return usage("lsh.functions", "codes of the hash tables would be too long",
                 fmt::format("{} functions of {} bits each", plan.functions, bits_of(config.family)),
                 fmt::format("at most {} with this lsh.family", most),
                 "set lsh.functions=auto, or a smaller number");
  }
  plan.tables = config.tables.value_or(kMostTables);
  plan.key_bits = config.key_bits.value_or(std::min(code_bits, kMostKeyBits));
  if (!config.functions) {
    out.reasons.push_back(fmt::format("lsh.functions = {}: buckets of about {:.0f} of {} labels",
                                      plan.functions,
                                      std::exp2(std::log2(static_cast<double>(labels)) - code_bits), labels));
  }
  constexpr std::string_view kQuarter = "more would take over a quarter of the weights' memory";
  while (!config.tables && plan.tables > kFewestTables && !fits(plan, labels, hidden)) --plan.tables;
  if (!config.tables) {
    out.reasons.push_back(fmt::format("lsh.tables = {}: {}", plan.tables,
                                      plan.tables < kMostTables ? kQuarter : "as many as SLIDE has"));
  }
  while (!config.key_bits && plan.key_bits > 1 && !fits(plan, labels, hidden)) --plan.key_bits;
  if (!config.key_bits && plan.key_bits < code_bits) {
    out.reasons.push_back(fmt::format("lsh.key_bits = {} of {}: {}", plan.key_bits, code_bits, kQuarter));
  }
  if (fits(plan, labels, hidden)) return out;
  TablePlan smaller = plan;
  while (smaller.tables > 1 && !fits(smaller, labels, hidden)) --smaller.tables;
  return usage("lsh.tables", "the hash tables would take more than a quarter of the weights' memory",
               fmt::format("{} tables with keys of {} bits for {} labels at model.hidden = {}", plan.tables,
                           plan.key_bits, labels, hidden),
               fmt::format("for example lsh.tables = {}", smaller.tables),
               "set lsh.tables=auto and lsh.key_bits=auto");
}

std::uint64_t table_checkpoint_bytes(const TablePlan& plan, std::uint64_t labels) {
  return labels * (plan.tables * sizeof(std::uint16_t) + sizeof(float));
}

std::uint64_t table_memory(const TablePlan& plan, std::uint64_t labels, int workers) {
  const auto w = static_cast<std::uint64_t>(workers);
  const std::uint64_t block = std::min<std::uint64_t>(labels, lsh::kBlockRows);
  const std::uint64_t building = (plan.tables + w) * block * sizeof(std::uint32_t);
  // A query counts for each label how many tables support it, and can have all labels as one bucket's.
  const std::uint64_t asking = w * labels * (sizeof(std::uint16_t) + sizeof(std::uint32_t));
  return lsh::most_table_bytes({.rows = labels, .tables = plan.tables, .key_bits = plan.key_bits}) +
         building + asking + table_checkpoint_bytes(plan, labels);
}

sparse::NegativeOptions negative_options(const TrainConfig& config) {
  return {.kind = config.train.negatives,
          .sampled = config.train.sampled,
          .exponent = config.train.frequency_exponent};
}

sparse::HashNegativeOptions hash_negative_options(const TrainConfig& config, const TablePlan& plan,
                                                  std::uint64_t steps) {
  const HashConfig& lsh = config.lsh;
  const bool always = config.train.negatives == sparse::Negatives::kLsh;
  const double after = config.train.hard_after * static_cast<double>(steps);
  return {.kind = lsh.family,
          .functions = plan.functions,
          .tables = plan.tables,
          .key_bits = plan.key_bits,
          .selection = lsh.select,
          .sets = lsh.sets,
          .queries = std::min(lsh.queries, config.train.batch),
          .found = always ? config.train.sampled : config.train.hard_negatives,
          .bucket_cap = lsh.bucket,
          .tolerance = lsh.tolerance,
          .first_step = always ? 0 : static_cast<std::uint64_t>(after),
          .update_every = lsh.update_every,
          .update_growth = lsh.update_growth,
          .seed = config.seed};
}

}  // namespace gossamer::sparse_engine
