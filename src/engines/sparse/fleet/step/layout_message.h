// SPDX-License-Identifier: Apache-2.0
//
// Parts and pieces of a layout (layout.h) as messages have them. Apart from it, because most of what knows
// layouts reads no message.
//
// Thread rule: plain functions.
#pragma once

#include <gossamer/sparse_fleet.pb.h>

#include <cstdint>
#include <optional>

#include "engines/sparse/fleet/step/layout.h"

namespace gossamer::sparse_engine {

void write_part(const sparse::NetworkPart& part, sparse_fleet::Part& out);
// Nothing if `part` is no part of such a network.
[[nodiscard]] std::optional<sparse::NetworkPart> read_part(const sparse_fleet::Part& part,
                                                           const FleetShape& shape);

// Pieces as messages have them. read_pieces() gives nothing if a number is no piece of the network.
void write_pieces(const Pieces& pieces, google::protobuf::RepeatedField<std::uint64_t>& out);
[[nodiscard]] std::optional<Pieces> read_pieces(const google::protobuf::RepeatedField<std::uint64_t>& pieces,
                                                const FleetShape& shape);

}  // namespace gossamer::sparse_engine
