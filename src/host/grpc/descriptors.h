// SPDX-License-Identifier: Apache-2.0
//
// File descriptors of a process that listens. Once accept() finds none left, gRPC stops listening at that
// port for good. So such a process takes more descriptors than a login gives (1,024). It hangs up on a
// connection that would take one of the last quarter. Thread rule: any thread.
#pragma once

#include <cstdint>

namespace gossamer::host {

// A connection in its handshake takes some 32 kB: half a gigabyte for all of them.
inline constexpr std::uint64_t kWantedDescriptors = 16'384;

// Raises this process's limit to kWantedDescriptors, or as far as the system allows.
void want_descriptors();

// Whether the descriptor of a connection that was just accepted is one of the last quarter. The system gives
// out the lowest free number first.
[[nodiscard]] bool is_among_last(int descriptor);

}  // namespace gossamer::host
