// SPDX-License-Identifier: Apache-2.0
//
// How nodes are called, and what they say is shown. Thread rule: plain functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace gossamer::net {

// The common name in a node's certificate: "node-17".
[[nodiscard]] std::string certificate_name(NodeId node);

// Whose certificate has that common name; nothing for another name.
[[nodiscard]] std::optional<NodeId> certified_node(std::string_view name);

// What a peer says, fit for a line on a terminal: at most 300 characters, '?' for what is not printable
// ASCII.
[[nodiscard]] std::string printable(const std::string& text);

}  // namespace gossamer::net
