// SPDX-License-Identifier: Apache-2.0
//
// FencedIncarnations: the lives that were declared dead; nothing they say counts any more. Fencing is final.
//
// Incarnations are numbered in rising order and nearly all old ones are fenced (who leaves in order is fenced
// too), so the set is kept as runs of numbers: at most one more than there are living incarnations, however
// long the run. The runs are also what goes over the wire and into the store.
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
  // All of first..last, both included.
  struct Run {
    Incarnation first;
    Incarnation last;
    bool operator==(const Run&) const = default;
  };

  FencedIncarnations() = default;
  // Requires first <= last in each; order and overlaps do not matter.
  explicit FencedIncarnations(std::span<const Run> runs);

  // False where it was fenced already.
  bool fence(Incarnation incarnation);
  [[nodiscard]] bool contains(Incarnation incarnation) const;
  // Rising, none touching another.
  [[nodiscard]] std::vector<Run> runs() const;

  bool operator==(const FencedIncarnations&) const = default;

 private:
  void insert(Run run);

  std::map<Incarnation, Incarnation> last_by_first_;
};

}  // namespace gossamer::cluster
