// SPDX-License-Identifier: Apache-2.0
//
// Split: sets a share of the records aside for validation, by record number and seed alone. Growing the data
// at the end moves no record to the other side. Thread rule: immutable, any thread.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/rng.h"

namespace gossamer::data {

struct Split {
  std::uint64_t seed = 0;
  float validation = 0.0F;  // share, 0..1

  [[nodiscard]] bool in_validation(RecordIndex record) const {
    return Rng(seed, Purpose::kSplit, record.value).uniform() < validation;
  }
};

}  // namespace gossamer::data
