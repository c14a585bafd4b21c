// SPDX-License-Identifier: Apache-2.0
//
// The keys of negatives taken together: contradictions, sizes of hash tables that are left to the program,
// options of the learner's parts.
//
// Tables take at most a quarter of the output layer's weights, or 1 MiB if that is more. Sizes that the user
// leaves open are chosen to fit, and given sizes that do not fit are refused. A bucket holds about 128 rows,
// as SLIDE's do.
//
// Thread rule: pure functions on plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/sparse/config/config.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/negatives/negatives.h"

namespace gossamer::sparse_engine {

// Whether a run has hash tables at some time.
[[nodiscard]] bool finds_negatives(const TrainConfig& config);

// The error is kUsage if keys of negatives contradict each other.
[[nodiscard]] Result<void> check_negatives(const TrainConfig& config);

struct TablePlan {
  std::uint32_t functions = 0;  // K
  std::uint32_t tables = 0;     // L
  std::uint32_t key_bits = 0;
  bool operator==(const TablePlan&) const = default;
};

struct PlannedTables {
  TablePlan plan;
  std::vector<std::string> reasons;  // a line for each chosen value
};

// Plans tables for an output layer of labels x hidden. The error is kUsage when the user's sizes take more
// than a quarter of the weights.
[[nodiscard]] Result<PlannedTables> plan_tables(const HashConfig& config, std::uint64_t labels,
                                                std::uint64_t hidden);

// The most bytes that tables of this plan take, including those for building, asking and saving.
[[nodiscard]] std::uint64_t table_memory(const TablePlan& plan, std::uint64_t labels, int workers);
// The bytes of their sections in a checkpoint.
[[nodiscard]] std::uint64_t table_checkpoint_bytes(const TablePlan& plan, std::uint64_t labels);

[[nodiscard]] sparse::NegativeOptions negative_options(const TrainConfig& config);
// Requires finds_negatives(config). `steps` are those of the whole run.
[[nodiscard]] sparse::HashNegativeOptions hash_negative_options(const TrainConfig& config,
                                                                const TablePlan& plan, std::uint64_t steps);

}  // namespace gossamer::sparse_engine
