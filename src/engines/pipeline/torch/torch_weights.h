// SPDX-License-Identifier: Apache-2.0
//
// TorchWeights: the memory of a stage's weights and accumulators, and the same as tensors of torch in the
// precision of the layers. Inside this folder only. Thread rule: the thread that calls torch.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/aligned_array.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "engines/pipeline/torch/torch_layer.h"
#include "engines/pipeline/torch/torch_stage.h"

namespace gossamer::pipeline {

class TorchWeights {
 public:
  explicit TorchWeights(const TorchStageOptions& options);

  [[nodiscard]] std::span<const StageTensor> tensors() const { return tensors_; }
  // The type of layers, and that of boundaries, weights and accumulators.
  [[nodiscard]] at::ScalarType layer_type() const;
  [[nodiscard]] at::ScalarType wide_type() const;

  // What layers compute with. Layers count from the first of this stage.
  [[nodiscard]] const TorchLayer& layer(std::size_t k) const { return layers_[k]; }
  [[nodiscard]] const TorchLinear& tokens() const { return tokens_; }  // without bias
  [[nodiscard]] const TorchLinear& positions() const {
    return positions_;
  }  // undefined where they are rotary
  [[nodiscard]] const TorchNorm& head_norm() const { return head_norm_; }
  [[nodiscard]] const TorchLinear& head() const { return head_; }

  // Takes over weights that were changed in memory.
  void refresh();

 private:
  // One tensor's memory as two tensors of torch; undefined for a name that the stage lacks.
  struct Pair {
    at::Tensor weight, sum;
  };
  [[nodiscard]] Pair pair(const std::string& name) const;
  [[nodiscard]] at::Tensor in_layer_type(const at::Tensor& weight) const;
  [[nodiscard]] TorchLinear linear(const std::string& name) const;
  [[nodiscard]] TorchLinear query_key_value(const std::string& prefix) const;
  [[nodiscard]] TorchNorm norm(const std::string& prefix) const;

  template <class T>
  void allocate(const LmTensor& tensor, std::uint64_t seed);

  TorchStageOptions options_;
  std::vector<std::variant<AlignedArray<float>, AlignedArray<double>>> memory_;
  std::vector<StageTensor> tensors_;
  std::map<std::string, Pair, std::less<>> pairs_;
  std::vector<TorchLayer> layers_;
  TorchLinear tokens_, positions_, head_;
  TorchNorm head_norm_;
};

}  // namespace gossamer::pipeline
