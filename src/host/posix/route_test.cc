// SPDX-License-Identifier: Apache-2.0
#include "host/posix/route.h"

#include <gtest/gtest.h>

namespace gossamer::host {
namespace {

// A machine reaches itself from loopback. The route has an address in place of the name, and asking for that
// address gives the same route.
TEST(Route, ToItself) {
  const auto by_name = route_to({"localhost", 7});
  ASSERT_TRUE(by_name.ok()) << by_name.error().message();
  EXPECT_TRUE(is_loopback(by_name->own));
  EXPECT_TRUE(is_loopback(by_name->to.host) && by_name->to.host != "localhost");
  EXPECT_EQ(by_name->to.port, 7);
  EXPECT_EQ(route_to(by_name->to)->own, by_name->own);
  EXPECT_FALSE(route_to({"no such name", 7}).ok());
}

// A machine has its own addresses, and no others: 192.0.2.0/24 is for documents.
TEST(Route, HasItsAddresses) {
  EXPECT_TRUE(has_address("127.0.0.1"));
  EXPECT_FALSE(has_address("192.0.2.1"));
  EXPECT_FALSE(has_address("no such name"));
}

// The stack's name stays, and can be sent.
TEST(Route, NamesTheStack) {
  EXPECT_EQ(network_stack(), network_stack());
  EXPECT_EQ(network_stack().size(), 16u);
}

}  // namespace
}  // namespace gossamer::host
