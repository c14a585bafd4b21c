// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a model by name: their places in memory when it is saved, and their checked destinations
// when it is loaded. model_file.h knows files and shards.
//
// Thread rule: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/model/model_json.h"
#include "tensors/model_fields.h"
#include "tensors/safetensors.h"

namespace gossamer::sparse_engine {

using tensors::bad_tensor;

// Describes the first number of a tensor that is not finite, for bad_tensor().
[[nodiscard]] std::string not_finite(const tensors::TensorView& tensor);
// The same for an offset, and for an index of a record.
[[nodiscard]] std::string wrong_offset_text(std::size_t place, std::uint64_t offset);
[[nodiscard]] std::string wrong_index_text(std::size_t record, std::size_t entry, std::uint32_t index);

[[nodiscard]] bool all_finite(std::span<const kernels::Bf16> values);

// The featurizer's features laid out as they are stored; empty without a featurizer.
[[nodiscard]] Names featurizer_features_of(const Model& model);

// All tensors of a model in the order in which they are written. Unless `network` is empty, it replaces the
// tensors of the model's network. The sources are views, valid as long as the arguments.
[[nodiscard]] std::vector<tensors::TensorSource> tensors_of(const Model& model,
                                                            const Names& featurizer_features,
                                                            std::vector<tensors::TensorSource> network = {});

// Everything but tensors and shards.
[[nodiscard]] ModelHeader header_of(const Model& model);

// The part of a model that is read.
enum class Reading {
  kAll,
  kWithoutNetwork,  // only the shape of the network, and no training rows
};

// Builds a model from its header and then its tensors in any order. Memory for a tensor is allocated only
// once its bytes have been seen, so a false header costs nothing.
class ModelBuilder {
 public:
  // kWithoutNetwork: tensors of the network and of training rows are ignored.
  ModelBuilder(const ModelHeader& header, Reading reading);
  ModelBuilder(const ModelBuilder&) = delete;
  ModelBuilder& operator=(const ModelBuilder&) = delete;

  // Checks one tensor and copies it; unknown names are ignored. The error is kBadData with `path` and the
  // name: wrong type or shape, seen twice, a number that is not finite.
  [[nodiscard]] Result<void> add(const std::string& path, const std::string& name,
                                 const tensors::TensorView& tensor);
  // Returns the model, after all shards; `directory` is where they are. The error is kBadData, with the file:
  // - a tensor is missing
  // - an index is out of its bounds
  // - offsets do not fit their entries
  // - features or labels of a row do not rise
  [[nodiscard]] Result<Model> finish(const std::string& directory);

 private:
  static constexpr std::uint64_t kAnySize = ~std::uint64_t{0};
  struct Expected {
    tensors::DType dtype;
    std::vector<std::uint64_t> shape;                      // kAnySize: any
    std::function<bool(const tensors::TensorView&)> take;  // false: a number is not finite
    std::string path = {};                                 // the file that had it; empty: none yet
  };

  void expect_network();
  void expect_names(const char* prefix, std::uint64_t count, Names& names);
  void expect_instances(const InstanceCounts& counts, std::uint64_t hidden);
  template <class T>
  void expect_vector(const char* name, tensors::DType dtype, std::uint64_t size, std::vector<T>& out);
  template <class T>
  void expect_array(const char* name, tensors::DType dtype, const std::vector<std::uint64_t>& shape,
                    AlignedArray<T>& out);
  void expect_rows(const std::string& name, const sparse::RowTableShape& shape, sparse::RowTable& out);

  [[nodiscard]] Error bad(std::string_view tensor, std::string got, std::string expected) const;
  [[nodiscard]] Result<void> check_idf() const;
  [[nodiscard]] Result<void> check_offsets(std::string_view tensor, const Names& names) const;
  [[nodiscard]] Result<void> check_distinct(std::string_view tensor, const Names& names) const;
  [[nodiscard]] Result<void> check_names() const;
  [[nodiscard]] Result<void> finish_featurizer();
  [[nodiscard]] Result<void> check_instances() const;

  Model model_;
  bool has_idf_ = false;
  Names featurizer_features_;
  std::map<std::string, Expected, std::less<>> expected_;
};

}  // namespace gossamer::sparse_engine
