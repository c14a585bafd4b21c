// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_sparse_search.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "base/rng.h"
#include "commands/bench/bench_options.h"
#include "engines/sparse/predict/row_search.h"
#include "kernels/products.h"

namespace gossamer::commands {
namespace {

using sparse_engine::kQueryBlock;

struct SearchInputs {
  std::size_t stride;
  AlignedArray<float> rows;  // [labels], `stride` apart
  AlignedArray<float> bias;
  AlignedArray<float> queries;  // [queries], `stride` apart; those alone are the first once more
};

// A row's stream is its number; queries count down from the largest.
SearchInputs make_rows_and_queries(const BenchSparseSearch& o, host::Compute& compute) {
  constexpr double kShortest = 0.15;
  constexpr double kLongest = 6;
  const std::size_t stride = kernels::padded_to_panel(o.hidden);
  SearchInputs made{.stride = stride,
                    .rows = AlignedArray<float>(o.labels * stride),
                    .bias = AlignedArray<float>(o.labels),
                    .queries = AlignedArray<float>(o.queries * stride)};
  compute.run([&](int w) {
    const host::Range range = host::worker_range(o.labels, w, compute.workers());
    for (std::size_t r = range.begin; r < range.end; ++r) {
      Rng rng(o.seed, Purpose::kSynthetic, r);
      const std::span row = made.rows.span().subspan(r * stride, o.hidden);
      double squares = 0;
      for (float& x : row) {
        x = rng.normal();
        squares += static_cast<double>(x) * static_cast<double>(x);
      }
      const double length = kShortest * std::pow(kLongest / kShortest, static_cast<double>(rng.uniform()));
      const auto scale = static_cast<float>(length / std::sqrt(std::max(squares, 1e-30)));
      for (float& x : row) x *= scale;
      made.bias[r] = 0.2F * rng.normal();
    }
  });
  for (std::size_t q = 0; q < o.queries; ++q) {
    Rng rng(o.seed, Purpose::kSynthetic, UINT64_MAX - q);
    for (float& x : made.queries.span().subspan(q * stride, o.hidden)) x = std::max(0.0F, rng.normal());
  }
  return made;
}

Result<void> check(const run::NodeHost& host, const BenchSparseSearch& o) {
  const std::uint64_t stride = kernels::padded_to_panel(o.hidden);
  const std::uint64_t needed =
      o.labels * (sizeof(float) * stride + o.hidden + 20) + o.queries * stride * sizeof(float);
  return check_bench_memory(host, needed, "lower hidden, labels or queries");
}

struct Found {
  double sum = 0;
  std::uint64_t count = 0;
};

void search_block(sparse_engine::RowSearch& search, const sparse_engine::QueryMatrix& block, std::size_t top,
                  Found& found) {
  search.search(block, top);
  for (std::size_t q = 0; q < block.count; ++q) {
    for (const sparse_engine::Scored& row : search.found(q)) found.sum += static_cast<double>(row.score);
    found.count += search.found(q).size();
  }
}

void measure_blocks(const run::NodeHost& host, const BenchSparseSearch& o, const SearchInputs& made,
                    sparse_engine::RowSearch& search, BenchSparseSearchResult& result) {
  const auto block = [&](std::size_t first) {
    return sparse_engine::QueryMatrix{.values = made.queries.data() + first * made.stride,
                                      .stride = made.stride,
                                      .count = std::min<std::size_t>(o.batch, o.queries - first)};
  };
  Found found;
  search_block(search, block(0), o.top, found);  // buffers grow
  found = {};
  const Instant wall = host.clock.now();
  const Duration cpu = host.clock.process_cpu();
  for (std::size_t first = 0; first < o.queries; first += o.batch) {
    search_block(search, block(first), o.top, found);
  }
  const auto queries = static_cast<double>(o.queries);
  result.wall_ms_per_query = (host.clock.now() - wall).milliseconds() / queries;
  result.cpu_ms_per_query = (host.clock.process_cpu() - cpu).milliseconds() / queries;
  result.screened = search.screened_share();
  result.score = found.count == 0 ? 0 : found.sum / static_cast<double>(found.count);
}

void measure_singles(const run::NodeHost& host, const BenchSparseSearch& o, const SearchInputs& made,
                     sparse_engine::RowSearch& search, BenchSparseSearchResult& result) {
  std::vector<double> wall_ms(o.singles);
  const Duration cpu = host.clock.process_cpu();
  for (std::size_t i = 0; i < o.singles; ++i) {
    const Instant begin = host.clock.now();
    search.search(
        {.values = made.queries.data() + i % o.queries * made.stride, .stride = made.stride, .count = 1},
        o.top);
    wall_ms[i] = (host.clock.now() - begin).milliseconds();
  }
  result.single_cpu_ms = (host.clock.process_cpu() - cpu).milliseconds() / static_cast<double>(o.singles);
  const auto middle = wall_ms.begin() + static_cast<std::ptrdiff_t>(o.singles / 2);
  std::nth_element(wall_ms.begin(), middle, wall_ms.end());
  result.single_wall_ms = *middle;
}

}  // namespace

const settings::KeyTable<BenchSparseSearch>& bench_sparse_search_keys() {
  using settings::key;
  using B = BenchSparseSearch;
  static const settings::KeyTable<B> table(
      {.listed_by = "gossamer bench sparse-search --help", .one = "an option"},
      {key<&B::labels>("labels", {.min = 1, .max = 4e9}, "rows that are searched"),
       key<&B::hidden>("hidden", {.min = 16, .max = 4096, .multiple_of = 16}, "width of a row"),
       key<&B::top>("top", {.min = 1, .max = 1000}, "rows that are found for a query"),
       key<&B::batch>("batch", {.min = 1, .max = static_cast<double>(kQueryBlock)}, "queries of a block"),
       key<&B::queries>("queries", {.min = 1, .max = 1e6}, "queries that are measured in blocks"),
       key<&B::singles>("singles", {.min = 1, .max = 1e6}, "queries that are measured alone"),
       key<&B::seed>("seed", {.max = 9e15}, "names the made-up rows and queries")});
  return table;
}

Result<BenchSparseSearchResult> bench_sparse_search(const run::NodeHost& host,
                                                    const BenchSparseSearch& options) {
  if (auto done = check(host, options); !done.ok()) return done.error();
  host.say(fmt::format("making {} rows", run::human_count(options.labels)));
  const SearchInputs made = make_rows_and_queries(options, host.compute);
  sparse_engine::RowSearch search({.rows = options.labels,
                                   .width = options.hidden,
                                   .weights = made.rows.data(),
                                   .stride = made.stride,
                                   .bias = made.bias.data()},
                                  host.kernels, host.compute);
  host.say(fmt::format("searching for {} queries in blocks of {} and {} alone, on {} threads",
                       options.queries, options.batch, options.singles, host.compute.workers()));
  BenchSparseSearchResult result;
  measure_blocks(host, options, made, search, result);
  measure_singles(host, options, made, search, result);
  result.peak_rss_bytes = host.compute.peak_rss_bytes();
  return result;
}

std::string to_json(const BenchSparseSearchResult& result, const BenchSparseSearch& options,
                    const run::NodeHost& host) {
  nlohmann::ordered_json json = {{"wall_ms_per_query", result.wall_ms_per_query},
                                 {"cpu_ms_per_query", result.cpu_ms_per_query},
                                 {"single_wall_ms", result.single_wall_ms},
                                 {"single_cpu_ms", result.single_cpu_ms},
                                 {"screened", result.screened},
                                 {"score", result.score},
                                 {"peak_rss_bytes", result.peak_rss_bytes},
                                 {"isa", kernels::name(host.kernels.isa)},
                                 {"threads", host.compute.workers()}};
  json["options"] = bench_options_json(bench_sparse_search_keys().values(options));
  return json.dump();
}

}  // namespace gossamer::commands
