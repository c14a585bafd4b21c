// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "engines/sparse/fleet/step/layout_message.h"

namespace gossamer::sparse_engine {
namespace {

// What a member reports; without `applied` it holds nothing. `copies`: the step of its newest ones.
struct Reported {
  std::optional<std::uint64_t> applied;
  std::uint64_t copies = 0;
};

// The nodes, from 2 on, that contradict the others.
std::vector<std::uint64_t> contradicting(const std::vector<Reported>& all) {
  const FleetShape shape{.network = {.features = 4, .labels = 8, .hidden = 16}, .shard_shift = 1};
  std::map<NodeId, membership::Frozen> reports;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sparse_fleet::Report report;
    report.set_applied(all[i].applied.value_or(0));
    if (all[i].applied) write_part(no_part(shape), *report.mutable_part());
    report.add_copies()->set_step(all[i].copies);
    reports[NodeId(2 + i)].set_report(report.SerializeAsString());
  }
  std::vector<std::uint64_t> nodes;
  for (const NodeId node : FleetWorkload(shape, {}).contradicting(reports)) nodes.push_back(node.value);
  return nodes;
}

using Nodes = std::vector<std::uint64_t>;

// Members that are a step apart, hold nothing, or have copies of steps that were done, contradict nobody.
TEST(FleetWorkload, MembersThatAgree) {
  EXPECT_EQ(contradicting({}), Nodes());
  EXPECT_EQ(contradicting({{.applied = 7}}), Nodes());
  EXPECT_EQ(contradicting({{.applied = 7}, {.applied = 8}, {.applied = 7}, {}, {.applied = 8, .copies = 8}}),
            Nodes());
  EXPECT_EQ(contradicting({{}, {.applied = std::nullopt, .copies = 900}}), Nodes());
}

// One member's report never speaks against more than itself, whatever it says.
TEST(FleetWorkload, OneLiarIsFound) {
  for (const std::uint64_t lie : {0ULL, 5ULL, 9ULL, 10ULL, 1ULL << 62, ~0ULL}) {
    for (std::size_t liar = 0; liar < 4; ++liar) {
      std::vector<Reported> all{{.applied = 7}, {.applied = 7}, {.applied = 8}, {.applied = 7}};
      if (liar == 2) std::swap(all[2], all[3]);
      all[liar].applied = lie;
      EXPECT_EQ(contradicting(all), Nodes{2 + liar}) << lie << " of " << liar;
    }
  }
  EXPECT_EQ(contradicting({{.applied = 7}, {.applied = 7, .copies = 9}, {.applied = 8}}), Nodes{3});
  EXPECT_EQ(contradicting({{.applied = 6}, {.applied = 7}, {.applied = 7}, {.applied = 8}, {.applied = 8}}),
            Nodes{2});
}

// The member that is ahead of the only other one is not believed: it took part in no step that the other has
// begun.
TEST(FleetWorkload, WordAgainstWord) {
  EXPECT_EQ(contradicting({{.applied = 7}, {.applied = 9}}), Nodes{3});
  EXPECT_EQ(contradicting({{.applied = ~0ULL}, {.applied = 7}}), Nodes{2});
}

}  // namespace
}  // namespace gossamer::sparse_engine
