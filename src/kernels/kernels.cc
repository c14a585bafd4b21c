// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"

#include "base/check.h"
#include "kernels/reference.h"
#include "kernels/vector.h"

namespace gossamer::kernels {
namespace {

// A table that this CPU cannot run is left as the reference's; kernels_for never hands it out.
Kernels table_of(Isa isa) {
  if (isa == Isa::kScalar || !supported(isa)) return reference::table();
  Kernels table{};
  table.isa = isa;
  register_rows(isa, table);
  register_layout(isa, table);
  register_codes(isa, table);
  return table;
}

std::array<Kernels, kAllIsas.size()> all_tables() {
  return {table_of(Isa::kScalar), table_of(Isa::kSse4), table_of(Isa::kAvx2), table_of(Isa::kAvx512),
          table_of(Isa::kAvx512Bf16)};
}

}  // namespace

const Kernels& kernels_for(Isa isa) {
  CHECK(supported(isa), name(isa));
  static const std::array tables = all_tables();
  return tables[static_cast<std::size_t>(isa)];
}

}  // namespace gossamer::kernels
