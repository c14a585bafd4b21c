// SPDX-License-Identifier: Apache-2.0
//
// Strong integers: a step is not a sample id, and the compiler knows. Interfaces use these; inner loops over
// millions of indices use plain std::uint32_t spans whose names say what they index.
//
// Thread rule: plain values.
#pragma once

#include <compare>
#include <cstdint>

namespace gossamer {

template <class Tag, class Rep = std::uint64_t>
struct StrongId {
  using rep = Rep;
  Rep value = 0;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  constexpr auto operator<=>(const StrongId&) const = default;
  constexpr StrongId& operator++() {
    ++value;
    return *this;
  }
};

// Position in the run's deterministic sampling plan, 0-based (docs/GLOSSARY.md).
using SampleId = StrongId<struct SampleIdTag>;
// Position of a record in a dataset, 0-based.
using RecordIndex = StrongId<struct RecordIndexTag>;
// One optimizer update, 0-based: step t owns the sample ids [t*B, (t+1)*B).
using StepNumber = StrongId<struct StepNumberTag>;
// The number of a coordinator's life: rises with every campaign that is won, never repeats; 0 is before the
// first.
using Generation = StrongId<struct GenerationTag>;

}  // namespace gossamer
