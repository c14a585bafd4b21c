// SPDX-License-Identifier: Apache-2.0
//
// FencedIncarnations: the lives that were declared dead; nothing they say counts any more. Fencing is final.
//
// Incarnations are numbered in rising order and nearly all old ones are fenced, even those that left in
// order. So the set is kept as runs of numbers: at most one more than there are living incarnations, however
// long the run of the model. These runs also go over the wire and into the store.
//
// Cost: logarithmic in the number of runs, 48 bytes a run. Thread rule: one owner.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "base/ids.h"

namespace gossamer::cluster {

class FencedIncarnations {
 public:
  // The incarnations first..last, both included.
  struct Run {
    Incarnation first;
    Incarnation last;
    bool operator==(const Run&) const = default;
  };

  FencedIncarnations() = default;
  // Requires first <= last in each. Order and overlaps do not matter.
  explicit FencedIncarnations(std::span<const Run> runs);

  // Fences an incarnation. False if it was fenced already.
  bool fence(Incarnation incarnation);
  [[nodiscard]] bool contains(Incarnation incarnation) const;
  // The runs in rising order; none touches another.
  [[nodiscard]] std::vector<Run> runs() const;

  bool operator==(const FencedIncarnations&) const = default;

 private:
  void insert(Run run);

  std::map<Incarnation, Incarnation> last_by_first_;
};

}  // namespace gossamer::cluster
