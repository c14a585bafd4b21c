// SPDX-License-Identifier: Apache-2.0
//
// bench sparse-search: what it costs to find the labels with the highest scores among all of them, exactly
// (engines/sparse/predict/row_search.h), on made-up rows and queries. The defaults are the shape of
// Amazon-670K.
//
//   row     independent normal elements, scaled to a length that is log-uniform in 0.15..6: the middle 98 %
//           of the lengths that training left on acl-authors (102,869 labels, width 256)
//   bias    normal, standard deviation 0.2
//   query   independent normal elements, negative ones cut to 0, as ReLU leaves a hidden layer
//
// Blocks of `batch` queries come first, then queries alone. One block before them is not measured. Rows are
// rounded to bytes before the clock starts. A row depends on its number and the seed only.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "run/node_host.h"
#include "settings/key_table.h"

namespace gossamer::commands {

struct BenchSparseSearch {
  std::uint64_t labels = 670'091;
  std::uint64_t hidden = 128;
  std::uint64_t top = 5;      // rows that are found for each query
  std::uint64_t batch = 256;  // queries of a block
  std::uint64_t queries = 1024;
  std::uint64_t singles = 25;  // queries that are searched alone
  std::uint64_t seed = 1;
};

[[nodiscard]] const settings::KeyTable<BenchSparseSearch>& bench_sparse_search_keys();

struct BenchSparseSearchResult {
  double wall_ms_per_query = 0;  // in blocks: mean
  double cpu_ms_per_query = 0;   // all workers together
  double single_wall_ms = 0;     // a query alone: median
  double single_cpu_ms = 0;      // mean
  // Fraction of the rows that were multiplied for the last block. The others are too short to matter.
  double screened = 0;
  // Mean of the scores found in blocks; the same for any number of workers.
  double score = 0;
  std::uint64_t peak_rss_bytes = 0;
};

// kFailed when the machine has too little memory.
[[nodiscard]] Result<BenchSparseSearchResult> bench_sparse_search(const run::NodeHost& host,
                                                                  const BenchSparseSearch& options);

// The result with the options it was measured at.
[[nodiscard]] std::string to_json(const BenchSparseSearchResult& result, const BenchSparseSearch& options,
                                  const run::NodeHost& host);

}  // namespace gossamer::commands
