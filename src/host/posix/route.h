// SPDX-License-Identifier: Apache-2.0
//
// Which of this machine's addresses the others see. Thread rule: any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "host/api/endpoint.h"

namespace gossamer::host {

// The address from which this machine reaches `to`, as text. Sends nothing, but looks names up, which blocks.
// kFailed: the name is not found, or there is no route.
[[nodiscard]] Result<std::string> address_towards(const Endpoint& to);

}  // namespace gossamer::host
