// SPDX-License-Identifier: Apache-2.0
//
// FusedBlock: what the lead of a serving run knows of a block of queries beside the net's lists, as members
// that hold shares of the training rows tell it (docs/protocols/sparse-serving.md), and how queries are
// ranked by it.
//
//   FusedBlock block({...}, compared, 100);
//   block.add_found(...) of each member; block.rank_found();
//   block.rows_of(held) are asked for, block.add_labels(...) of each member, until block.has_labels();
//   block.gather(net);
//   block.candidates() are asked for, block.add_terms(...) of each member; block.rank(fusion, ...)
//
// Memory: the lists, the labels of the rows in them, and 20 bytes a label that is ranked. Thread rule: one
// owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/row_lists.h"
#include "engines/sparse/fusion.h"
#include "engines/sparse/ranking.h"
#include "learn/data/rows.h"
#include "learn/sparse/network_shape.h"

namespace gossamer::engine {

class FusedBlock {
 public:
  struct Shape {
    std::size_t rows = 0;  // training rows of the model
    std::size_t labels = 0;
  };
  // Queries as training rows are compared; `neighbours` >= 1 rows for each list.
  FusedBlock(Shape shape, const data::SparseRows& compared, std::size_t neighbours);

  [[nodiscard]] std::size_t neighbours() const { return neighbours_; }
  [[nodiscard]] const Slice& compared() const { return compared_; }

  // Of a member with these output rows. Errors: kBadData for what none can have.
  [[nodiscard]] std::uint64_t found_bytes(const sparse::HeldRows& held) const;
  [[nodiscard]] Result<void> add_found(SliceReader& bytes, const sparse::HeldRows& held);  // so many bytes
  // Those whose labels nobody has said yet.
  [[nodiscard]] Slice rows_of(const sparse::HeldRows& held) const;
  // Of the first of rows_of() that it was asked for, one at least.
  [[nodiscard]] Result<void> add_labels(const Slices& bytes, const sparse::HeldRows& held);
  [[nodiscard]] bool has_labels() const;
  [[nodiscard]] std::uint64_t terms_bytes(const sparse::HeldRows& held) const;
  void add_terms(const Slices& bytes, const sparse::HeldRows& held);  // so many bytes

  // All have said what they found.
  void rank_found();
  // Once it has labels: those that are to be ranked, of the net's lists and of all rows found. False: they
  // are more than `most`, of all queries together, and the block is of no more use.
  [[nodiscard]] bool gather(const std::vector<std::vector<Scored>>& net, std::size_t most);
  [[nodiscard]] Slice candidates() const;

  // Once all terms are there: as Fusion::rank(), of query q. The fusion has these options and no sources.
  std::size_t rank(Fusion& fusion, const FusionOptions& options, std::size_t q, std::span<const Scored> net,
                   std::span<Scored> out) const;

 private:
  class Answers;
  struct Terms {
    std::uint64_t sum = 0;  // of cosines, in units of 2^-33; what no member can have said may overflow
    float score = 0;
    float inverse_length = 0;
  };

  [[nodiscard]] std::size_t list_size(const sparse::HeldRows& held) const;
  [[nodiscard]] std::vector<std::size_t> places_of(const sparse::HeldRows& held) const;

  Shape shape_;
  std::size_t neighbours_;
  Slice compared_;
  std::vector<std::vector<FoundRow>> by_input_;  // by query
  std::vector<std::vector<FoundRow>> by_hidden_;
  std::vector<std::uint32_t> row_;                    // in a list; rising
  std::vector<std::vector<std::uint32_t>> label_of_;  // of each of them
  std::vector<std::uint8_t> labelled_;                // whether somebody has said them
  std::vector<std::uint32_t> candidate_begin_;        // by query
  std::vector<std::uint32_t> candidate_;              // of a query rising
  std::vector<Terms> terms_;                          // of each of them
};

}  // namespace gossamer::engine
