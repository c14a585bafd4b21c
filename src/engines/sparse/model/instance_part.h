// SPDX-License-Identifier: Apache-2.0
//
// InstancePart: a node's share of a model's training rows, for answering queries with other nodes
// (docs/protocols/sparse-serving.md). Rows are shared out with the shards of the output layer: as many runs
// as there are shards, one for each.
//
// Memory: the rows, a float for each held output row and a byte for each feature. Reading takes 32 bytes a
// feature and 8 a label of the model in addition, with any number of workers. All training rows are read, in
// mapped files: to check them in order, and to get the lengths of centroids in the order of labels.
//
// Thread rule: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/model/model_json.h"
#include "host/api/compute.h"
#include "learn/sparse/network/network_shape.h"
#include "tensors/safetensors.h"

namespace gossamer::sparse_engine {

// A number for each held output row.
class HeldFloats {
 public:
  HeldFloats() = default;
  explicit HeldFloats(const sparse::HeldRows& held);

  // Requires a held row.
  [[nodiscard]] float& of(std::uint32_t row) { return value_[place_of(row)]; }
  [[nodiscard]] float of(std::uint32_t row) const { return value_[place_of(row)]; }
  [[nodiscard]] std::size_t size() const { return value_.size(); }

 private:
  [[nodiscard]] std::size_t place_of(std::uint32_t row) const {
    const std::size_t shard = row >> shift_;
    return begin_[shard] + (row - (shard << shift_));
  }

  unsigned shift_ = 0;
  std::vector<std::size_t> begin_;  // by shard
  std::vector<float> value_;
};

struct InstancePart {
  Instances rows;
  std::vector<std::uint32_t> number;  // of each row, among all rows of the model; rising
  std::vector<std::uint8_t> dense;    // per feature: is_dense() among all rows, for InstanceIndex
  HeldFloats inverse_lengths;         // 1 / the length of a label's centroid; row = label
};

// The rows that belong to an output shard. Requires shard < shards.
[[nodiscard]] constexpr host::Range instance_run(std::size_t rows, std::size_t shards, std::size_t shard) {
  return {rows * shard / shards, rows * (shard + 1) / shards};
}
// How many rows belong to the held shards.
[[nodiscard]] std::size_t instance_rows(std::size_t rows, const sparse::HeldRows& held);
// Whether row `number` belongs to a held shard. Requires number < rows.
[[nodiscard]] bool holds_instance(std::size_t rows, const sparse::HeldRows& held, std::uint32_t number);

// Reads a part from the tensors of a model, in any order. Their bytes must stay until finish() returns.
class InstancePartReader {
 public:
  // Requires a header with instances, and held rows of an output layer of its size.
  InstancePartReader(const ModelHeader& header, sparse::HeldRows held);

  // Takes a tensor; tensors that are not of instances are ignored. The error is kBadData for a wrong type or
  // shape, and for a tensor seen twice.
  [[nodiscard]] Result<void> add(const std::string& path, const std::string& name,
                                 const tensors::TensorView& tensor);
  // Returns the part. The error is kBadData, with the file:
  // - a tensor is missing from the model's directory
  // - any row: an offset does not fit, an index is out of its bounds or order, a value is not finite
  // - a held row: a hidden vector is not finite
  [[nodiscard]] Result<InstancePart> finish(const std::string& directory, host::Compute& compute) const;

 private:
  struct Expected {
    tensors::DType dtype;
    std::vector<std::uint64_t> shape;
  };
  struct LabelRows {
    std::vector<std::uint32_t> begin;
    std::vector<std::uint32_t> row;
  };

  struct Found {
    std::string path;  // of its file
    tensors::TensorView tensor;
  };
  // Tensors to check: offsets of all rows into entries, and the entries, which are below `bound`.
  struct Rows {
    std::string_view begin;
    std::uint64_t entries;
    std::string_view index;
    std::uint64_t bound;
  };

  [[nodiscard]] const tensors::TensorView& tensor(std::string_view name) const;
  [[nodiscard]] Error bad(std::string_view name, std::string got, std::string expected) const;
  [[nodiscard]] Result<void> check(const std::string& directory) const;
  [[nodiscard]] Result<void> check_rows(const Rows& rows) const;
  [[nodiscard]] std::vector<std::uint8_t> dense_features() const;
  [[nodiscard]] LabelRows rows_of_labels() const;
  [[nodiscard]] HeldFloats inverse_lengths(host::Compute& compute) const;
  void reserve(InstancePart& part) const;
  void take_run(const host::Range& run, InstancePart& part) const;

  const InstanceCounts counts_;
  const std::size_t features_;
  const std::size_t labels_;
  const std::size_t width_;  // of hidden vectors
  const sparse::HeldRows held_;
  std::map<std::string, Expected, std::less<>> expected_;
  std::map<std::string, Found, std::less<>> tensors_;
};

}  // namespace gossamer::sparse_engine
