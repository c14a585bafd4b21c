// SPDX-License-Identifier: Apache-2.0
//
// What a process that listens needs of descriptors. Once accept() finds none left, gRPC listens no more at
// that port, for good; so such a process takes more of them than a login gives (1,024), and hangs up on
// whoever would take the last quarter. Thread rule: any thread.
#pragma once

#include <cstdint>

namespace gossamer::host {

// A connection in its handshake takes some 32 kB: half a gigabyte for all of them.
inline constexpr std::uint64_t kWantedDescriptors = 16'384;

// Raises this process's limit to kWantedDescriptors, or as far as the system lets it.
void want_descriptors();

// Whether a connection that was just accepted has one of the last quarter. The lowest free number is given
// out first.
[[nodiscard]] bool is_among_last(int descriptor);

}  // namespace gossamer::host
