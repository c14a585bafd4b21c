// SPDX-License-Identifier: Apache-2.0
//
// TrackId: what a ledger keeps steps for, one by one: a stage of a deep model, a shard of a wide one. The
// engines choose the numbers. Thread rule: plain value.
#pragma once

#include "base/ids.h"

namespace gossamer::cluster {

using TrackId = StrongId<struct TrackIdTag>;

}  // namespace gossamer::cluster
