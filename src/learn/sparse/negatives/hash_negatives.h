// SPDX-License-Identifier: Apache-2.0
//
// HashNegatives: wrong labels that score high, found by hash tables over the output rows (learn/lsh), as in
// SLIDE (Chen et al., MLSys 2020). The first `queries` samples of a step ask the tables with their hidden
// vectors. What they find joins the step's active set. collisions.md says what that does to the partition
// sum.
//
// The tables follow the rows: the learner notes every change of a row and calls prepare() before a step. At
// first_step it builds the tables. At the steps of SLIDE's schedule it hashes again the rows that moved
// farther than the tolerance allows:
//   first_step + the sum of update_every e^(update_growth i), i = 0, 1...
//
// What is found depends on the rows, the seed and the sequence of steps, not on the number of workers. With
// the state() another process goes on with the same bits.
//
// A node that holds a part of the network (network_shape.h) has tables of its own. They hash, note and find
// only the rows that are held when this is made. Nodes that ask with the same h find together what tables
// over all rows find. Where `found` / `queries` cuts an answer short, which it does for each node by itself,
// they find that and more. Where buckets are capped, each node sees so many rows of its own, and support is
// counted among those. What is cut short can then be other rows.
//
// Owner: the trainer; borrowed by the learner. Thread rule: prepare(), state() and restore() alone; find()
// and note_change() in a step's phases, each worker its own samples and its own rows. Allocates in prepare()
// only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/lsh/bucket_query.h"
#include "learn/lsh/hash_family.h"
#include "learn/lsh/tables.h"
#include "learn/sparse/negatives/found_rows.h"
#include "learn/sparse/network/batch_state.h"
#include "learn/sparse/network/network.h"
#include "learn/sparse/network/packed_rows.h"

namespace gossamer::sparse {

enum class HashKind {
  kSimHash,  // signs of sparse projections: by angle
  kWinner,   // densified winner-take-all, windows of 8: by order of coordinates
};
enum class HashSelection {
  kBest,    // the rows that most tables support
  kRandom,  // the buckets of tables in random order, until there are enough rows (SLIDE's "vanilla")
};
struct HashNegativeOptions {
  HashKind kind = HashKind::kSimHash;
  std::size_t functions = 9;  // K
  std::size_t tables = 50;    // L
  unsigned key_bits = 16;     // 1..16; longer codes are folded
  HashSelection selection = HashSelection::kBest;
  HashSets sets = HashSets::kShared;
  std::size_t queries = 32;    // samples of a step that ask, >= 1
  std::size_t found = 1024;    // rows found in a step at most: each asks for found / queries, at least one
  std::size_t bucket_cap = 0;  // rows read of a bucket at most, the last ones; 0: all
  double tolerance = 0.1;      // Tables: rows are left alone until they moved by this share of their length
  std::uint64_t first_step = 0;
  std::uint64_t update_every = 50;  // steps, >= 1
  double update_growth = 0;         // >= 0
  std::uint64_t seed = 1;
};

// The most rows that a sample finds.
[[nodiscard]] inline std::size_t found_limit(const HashNegativeOptions& options) {
  return std::max<std::size_t>(1, options.found / options.queries);
}

// The family of these options for vectors of `dimension`.
[[nodiscard]] std::unique_ptr<lsh::HashFamily> make_hash_family(const HashNegativeOptions& options,
                                                                std::size_t dimension, kernels::Isa isa);

class HashNegatives {
 public:
  struct Parts {
    const Network& network;  // borrowed; the output rows that it holds are hashed
    const kernels::Kernels& kernels;
    host::Compute& compute;
  };
  HashNegatives(const Parts& parts, const HashNegativeOptions& options);
  HashNegatives(const HashNegatives&) = delete;
  HashNegatives& operator=(const HashNegatives&) = delete;
  ~HashNegatives();

  // Whether samples ask in this step.
  [[nodiscard]] bool begun(StepNumber step) const { return step.value >= options_.first_step; }
  // Call it before each step: builds or updates the tables if it is time. Steps count up.
  void prepare(StepNumber step);

  // Lets the sample's h ask. Requires begun(step), sample < found().asking(batch).
  void find(int worker, const BatchState& batch, StepNumber step, std::size_t sample);
  // The rows that the samples found when they asked last.
  [[nodiscard]] const FoundRows& found() const { return found_; }

  // The output row, which must be held, has changed by this Euclidean length or less.
  void note_change(std::uint32_t row, float length) {
    if (tables_) tables_->note_change(rows_.number_of(row), length);
  }
  // Whether changes matter yet.
  [[nodiscard]] bool follows() const { return tables_ != nullptr; }

  // The state that a run continues from; zeros while there are no tables.
  struct State {
    std::vector<std::uint16_t> keys;  // [L][held rows]
    std::vector<float> allowances;    // [held rows]
  };
  [[nodiscard]] State state() const;
  // Goes on as if the steps before `next` had been taken with this object.
  void restore(const State& state, StepNumber next);

  // Bytes of the tables; 0 before they are built.
  [[nodiscard]] std::uint64_t bytes() const { return tables_ ? tables_->bytes() : 0; }

 private:
  struct Asker;  // one worker's

  void make_tables();
  [[nodiscard]] bool update_is_due(StepNumber step);
  [[nodiscard]] lsh::RowsView view() const;

  Parts parts_;
  HashNegativeOptions options_;
  PackedRows rows_;
  std::unique_ptr<lsh::HashFamily> family_;
  std::unique_ptr<lsh::Tables> tables_;  // null before they are built, and where no rows are held
  std::vector<Asker> askers_;
  std::vector<std::uint32_t> due_;
  FoundRows found_;
  double next_update_ = 0;  // the step of the next update; may be a fraction
  double updates_ = 0;      // updates before next_update_
};

}  // namespace gossamer::sparse
