// SPDX-License-Identifier: Apache-2.0
//
// What the keys of negatives say together: contradictions, the sizes of hash tables that were left to the
// program, and the options of the learner's parts.
//
// Sizes: tables take at most a quarter of the output layer's weights, or 1 MiB where that is more. What the
// user leaves open is chosen to fit; what does not fit is refused. A bucket holds about 128 rows, as SLIDE's
// do.
//
// Thread rule: pure functions on plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/sparse/config.h"
#include "learn/sparse/hash_negatives.h"
#include "learn/sparse/negatives.h"

namespace gossamer::engine {

// Whether a run has hash tables at some time.
[[nodiscard]] bool finds_negatives(const TrainConfig& config);

// kUsage where keys of negatives contradict each other.
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

// For an output layer of labels x hidden. kUsage when what the user asks for takes more than a quarter of the
// weights.
[[nodiscard]] Result<PlannedTables> plan_tables(const HashConfig& config, std::uint64_t labels,
                                                std::uint64_t hidden);

// Bytes that tables of this plan take at most with what their building, asking and saving needs.
[[nodiscard]] std::uint64_t table_memory(const TablePlan& plan, std::uint64_t labels, int workers);
// Bytes of their sections in a checkpoint.
[[nodiscard]] std::uint64_t table_checkpoint_bytes(const TablePlan& plan, std::uint64_t labels);

[[nodiscard]] sparse::NegativeOptions negative_options(const TrainConfig& config);
// Requires finds_negatives(config). `steps` of the whole run.
[[nodiscard]] sparse::HashNegativeOptions hash_negative_options(const TrainConfig& config,
                                                                const TablePlan& plan, std::uint64_t steps);

}  // namespace gossamer::engine
