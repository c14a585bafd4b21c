// SPDX-License-Identifier: Apache-2.0
//
// How a run is shared out among nodes of one machine: into how many shards, with which memory.
//
// Thread rule: pure functions on plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engines/sparse/config.h"
#include "engines/sparse/recipe.h"
#include "learn/sparse/network_shape.h"

namespace gossamer::node {

// Shards have 2^shift rows: the largest shift (learn/sparse/row_order.h) with at least 16 shards a node and
// 64 in all, if there are labels enough.
[[nodiscard]] unsigned fleet_shard_shift(std::size_t labels, std::size_t nodes);

// Copies of each part beside its holder's: as cluster.copies says, or as many as there are other nodes.
[[nodiscard]] std::size_t fleet_copies(const engine::TrainConfig& config, std::size_t nodes);

// What cluster.codec can be.
[[nodiscard]] std::vector<std::string_view> codec_names();

// Bytes of a network with its moments, at most.
[[nodiscard]] std::uint64_t trained_bytes(const sparse::NetworkShape& shape);

// A snapshot is made every so many steps (docs/protocols/sparse-step.md): what the config says, or those of
// which a node's log is a quarter of the network, but at least 16 and at most what takes not too long to be
// computed anew: 98,304 samples, or 96 steps, or those that exchange a value of h for every four parameters
// of the network, whichever are more, and never more than 1,024 steps. With fewer, snapshots would be much
// more traffic than the steps.
[[nodiscard]] std::uint64_t snapshot_steps(const engine::TrainConfig& config,
                                           const sparse::NetworkShape& shape);

// Peak bytes of all nodes together while they train. The network is there once, and its copies at other
// nodes; what each node has of every sample, and its log of steps, once for each.
[[nodiscard]] std::uint64_t fleet_memory_needed(const engine::TrainConfig& config,
                                                const engine::Recipe& recipe, const engine::DataShape& shape,
                                                std::size_t nodes);

}  // namespace gossamer::node
