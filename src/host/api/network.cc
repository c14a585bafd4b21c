// SPDX-License-Identifier: Apache-2.0
#include "host/api/network.h"

namespace gossamer::host {

const char* name(Lane lane) { return lane == Lane::kControl ? "control" : "bulk"; }

}  // namespace gossamer::host
