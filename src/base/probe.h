// SPDX-License-Identifier: Apache-2.0
//
// Probes mark rare branches of the code. A simulation that never took such a branch says nothing about it, so
// a farm counts how often each was reached. A module lists its probes as an enumeration that ends in kCount,
// with a name and a sentence each, and marks the branch:
//
//   reached(options_.probes, LinkProbe::kGone);
//
// The counts belong to the program that runs the simulation. Outside of a simulation the pointer is null, and
// a probe costs a comparison. Thread rule: the counts have one owner, the same as the modules that count in
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gossamer {

// The name of a probe, and a sentence that says what has happened where it was reached.
template <class Probe>
struct ProbeName {
  Probe probe;
  std::string_view name;
  std::string_view sentence;
};

template <class Probe>
class ProbeCounts {
 public:
  void add(Probe probe) { ++counts_[static_cast<std::size_t>(probe)]; }
  [[nodiscard]] std::uint64_t count(Probe probe) const { return counts_[static_cast<std::size_t>(probe)]; }

 private:
  std::array<std::uint64_t, static_cast<std::size_t>(Probe::kCount)> counts_{};
};

template <class Probe>
void reached(ProbeCounts<Probe>* counts, Probe probe) {
  if (counts != nullptr) counts->add(probe);
}

}  // namespace gossamer
