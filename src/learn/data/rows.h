// SPDX-License-Identifier: Apache-2.0
//
// Views of sparse training data: what every reader produces and every learner consumes.
//
// A record is a bag of features and a set of labels, both as 0-based std::uint32_t indices. In a record the
// feature indices are strictly increasing, values are finite, and labels are strictly increasing. The code
// that builds records guarantees it (tested by the readers' conformance suite), so learners do not check
// again.
//
// Thread rule: immutable views, any thread; they live as long as what they look into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer::data {

// One sparse vector. Both spans have the same length.
struct SparseRow {
  std::span<const std::uint32_t> index;
  std::span<const float> value;
};

struct Record {
  SparseRow features;
  std::span<const std::uint32_t> labels;
};

// Several sparse vectors back to back (CSR): row i is index[begin[i]..begin[i+1]), likewise value.
// begin has rows()+1 entries and begin[0] == 0.
struct SparseRows {
  std::span<const std::uint32_t> begin;
  std::span<const std::uint32_t> index;
  std::span<const float> value;

  [[nodiscard]] std::size_t rows() const { return begin.empty() ? 0 : begin.size() - 1; }
  [[nodiscard]] SparseRow row(std::size_t i) const {
    return {index.subspan(begin[i], begin[i + 1] - begin[i]),
            value.subspan(begin[i], begin[i + 1] - begin[i])};
  }
};

// Several label sets back to back, laid out like SparseRows.
struct LabelSets {
  std::span<const std::uint32_t> begin;
  std::span<const std::uint32_t> label;

  [[nodiscard]] std::size_t rows() const { return begin.empty() ? 0 : begin.size() - 1; }
  [[nodiscard]] std::span<const std::uint32_t> row(std::size_t i) const {
    return label.subspan(begin[i], begin[i + 1] - begin[i]);
  }
};

// One step's samples (or a block of queries, then without labels).
struct Batch {
  SparseRows features;
  LabelSets labels;

  [[nodiscard]] std::size_t size() const { return features.rows(); }
};

}  // namespace gossamer::data
