// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/admitted_nodes.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gossamer::cluster {
namespace {

using Records = std::vector<membership::NodeRecord>;

// The nodes as the next coordinator finds them in the store, which keeps the last record of each.
AdmittedNodes taken_up(const Records& written) {
  std::map<NodeId, membership::NodeRecord> store;
  for (const membership::NodeRecord& record : written) store[NodeId(record.node())] = record;
  return AdmittedNodes(store);
}

// Each token's nodes are counted, also by the coordinator that takes up the store.
TEST(AdmittedNodesTest, CountsByToken) {
  AdmittedNodes nodes({});
  Records written;
  for (std::uint64_t node = 2; node < 9; ++node)
    written.push_back(nodes.let_in(NodeId(node), node % 3 == 0 ? "a" : "b", 100));
  for (const AdmittedNodes& one : std::array{nodes, taken_up(written)}) {
    EXPECT_EQ(one.let_in_by("a"), 2U);
    EXPECT_EQ(one.let_in_by("b"), 5U);
    EXPECT_EQ(one.let_in_by("c"), 0U);
    EXPECT_EQ(one.token_of(NodeId(6)), "a");
    EXPECT_EQ(one.token_of(NodeId(9)), "");
    EXPECT_EQ(one.nodes_of("a"), (std::vector{NodeId(3), NodeId(6)}));
    EXPECT_TRUE(one.expelled().empty());
  }
}

// An expelled node stays expelled, with its token, also for the coordinator that takes up the store. A node
// without a record can be expelled, too. The second time nothing changes.
TEST(AdmittedNodesTest, Expels) {
  AdmittedNodes nodes({});
  Records written{nodes.let_in(NodeId(3), "a", 100), nodes.let_in(NodeId(4), "a", 100)};
  for (const std::uint64_t node : {3U, 8U}) {
    const auto record = nodes.expel(NodeId(node));
    ASSERT_TRUE(record) << node;
    written.push_back(*record);
    EXPECT_FALSE(nodes.expel(NodeId(node))) << node;
  }
  for (const AdmittedNodes& one : std::array{nodes, taken_up(written)}) {
    EXPECT_EQ(one.expelled(), (std::set{NodeId(3), NodeId(8)}));
    EXPECT_EQ(one.let_in_by("a"), 2U);
    EXPECT_EQ(one.token_of(NodeId(3)), "a");
  }
}

}  // namespace
}  // namespace gossamer::cluster
