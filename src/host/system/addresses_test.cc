// SPDX-License-Identifier: Apache-2.0
#include "host/system/addresses.h"

#include <gtest/gtest.h>

namespace gossamer::host {
namespace {

// An address in digits is found once, for either use; what cannot be a name is an error that says where.
TEST(Addresses, Found) {
  for (const AddressUse use : {AddressUse::kReach, AddressUse::kListen}) {
    const auto found = addresses_of({.host = "127.0.0.1", .port = 7070}, use);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ((*found)->ai_family, AF_INET);
    EXPECT_EQ((*found)->ai_next, nullptr);
    const auto none = addresses_of({.host = "no name", .port = 7070}, use);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().where, "no name:7070");
    EXPECT_EQ(none.error().what, "cannot find the name");
  }
}

}  // namespace
}  // namespace gossamer::host
