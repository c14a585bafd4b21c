// SPDX-License-Identifier: Apache-2.0
//
// Names and secrets that cannot be guessed, from the system's own source. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gossamer::node {

[[nodiscard]] std::string random_bytes(std::size_t count);
[[nodiscard]] std::uint64_t random_seed();

}  // namespace gossamer::node
