// SPDX-License-Identifier: Apache-2.0
//
// The memory that a microbatch takes while libtorch computes it (engines/pipeline/torch), before it is
// computed. It follows from the tensors that TorchTask makes and torch's graph keeps. The tests of that
// folder count what torch allocates, and compare.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>

#include "engines/pipeline/stage/lm_shape.h"
#include "engines/pipeline/stage/stage_backend.h"

namespace gossamer::pipeline {

// The scores of so many tokens and words are computed at once, about. Their gradients wait for all tokens.
inline constexpr std::uint64_t kScoresAtOnce = std::uint64_t{1} << 24U;

// A number of a layer, and one of weights, accumulators and boundaries.
[[nodiscard]] std::uint64_t layer_number_bytes(Precision precision);
[[nodiscard]] std::uint64_t wide_number_bytes(Precision precision);

// What the graph of a layer keeps for `tokens` tokens, but for the layer's input and output.
[[nodiscard]] std::uint64_t layer_graph_bytes(const LmShape& shape, Precision precision,
                                              std::uint64_t tokens);
// The same of the norm before the head; its output is the input of the head.
[[nodiscard]] std::uint64_t head_graph_bytes(const LmShape& shape, Precision precision, std::uint64_t tokens);

// The most that a microbatch of `tokens` tokens takes at any time in a process that has the whole model and
// adds the products of each layer as soon as it is passed backwards.
[[nodiscard]] std::uint64_t training_peak_bytes(const LmShape& shape, Precision precision,
                                                std::uint64_t tokens, Keep keep);

}  // namespace gossamer::pipeline
