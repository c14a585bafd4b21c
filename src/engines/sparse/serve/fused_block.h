// SPDX-License-Identifier: Apache-2.0
//
// FusedBlock: what the lead of a serving run knows of a block of queries beside the net's lists. Members that
// hold shares of the training rows tell it (docs/protocols/sparse-serving.md). It ranks the queries by that.
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
#include "engines/sparse/fleet/step/row_lists.h"
#include "engines/sparse/model/ranking.h"
#include "engines/sparse/predict/fusion.h"
#include "learn/data/rows.h"
#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse_engine {

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

  // Bytes from a member with these output rows. Errors: kBadData for bytes that no member can have given.
  [[nodiscard]] std::uint64_t found_bytes(const sparse::HeldRows& held) const;
  [[nodiscard]] Result<void> add_found(SliceReader& bytes, const sparse::HeldRows& held);  // so many bytes
  // The rows in the lists that this member holds and whose labels are still unknown.
  [[nodiscard]] Slice rows_of(const sparse::HeldRows& held) const;
  // Labels of the first rows of rows_of(), at least one of them.
  [[nodiscard]] Result<void> add_labels(const Slices& bytes, const sparse::HeldRows& held);
  [[nodiscard]] bool has_labels() const;
  [[nodiscard]] std::uint64_t terms_bytes(const sparse::HeldRows& held) const;
  void add_terms(const Slices& bytes, const sparse::HeldRows& held);  // so many bytes

  // Ranks the lists when all members have said what they found.
  void rank_found();
  // Once it has labels: gathers the labels to be ranked, from the net's lists and from all rows found. False
  // if all queries together have more than `most`. Then the block is of no more use.
  [[nodiscard]] bool gather(const std::vector<std::vector<Scored>>& net, std::size_t most);
  [[nodiscard]] Slice candidates() const;

  // Once all terms are there: ranks query q as Fusion::rank() does. The fusion has these options and no
  // sources.
  std::size_t rank(Fusion& fusion, const FusionOptions& options, std::size_t q, std::span<const Scored> net,
                   std::span<Scored> out) const;

 private:
  class Answers;
  struct Terms {
    std::uint64_t sum = 0;  // of cosines, in units of 2^-33; wrong answers may overflow it
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
  std::vector<std::uint32_t> row_;                    // in some list; rising
  std::vector<std::vector<std::uint32_t>> label_of_;  // by place in row_
  std::vector<std::uint8_t> labelled_;                // whether the labels are known; by place in row_
  std::vector<std::uint32_t> candidate_begin_;        // by query
  std::vector<std::uint32_t> candidate_;              // rising for each query
  std::vector<Terms> terms_;                          // by place in candidate_
};

}  // namespace gossamer::sparse_engine
