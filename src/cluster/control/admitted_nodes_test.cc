// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/admitted_nodes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "cluster/control/records.h"

namespace gossamer::cluster {
namespace {

AdmittedNodes taken_up(const std::vector<host::Change>& changes) {
  std::vector<host::Entry> entries;
  for (const host::Change& change : changes) entries.push_back({.key = change.key, .value = *change.value});
  const auto records = read_records(entries);
  EXPECT_TRUE(records.ok());
  return AdmittedNodes(records->nodes);
}

// Each token's nodes are counted, also by the coordinator that takes up the store.
TEST(AdmittedNodesTest, CountsByToken) {
  AdmittedNodes nodes({});
  std::vector<host::Change> changes;
  for (std::uint64_t node = 2; node < 9; ++node)
    changes.push_back(nodes.let_in(NodeId(node), node % 3 == 0 ? "a" : "b", 100));
  for (const AdmittedNodes& one : std::array{nodes, taken_up(changes)}) {
    EXPECT_EQ(one.let_in_by("a"), 2U);
    EXPECT_EQ(one.let_in_by("b"), 5U);
    EXPECT_EQ(one.let_in_by("c"), 0U);
    EXPECT_EQ(one.token_of(NodeId(6)), "a");
    EXPECT_EQ(one.token_of(NodeId(9)), "");
  }
}

}  // namespace
}  // namespace gossamer::cluster
