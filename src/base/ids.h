// SPDX-License-Identifier: Apache-2.0
//
// StrongId: an integer with a type of its own, so that the compiler refuses a step number where a sample id
// is expected. Interfaces use these. Inner loops over millions of indices use plain std::uint32_t spans with
// names that say what they index.
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
// One process on one machine, member of at most one run.
using NodeId = StrongId<struct NodeIdTag>;
// One life of one node: given in rising order over the whole run, so never given twice.
using Incarnation = StrongId<struct IncarnationTag>;
// Rises with every change of membership or placement.
using Epoch = StrongId<struct EpochTag>;
// One life of the coordinator; nodes refuse a lower one than they have seen.
using Generation = StrongId<struct GenerationTag>;

}  // namespace gossamer
