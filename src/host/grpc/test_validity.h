// SPDX-License-Identifier: Apache-2.0
//
// The time for which certificates of tests hold. Only tests include it. Thread rule: plain values.
#pragma once

#include "host/grpc/certificates.h"

namespace gossamer::host {

inline constexpr Validity kValid{.now_seconds = 1.8e9, .days = 30};

}  // namespace gossamer::host
