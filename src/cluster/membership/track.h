// SPDX-License-Identifier: Apache-2.0
//
// TrackId: the number of a track, for which a ledger counts steps: a stage of a deep model, or a shard of a
// wide one. The engines choose the numbers. Thread rule: plain value.
#pragma once

#include "base/ids.h"

namespace gossamer::cluster {

using TrackId = StrongId<struct TrackIdTag>;

}  // namespace gossamer::cluster
