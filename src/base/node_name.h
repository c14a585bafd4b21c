// SPDX-License-Identifier: Apache-2.0
//
// How nodes are called, in certificates and in messages. Thread rule: plain functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace gossamer {

// The common name in a node's certificate: "node-17".
[[nodiscard]] std::string certificate_name(NodeId node);

// The node whose certificate has that common name; nothing for any other name.
[[nodiscard]] std::optional<NodeId> certified_node(std::string_view name);

}  // namespace gossamer
