// SPDX-License-Identifier: Apache-2.0
//
// InstancePart: a share of a model's training rows, as a node has it that answers queries with others
// (docs/protocols/sparse-serving.md). Rows are shared out with the shards of the output layer: as many runs
// as there are shards, one for each.
//
// Memory: that of the rows, a float for each output row held and a byte for each feature; while they are
// read besides 32 bytes a feature and 8 a label of the model, however many workers there are. All training
// rows are looked at, in mapped files: to check them in order, and for the lengths of centroids in the order
// of labels.
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
#include "engines/sparse/model.h"
#include "engines/sparse/model_json.h"
#include "engines/sparse/safetensors.h"
#include "host/api/compute.h"
#include "learn/sparse/network_shape.h"

namespace gossamer::engine {

// A number for each output row that is held.
class HeldFloats {
 public:
  HeldFloats() = default;
  explicit HeldFloats(const sparse::HeldRows& held);

  // Requires a row that is held.
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
  std::vector<std::uint32_t> number;  // of each row, among all of the model; rising
  std::vector<std::uint8_t> dense;    // per feature: is_dense() among all rows, for InstanceIndex
  HeldFloats inverse_lengths;         // 1 / the length of a label's centroid; row = label
};

// The rows that go with an output shard. Requires shard < shards.
[[nodiscard]] constexpr host::Range instance_run(std::size_t rows, std::size_t shards, std::size_t shard) {
  return {rows * shard / shards, rows * (shard + 1) / shards};
}
// How many go with the shards that are held.
[[nodiscard]] std::size_t instance_rows(std::size_t rows, const sparse::HeldRows& held);
// Whether row `number` is among them. Requires number < rows.
[[nodiscard]] bool holds_instance(std::size_t rows, const sparse::HeldRows& held, std::uint32_t number);

// From the tensors of a model, in any order; their bytes are looked at until finish() returns.
class InstancePartReader {
 public:
  // Requires a header with instances, and held rows of an output layer of its size.
  InstancePartReader(const ModelHeader& header, sparse::HeldRows held);

  // Others than those of instances are ignored. kBadData: a wrong type or shape, a tensor seen twice.
  [[nodiscard]] Result<void> add(const std::string& path, const std::string& name, const TensorView& tensor);
  // kBadData, with the file: a tensor is missing from the model's directory; of all rows an offset that does
  // not fit, an index out of its bounds or order, a value that is not finite; of those held, a hidden vector.
  [[nodiscard]] Result<InstancePart> finish(const std::string& directory, host::Compute& compute) const;

 private:
  struct Expected {
    DType dtype;
    std::vector<std::uint64_t> shape;
  };
  struct LabelRows {
    std::vector<std::uint32_t> begin;
    std::vector<std::uint32_t> row;
  };

  struct Found {
    std::string path;  // of its file
    TensorView tensor;
  };
  // Offsets of all rows into entries, and these, which are below `bound`.
  struct Rows {
    std::string_view begin;
    std::uint64_t entries;
    std::string_view index;
    std::uint64_t bound;
  };

  [[nodiscard]] const TensorView& tensor(std::string_view name) const;
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

}  // namespace gossamer::engine
