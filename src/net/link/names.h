// SPDX-License-Identifier: Apache-2.0
//
// How nodes are called, and what they say is shown. Thread rule: plain functions.
#pragma once

#include <string>

#include "base/ids.h"

namespace gossamer::net {

// The common name in a node's certificate: "node-17".
[[nodiscard]] std::string certificate_name(NodeId node);

// What a peer says, fit for a line on a terminal: at most 300 characters, '?' for what is not printable
// ASCII.
[[nodiscard]] std::string printable(const std::string& text);

}  // namespace gossamer::net
