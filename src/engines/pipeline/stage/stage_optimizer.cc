// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/stage/stage_optimizer.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "base/digest.h"
#include "exact/dense_update.h"
#include "exact/floating_modes.h"

namespace gossamer::pipeline {
namespace {

template <class T>
std::span<T> weights_of(const StageTensor& tensor) {
  return std::get<std::span<T>>(tensor.weights);
}
template <class T>
std::span<T> gradients_of(const StageTensor& tensor) {
  return std::get<std::span<T>>(tensor.gradients);
}

// Calls with a value of the tensor's type.
template <class Function>
auto with_type(const StageTensor& tensor, Function&& function) {
  return std::visit([&]<class T>(std::span<T>) { return function(T{}); }, tensor.weights);
}

}  // namespace

StageOptimizer::StageOptimizer(StageBackend& backend, const exact::AdamWOptions& options, kernels::Isa isa)
    : tensors_(backend.tensors()), options_(options), isa_(isa) {
  for (const StageTensor& tensor : tensors_) {
    moments_.push_back(with_type(tensor, [&]<class T>(T) -> AnyMoments {
      const std::size_t size = weights_of<T>(tensor).size();
      CHECK(gradients_of<T>(tensor).size() == size, tensor.name);
      return Moments<T>{.first = AlignedArray<T>(size), .second = AlignedArray<T>(size)};
    }));
  }
  blocks_ = blocks();
}

std::vector<StageOptimizer::Block> StageOptimizer::blocks() const {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    with_type(tensors_[i], [&]<class T>(T) {
      constexpr std::size_t kMost = kBlockBytes / sizeof(T);
      const std::size_t size = weights_of<T>(tensors_[i]).size();
      for (std::size_t from = 0; from < size; from += kMost)
        blocks.push_back({.tensor = i, .from = from, .count = std::min(kMost, size - from)});
    });
  }
  return blocks;
}

double StageOptimizer::squared_norm() const {
  const exact::FloatingModes modes;
  double sum = 0;
  for (const StageTensor& tensor : tensors_) {
    sum += with_type(tensor, [&]<class T>(T) {
      const std::span<T> gradients = gradients_of<T>(tensor);
      return exact::dense_update<T>(isa_).squared_sum(gradients.data(), gradients.size());
    });
  }
  return sum;
}

void StageOptimizer::begin_step(const exact::StepNumbers& numbers) {
  CHECK(!step_.has_value());
  step_ = numbers;
  block_hashes_.clear();
}

bool StageOptimizer::apply_next() {
  CHECK(step_.has_value());
  const exact::FloatingModes modes;
  const Block& block = blocks_[block_hashes_.size()];
  update(block);
  block_hashes_.push_back(hash(block));
  if (block_hashes_.size() < blocks_.size()) return true;
  step_.reset();
  return false;
}

void StageOptimizer::update(const Block& block) {
  const StageTensor& tensor = tensors_[block.tensor];
  with_type(tensor, [&]<class T>(T) {
    exact::AdamWOptions options = options_;
    if (tensor.shape.size() < 2) options.weight_decay = 0;
    auto& [first, second] = std::get<Moments<T>>(moments_[block.tensor]);
    const std::span<T> gradients = gradients_of<T>(tensor).subspan(block.from, block.count);
    const exact::AdamWTensor<T> part = {.weights = weights_of<T>(tensor).data() + block.from,
                                        .first = first.data() + block.from,
                                        .second = second.data() + block.from,
                                        .gradients = gradients.data(),
                                        .n = block.count};
    exact::dense_update<T>(isa_).adamw(part, exact::adamw_factors<T>(options, *step_));
    std::ranges::fill(gradients, T{0});
  });
}

void StageOptimizer::clear_gradients() {
  CHECK(!step_.has_value());
  for (const StageTensor& tensor : tensors_)
    with_type(tensor, [&]<class T>(T) { std::ranges::fill(gradients_of<T>(tensor), T{0}); });
}

void StageOptimizer::state_changed() {
  CHECK(!step_.has_value());
  block_hashes_.clear();
}

std::uint64_t StageOptimizer::hash(const Block& block) const {
  Digest digest;
  with_type(tensors_[block.tensor], [&]<class T>(T) {
    const auto& [first, second] = std::get<Moments<T>>(moments_[block.tensor]);
    const std::span<const T> weights = weights_of<T>(tensors_[block.tensor]);
    for (const std::span<const T> part : {weights, first.span(), second.span()})
      digest.add(std::as_bytes(part.subspan(block.from, block.count)));
  });
  return digest.value();
}

std::uint64_t StageOptimizer::root() const {
  CHECK(!step_.has_value());
  if (block_hashes_.empty()) {
    for (const Block& block : blocks_) block_hashes_.push_back(hash(block));
  }
  Digest digest;
  digest.add(std::as_bytes(std::span<const std::uint64_t>(block_hashes_)));
  return digest.value();
}

Numbers StageOptimizer::first_moment(std::size_t i) {
  return std::visit([](auto& moments) -> Numbers { return moments.first.span(); }, moments_[i]);
}
Numbers StageOptimizer::second_moment(std::size_t i) {
  return std::visit([](auto& moments) -> Numbers { return moments.second.span(); }, moments_[i]);
}

}  // namespace gossamer::pipeline
