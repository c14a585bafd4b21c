// SPDX-License-Identifier: Apache-2.0
//
// The surroundings of a coordinator without members: a network with nobody on it, and a workload of four
// things. Thread rule: one owner each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/control/test_nobody.h"
#include "cluster/control/workload.h"

namespace gossamer::fuzz {

using cluster::Nobody;

inline constexpr std::uint64_t kThings = 4;

class Things final : public cluster::Workload {
 public:
  [[nodiscard]] std::vector<placement::Thing> things() const override {
    std::vector<placement::Thing> things;
    for (std::uint64_t i = 0; i < kThings; ++i)
      things.push_back({.id = placement::ThingId(i), .bytes = 1 << 20, .work = 1 + static_cast<double>(i)});
    return things;
  }
  [[nodiscard]] bool readable(const std::string& report) const override { return report.size() < 8; }
  [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override {
    return {.bytes = "go on", .committed = rest.committed};
  }
};

}  // namespace gossamer::fuzz
