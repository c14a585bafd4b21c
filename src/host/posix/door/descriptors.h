// SPDX-License-Identifier: Apache-2.0
//
// File descriptors of a process that listens. It takes more than a login gives (1,024), and what strangers
// may take follows from what it has (door_book.h). Thread rule: any thread.
#pragma once

#include <cstdint>

namespace gossamer::host {

inline constexpr std::uint64_t kWantedDescriptors = 16'384;

// Raises this process's limit to kWantedDescriptors, or as far as the system allows.
void want_descriptors();

// The limit that holds now.
[[nodiscard]] std::uint64_t descriptor_limit();

}  // namespace gossamer::host
