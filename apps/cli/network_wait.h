// SPDX-License-Identifier: Apache-2.0
//
// NetworkWait: a service may start before its machine's network does. A node that belongs to a run waits for
// it, as long as members wait for a coordinator. Thread rule: the caller's thread, which sleeps.
#pragma once

#include <functional>
#include <string>

#include "apps/cli/command.h"
#include "base/result.h"

namespace gossamer::cli {

// Calls `attempt` until it succeeds, once a second for ten minutes. Says so to people, once. Returns the last
// error, also when `stop` says that the user has had enough; `stop` may be empty.
[[nodiscard]] Result<void> wait_for_network(Context& context, const std::function<Result<void>()>& attempt,
                                            const std::function<bool()>& stop = {});

}  // namespace gossamer::cli
