// SPDX-License-Identifier: Apache-2.0
//
// PartTensors shows a network whose parts lie in files (part_file.h) as the tensors of a model. Rows
// are read where they lie. A program that writes them needs no memory for the network, only for the
// pages of a few rows at a time.
//
// Thread rule: immutable after open(), any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/train_fleet/part_file.h"
#include "engines/sparse/fleet/step/layout.h"
#include "host/api/disk.h"
#include "learn/sparse/network/row_order.h"
#include "tensors/safetensors.h"

namespace gossamer::commands {

class PartTensors {
 public:
  // Opens the parts. `order` is the order of the output rows. Requires cover(). kBadData for a damaged file.
  [[nodiscard]] static Result<std::shared_ptr<const PartTensors>> open(host::Disk& disk,
                                                                       const std::vector<PartFile>& parts,
                                                                       const sparse_engine::FleetShape& shape,
                                                                       const sparse::RowOrder& order);

  // The tensors embedding.weight, dense.I.weight, dense.I.bias, output.weight and output.bias
  // (docs/protocols/model.md). Output rows are in the order of labels. Valid as long as this object.
  [[nodiscard]] std::vector<tensors::TensorSource> tensors() const;

 private:
  // A range of columns or units, with their biases.
  struct Run {
    host::Range range;
    const std::byte* weights = nullptr;
    const std::byte* bias = nullptr;
  };
  struct Shard {
    const std::byte* weights = nullptr;
    const std::byte* bias = nullptr;
  };

  PartTensors(const sparse_engine::FleetShape& shape, const sparse::RowOrder& order)
      : shape_(shape), order_(order), layers_(shape.layers()), shards_(shape.shards()) {}
  // Adds a part. False where the number of weights is not that of the part.
  [[nodiscard]] bool add(const MappedPart& part);
  [[nodiscard]] std::size_t inputs(std::size_t layer) const;
  [[nodiscard]] const Run& run_with(std::size_t layer, std::size_t unit) const;
  [[nodiscard]] tensors::TensorSource embedding() const;
  [[nodiscard]] tensors::TensorSource dense(std::size_t layer) const;
  [[nodiscard]] tensors::TensorSource dense_bias(std::size_t layer) const;
  [[nodiscard]] tensors::TensorSource output() const;
  [[nodiscard]] tensors::TensorSource output_bias() const;

  const sparse_engine::FleetShape shape_;
  const sparse::RowOrder order_;
  std::vector<std::shared_ptr<const host::MappedFile>> files_;
  std::vector<std::vector<Run>> layers_;  // by hidden layer
  std::vector<Shard> shards_;
};

}  // namespace gossamer::commands
