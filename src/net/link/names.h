// SPDX-License-Identifier: Apache-2.0
//
// How what nodes say is shown. Thread rule: plain functions.
#pragma once

#include <string>

namespace gossamer::net {

// What a peer says, fit for a line on a terminal: at most 300 characters, '?' for what is not printable
// ASCII.
[[nodiscard]] std::string printable(const std::string& text);

}  // namespace gossamer::net
