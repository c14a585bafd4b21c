// SPDX-License-Identifier: Apache-2.0
//
// PartTensors: a network whose parts lie in files (part_file.h) as the tensors of a model, read row by row
// where they lie: whoever writes them needs no memory for the network, and no more of the files than the
// pages of a few rows at a time.
//
// Thread rule: immutable after open(), any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/sparse/fleet/layout.h"
#include "engines/sparse/safetensors.h"
#include "host/api/disk.h"
#include "learn/sparse/row_order.h"
#include "node/fleet/part_file.h"

namespace gossamer::node {

class PartTensors {
 public:
  // `order`: of the output rows. Requires cover(). kBadData for a damaged file.
  [[nodiscard]] static Result<std::shared_ptr<const PartTensors>> open(host::Disk& disk,
                                                                       const std::vector<PartFile>& parts,
                                                                       const engine::FleetShape& shape,
                                                                       const sparse::RowOrder& order);

  // embedding.weight, dense.I.weight, dense.I.bias, output.weight, output.bias (docs/protocols/model.md),
  // output rows in the order of labels. Valid as long as this object.
  [[nodiscard]] std::vector<engine::TensorSource> tensors() const;

 private:
  // Columns or units [range), with their biases.
  struct Run {
    host::Range range;
    const std::byte* weights = nullptr;
    const std::byte* bias = nullptr;
  };
  struct Shard {
    const std::byte* weights = nullptr;
    const std::byte* bias = nullptr;
  };

  PartTensors(const engine::FleetShape& shape, const sparse::RowOrder& order)
      : shape_(shape), order_(order), layers_(shape.layers()), shards_(shape.shards()) {}
  // Whether the weights are as many as the part has.
  [[nodiscard]] bool add(const MappedPart& part);
  [[nodiscard]] std::size_t inputs(std::size_t layer) const;
  [[nodiscard]] const Run& run_with(std::size_t layer, std::size_t unit) const;
  [[nodiscard]] engine::TensorSource embedding() const;
  [[nodiscard]] engine::TensorSource dense(std::size_t layer) const;
  [[nodiscard]] engine::TensorSource dense_bias(std::size_t layer) const;
  [[nodiscard]] engine::TensorSource output() const;
  [[nodiscard]] engine::TensorSource output_bias() const;

  const engine::FleetShape shape_;
  const sparse::RowOrder order_;
  std::vector<std::shared_ptr<const host::MappedFile>> files_;
  std::vector<std::vector<Run>> layers_;  // by hidden layer
  std::vector<Shard> shards_;
};

}  // namespace gossamer::node
