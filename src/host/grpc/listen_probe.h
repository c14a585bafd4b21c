// SPDX-License-Identifier: Apache-2.0
//
// Whether this process could listen at an endpoint, and if not, why: port taken, address not ours, not
// allowed, name unknown. For libraries that only say no. Thread rule: any thread.
#pragma once

#include "base/result.h"
#include "host/api/endpoint.h"

namespace gossamer::host {

[[nodiscard]] Result<void> probe_listen(const Endpoint& at);

}  // namespace gossamer::host
