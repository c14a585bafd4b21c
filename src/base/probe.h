// SPDX-License-Identifier: Apache-2.0
//
// Probes: rare branches that a simulation must have taken, or its silence says nothing about them. A module
// lists its own as an enumeration that ends in kCount, with a name and a sentence each, and marks the branch:
//
//   reached(options_.probes, LinkProbe::kGone);
//
// The counts belong to whoever runs the simulation; outside of one the pointer is null and a probe costs a
// comparison. Thread rule: one owner, that of the modules which count in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gossamer {

// What a probe is called, and what has happened where it was reached.
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
