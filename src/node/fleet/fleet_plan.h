// SPDX-License-Identifier: Apache-2.0
//
// How a run is shared out among nodes of one machine: what can be, into how many shards, with which memory.
//
// Thread rule: pure functions on plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "engines/sparse/config.h"
#include "engines/sparse/recipe.h"
#include "learn/sparse/network_shape.h"

namespace gossamer::node {

// kUsage for what several nodes cannot train yet, named by its key.
[[nodiscard]] Result<void> check_fleet_config(const engine::TrainConfig& config);

// Shards have 2^shift rows: the largest shift (learn/sparse/row_order.h) with at least 16 shards a node and
// 64 in all, if there are labels enough.
[[nodiscard]] unsigned fleet_shard_shift(std::size_t labels, std::size_t nodes);

// Bytes of a network with its moments, at most.
[[nodiscard]] std::uint64_t trained_bytes(const sparse::NetworkShape& shape);

// Peak bytes of all nodes together while they train. The network is there once, and its copies at other
// nodes; what each node has of every sample, and its log of steps, once for each.
[[nodiscard]] std::uint64_t fleet_memory_needed(const engine::TrainConfig& config,
                                                const engine::Recipe& recipe, const engine::DataShape& shape,
                                                std::size_t nodes);

}  // namespace gossamer::node
