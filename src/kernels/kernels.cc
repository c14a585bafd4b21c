// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"

#include "base/check.h"
#include "kernels/reference.h"

namespace gossamer::kernels {

const Kernels& kernels_for(Isa isa) {
  CHECK(supported(isa), name(isa));
  static const Kernels kTable = reference::table();
  return kTable;
}

}  // namespace gossamer::kernels
