// SPDX-License-Identifier: Apache-2.0
//
// Messages of a hostile member to its coordinator. Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "base/slice.h"
#include "net/link/message.h"

namespace gossamer::simulation {

// A message for which its sender must be fenced: malformed, huge, an impossible lease, an impossible mark (if
// the member serves), ...
[[nodiscard]] net::Message nonsense(Rng& rng);
// Sound requests, but more than one member may make.
[[nodiscard]] std::vector<net::Message> too_many();
// Sound beats, but more than one member may say.
[[nodiscard]] std::vector<net::Message> too_many_beats();
// So many bytes, of little memory.
[[nodiscard]] Slices much(std::uint64_t bytes);
// An odd, useless message for which its sender must not be fenced. It must do no harm.
[[nodiscard]] net::Message oddity(Rng& rng);

}  // namespace gossamer::simulation
