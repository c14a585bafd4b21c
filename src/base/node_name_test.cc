// SPDX-License-Identifier: Apache-2.0
#include "base/node_name.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gossamer {
namespace {

// A name leads back to its node, and only the one way of writing it does.
TEST(NodeName, OneNameEach) {
  EXPECT_EQ(certificate_name(NodeId(17)), "node-17");
  for (const std::uint64_t node : {std::uint64_t{1}, std::uint64_t{17}, UINT64_MAX})
    EXPECT_EQ(certified_node(certificate_name(NodeId(node))), NodeId(node));
  for (const char* name : {"", "node-", "node-0", "node-07", "node-1x", "node-+1", "node- 1", "Node-1",
                           "nodes", "node-18446744073709551616"})
    EXPECT_EQ(certified_node(name), std::nullopt) << name;
}

}  // namespace
}  // namespace gossamer
