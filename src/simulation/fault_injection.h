// SPDX-License-Identifier: Apache-2.0
//
// Fault injection: carries out the faults of fault.h on the processes of a fleet, and on the paths between
// them, whatever the processes compute. Thread rule: the simulation's.
#pragma once

#include "simulation/fault.h"

namespace gossamer::simulation {

class Fleet;

void carry_out(const Fault& fault, Fleet& fleet);

}  // namespace gossamer::simulation
