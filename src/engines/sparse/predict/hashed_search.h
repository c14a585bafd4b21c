// SPDX-License-Identifier: Apache-2.0
//
// HashedSearch: finds rows of the output layer with high scores for each query of a query block, without a
// look at every row. Hash tables over the rows (learn/lsh, by angle; sizes by plan_tables) name the kRescored
// rows that most tables support. These are scored exactly. So the rows it finds are right, but it may miss
// rows that RowSearch would find. How many is measured, not promised (Predictor::recall).
//
// Borrows network, kernels and Compute for its life. Owner: one thread, which also owns the Compute; queries
// are shared out over its workers. The result depends on network and query alone. Memory: at most a quarter
// of the rows' memory, and 2 bytes a row and worker.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engines/sparse/model/ranking.h"
#include "engines/sparse/predict/row_search.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/lsh/bucket_query.h"
#include "learn/lsh/hash_family.h"
#include "learn/lsh/tables.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {

inline constexpr std::size_t kRescored = 2048;

class HashedSearch {
 public:
  // Hashes all rows, on all workers. The error is kUsage when no table fits beside the weights.
  [[nodiscard]] static Result<std::unique_ptr<HashedSearch>> create(const sparse::Network& network,
                                                                    const kernels::Kernels& kernels,
                                                                    host::Compute& compute);
  HashedSearch(const HashedSearch&) = delete;
  HashedSearch& operator=(const HashedSearch&) = delete;

  // Finds at most k rows of each query, best first. Requires k >= 1. Rows that score NaN are never found.
  void search(const QueryMatrix& queries, std::size_t k);
  [[nodiscard]] std::span<const Scored> found(std::size_t q) const { return found_[q]; }

 private:
  struct Worker {
    Worker(const lsh::Tables& tables, std::size_t limit) : query(tables, {.limit = limit}) {}
    lsh::BucketQuery query;
  };

  HashedSearch(const sparse::Network& network, const kernels::Kernels& kernels, host::Compute& compute)
      : network_(network), kernels_(kernels), compute_(compute), found_(kQueryBlock) {}
  void rescore(const float* query, std::span<const lsh::Candidate> candidates, std::size_t k,
               std::vector<Scored>& out) const;

  const sparse::Network& network_;
  const kernels::Kernels& kernels_;
  host::Compute& compute_;
  std::unique_ptr<lsh::HashFamily> family_;
  std::unique_ptr<lsh::Tables> tables_;
  std::vector<Worker> workers_;
  std::vector<std::vector<Scored>> found_;
};

}  // namespace gossamer::sparse_engine
