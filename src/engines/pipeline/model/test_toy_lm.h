// SPDX-License-Identifier: Apache-2.0
//
// Small models whose directories tests save and load: a toy, and a model that only has tensors. Only tests
// include it. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/aligned_array.h"
#include "engines/pipeline/model/lm_model_file.h"
#include "engines/pipeline/stage/lm_shape.h"
#include "engines/pipeline/stage/toy_stage.h"

namespace gossamer::pipeline {

struct ToyLm {
  static constexpr LmShape kShape{
      .vocabulary = 5, .context = 3, .width = 4, .heads = 2, .hidden = 6, .layers = 2};

  static LmAbout about() {
    return {.shape = kShape, .tokenizer = {.name = "bytes", .digest = 0xABCDEF}, .steps = 17};
  }
  static std::unique_ptr<StageBackend> model(const LmShape& shape, std::uint64_t seed) {
    return make_toy_stage({.vocabulary = shape.vocabulary,
                           .context = shape.context,
                           .width = shape.width,
                           .hidden = shape.hidden,
                           .layers = shape.layers},
                          {.first = 0, .last = shape.layers, .layers = shape.layers}, seed);
  }
};

// All tensors of a language model, and nothing that computes.
template <class T>
class StoredModel final : public StageBackend {
 public:
  StoredModel(const LmShape& shape, std::uint64_t seed)
      : shape_(shape), cut_{.first = 0, .last = shape.layers, .layers = shape.layers} {
    for (const LmTensor& tensor : lm_tensors(shape, cut_)) {
      memory_.emplace_back(tensor.size());
      fill_first_weights(tensor, seed, memory_.back().span());
      tensors_.push_back({.name = tensor.name,
                          .shape = tensor.shape,
                          .weights = memory_.back().span(),
                          .gradients = std::span<T>()});
    }
  }

  [[nodiscard]] const StageCut& cut() const override { return cut_; }
  [[nodiscard]] std::uint32_t width() const override { return shape_.width; }
  [[nodiscard]] std::uint32_t vocabulary() const override { return shape_.vocabulary; }
  [[nodiscard]] std::uint32_t context() const override { return shape_.context; }
  [[nodiscard]] std::span<const StageTensor> tensors() override { return tensors_; }
  [[nodiscard]] Result<std::unique_ptr<StageTask>> begin(const Microbatch&, Keep) override {
    return Error{.what = "it computes nothing"};
  }
  [[nodiscard]] Result<std::vector<double>> next_scores(std::span<const TokenNumber>) override {
    return Error{.what = "it computes nothing"};
  }
  [[nodiscard]] Result<void> weights_changed() override {
    ++changes_;
    return {};
  }
  [[nodiscard]] int changes() const { return changes_; }

 private:
  LmShape shape_;
  StageCut cut_;
  std::vector<AlignedArray<T>> memory_;
  std::vector<StageTensor> tensors_;
  int changes_ = 0;
};

// All weights of a model, one after another.
inline std::vector<double> weights_of(StageBackend& model) {
  std::vector<double> all;
  for (const StageTensor& tensor : model.tensors())
    std::visit([&](auto numbers) { all.insert(all.end(), numbers.begin(), numbers.end()); }, tensor.weights);
  return all;
}

}  // namespace gossamer::pipeline
