// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/stage/stage_state.h"

#include <cstddef>
#include <span>
#include <variant>

namespace gossamer::pipeline {
namespace {

std::span<std::byte> state_bytes(const Numbers& numbers) {
  return std::visit([](auto part) { return std::as_writable_bytes(part); }, numbers);
}

}  // namespace

std::vector<tensors::NamedTensor> stage_state(StageBackend& backend, StageOptimizer& optimizer) {
  using enum tensors::TensorUse;
  std::vector<tensors::NamedTensor> state;
  const std::span<const StageTensor> all = backend.tensors();
  for (std::size_t i = 0; i < all.size(); ++i) {
    state.push_back({.name = all[i].name, .bytes = state_bytes(all[i].weights), .use = kResult});
    state.push_back(
        {.name = all[i].name + ":first", .bytes = state_bytes(optimizer.first_moment(i)), .use = kToGoOn});
    state.push_back(
        {.name = all[i].name + ":second", .bytes = state_bytes(optimizer.second_moment(i)), .use = kToGoOn});
  }
  return state;
}

}  // namespace gossamer::pipeline
