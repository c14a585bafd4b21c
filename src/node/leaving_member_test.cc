// SPDX-License-Identifier: Apache-2.0
//
// What a member does that was told to stop and that nobody relieves.
#include <gtest/gtest.h>

#include "node/member_node.h"

namespace gossamer::node {
namespace {

// Claim: a member waits until it is late. Then it leaves, as others may have copies of its part.
TEST(LeavingMember, WaitsUntilItIsLate) {
  const LeavingMember member{.in_view = true, .others = true};
  EXPECT_EQ(leaving_now(member), Leaving::kWaits);
  LeavingMember late = member;
  late.late = true;
  EXPECT_EQ(leaving_now(late), Leaving::kLeaves);
}

// Claim: a member that nobody leads saves its part at once, and need not be late. One that is in no view has
// nothing to save.
TEST(LeavingMember, SavesByItselfWhereNobodyLeads) {
  EXPECT_EQ(leaving_now({.in_view = true, .nobody_leads = true, .others = true}), Leaving::kSaves);
  EXPECT_EQ(leaving_now({.nobody_leads = true, .others = true}), Leaving::kWaits);
  EXPECT_EQ(leaving_now({.late = true, .nobody_leads = true, .others = true}), Leaving::kLeaves);
}

// Claim: where all drain, or all rest, no copy may take the place of a late member's part, and it saves
// first. While it is not late, others may still take the part over.
TEST(LeavingMember, SavesWhereNoCopyMayTakeItsPlace) {
  for (const bool late : {false, true}) {
    const Leaving what = late ? Leaving::kSaves : Leaving::kWaits;
    EXPECT_EQ(leaving_now({.late = late, .in_view = true, .others = true, .all_drain = true}), what);
    EXPECT_EQ(leaving_now({.late = late, .in_view = true, .others = true, .at_rest = true}), what);
  }
  // A view without members has nobody whose draining would say anything.
  EXPECT_EQ(leaving_now({.late = true, .all_drain = true, .at_rest = true}), Leaving::kLeaves);
}

// Claim: whatever the others do, a member saves once. It then waits for what it saves until it is late again,
// and leaves.
TEST(LeavingMember, SavesOnce) {
  for (unsigned bits = 0; bits < 32; ++bits) {
    LeavingMember member{.saves = true,
                         .in_view = (bits & 1) != 0,
                         .nobody_leads = (bits & 2) != 0,
                         .others = (bits & 4) != 0,
                         .all_drain = (bits & 8) != 0,
                         .at_rest = (bits & 16) != 0};
    EXPECT_EQ(leaving_now(member), Leaving::kWaits) << bits;
    member.late = true;
    EXPECT_EQ(leaving_now(member), Leaving::kLeaves) << bits;
  }
}

// Claim: a late member stays for bytes that it brings, once it has saved its part, or others have it. It
// saves first where it has to, and does not stay for what it wrote while it still has a part.
TEST(LeavingMember, StaysWhileItBrings) {
  EXPECT_EQ(leaving_now({.late = true, .brings = true}), Leaving::kWaits);
  EXPECT_EQ(leaving_now({.late = true, .saves = true, .in_view = true, .brings = true}), Leaving::kWaits);
  EXPECT_EQ(leaving_now({.late = true, .saves = true, .in_view = true}), Leaving::kLeaves);
  EXPECT_EQ(leaving_now({.late = true, .in_view = true, .others = true, .brings = true}), Leaving::kLeaves);
  EXPECT_EQ(leaving_now({.late = true, .in_view = true, .others = true, .all_drain = true, .brings = true}),
            Leaving::kSaves);
}

}  // namespace
}  // namespace gossamer::node
