// SPDX-License-Identifier: Apache-2.0
//
// Plans how a run is shared out among nodes: how many shards and copies there are, and how many steps lie
// between snapshots. Also the memory of nodes on one machine.
//
// Thread rule: pure functions on plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "learn/sparse/network/network_shape.h"

namespace gossamer::commands {

// Shards have 2^shift rows. The shift is the largest (learn/sparse/network/row_order.h) that leaves at least
// 16 shards a node and 64 in all, if there are labels enough.
[[nodiscard]] unsigned fleet_shard_shift(std::size_t labels, std::size_t nodes);

// Copies of each part beside the holder's: as many as cluster.copies says, and no
// more than there are other nodes.
[[nodiscard]] std::size_t fleet_copies(const sparse_engine::TrainConfig& config, std::size_t nodes);

// The most bytes of a network with its moments.
[[nodiscard]] std::uint64_t trained_bytes(const sparse::NetworkShape& shape);

// The number of steps from one snapshot to the next (docs/protocols/sparse-step.md). The
// config may give it. Otherwise:
//
//   interval = clamp(L, 16, most)
//   most     = clamp(max(98304 / B, P / (4 B H)), 96, 1024)
//
//   L  steps after which a node's log is a quarter of the network with moments
//   B  samples of a step
//   P  parameters of the network
//   H  columns of all hidden layers, padded
//
// `most` limits the time of computing steps anew. It is 98,304 samples, or steps that exchange one
// value of h for every four parameters, whichever are more. With a shorter interval, snapshots would be
// much more traffic than the steps.
[[nodiscard]] std::uint64_t snapshot_steps(const sparse_engine::TrainConfig& config,
                                           const sparse::NetworkShape& shape);

// Peak bytes of all nodes together while they train. The network counts once, and its copies at other nodes
// count too. What a node has of every sample, and its log of steps, count once for each node.
[[nodiscard]] std::uint64_t fleet_memory_needed(const sparse_engine::TrainConfig& config,
                                                const sparse_engine::Recipe& recipe,
                                                const sparse_engine::DataShape& shape, std::size_t nodes);

}  // namespace gossamer::commands
