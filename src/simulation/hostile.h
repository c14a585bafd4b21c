// SPDX-License-Identifier: Apache-2.0
//
// What a hostile member says to its coordinator. Thread rule: plain functions.
#pragma once

#include "base/rng.h"
#include "net/link/message.h"

namespace gossamer::simulation {

// Whoever says this is to be fenced: malformed, huge, a lease that is none, a mark that cannot be true (those
// of members that serve), ...
[[nodiscard]] net::Message nonsense(Rng& rng);
// Odd, of no use, and nothing to be fenced for: it must do no harm.
[[nodiscard]] net::Message oddity(Rng& rng);

}  // namespace gossamer::simulation
