// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/accusations.h"

#include <gtest/gtest.h>

namespace gossamer::cluster {
namespace {

constexpr NodeId kAnna(2);
constexpr NodeId kBert(3);
constexpr NodeId kCleo(4);
constexpr NodeId kDora(5);
constexpr NodeId kNewcomer(9);

// Claim: a member that breaks a rule towards most others goes, and the verdict names the rule.
TEST(Accusations, MostOthersSaySo) {
  Accusations accusations;
  EXPECT_TRUE(accusations.says(kAnna, kDora, "a rule"));
  EXPECT_FALSE(accusations.settle({kAnna, kBert, kCleo, kDora}));
  EXPECT_TRUE(accusations.says(kBert, kDora, "a rule"));
  const auto verdict = accusations.settle({kAnna, kBert, kCleo, kDora});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->node, kDora);
  EXPECT_EQ(verdict->rule, "a rule");
}

// Claim: a liar fences nobody, neither with one accusation nor with one of everybody.
TEST(Accusations, OneWordIsNotEnough) {
  Accusations accusations;
  for (const NodeId of : {kBert, kCleo, kDora, kNewcomer}) {
    EXPECT_TRUE(accusations.says(kAnna, of, "a lie"));
    EXPECT_FALSE(accusations.settle({kAnna, kBert, kCleo, kDora}));
  }
  EXPECT_FALSE(accusations.settle({kAnna, kBert}));  // of two members either may lie
}

// Claim: two liars of four members that judge fence nobody: they are no more than half.
TEST(Accusations, HalfIsNotEnough) {
  Accusations accusations;
  (void)accusations.says(kAnna, kNewcomer, "a lie");
  (void)accusations.says(kBert, kNewcomer, "a lie");
  EXPECT_FALSE(accusations.settle({kAnna, kBert, kCleo, kDora}));
  EXPECT_TRUE(accusations.settle({kAnna, kBert, kCleo}));
}

// Claim: only members that judge count, and of a single one the word is enough against a joining member.
TEST(Accusations, JudgesAlone) {
  Accusations accusations;
  (void)accusations.says(kNewcomer, kAnna, "a lie");
  (void)accusations.says(kBert, kAnna, "a lie");
  EXPECT_FALSE(accusations.settle({kAnna, kBert, kCleo}));
  EXPECT_TRUE(accusations.says(kAnna, kNewcomer, "a rule"));
  const auto verdict = accusations.settle({kAnna});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->node, kNewcomer);
}

// Claim: the next life of an accused node begins with nothing, and so does that of an accuser.
TEST(Accusations, GoneIsForgotten) {
  Accusations accusations;
  (void)accusations.says(kAnna, kDora, "a rule");
  (void)accusations.says(kBert, kDora, "a rule");
  accusations.gone(kDora);
  EXPECT_FALSE(accusations.settle({kAnna, kBert, kCleo, kDora}));
  (void)accusations.says(kAnna, kDora, "a rule");
  accusations.gone(kAnna);
  (void)accusations.says(kBert, kDora, "a rule");
  EXPECT_FALSE(accusations.settle({kAnna, kBert, kCleo, kDora}));
}

// Claim: the words of one member take bounded memory, and a word that is repeated is no news.
TEST(Accusations, Bounded) {
  Accusations accusations;
  for (std::uint64_t of = 100; of < 100 + Accusations::kMostOfOne; ++of) {
    EXPECT_TRUE(accusations.says(kAnna, NodeId(of), "a lie"));
    EXPECT_FALSE(accusations.says(kAnna, NodeId(of), "a lie"));
  }
  EXPECT_FALSE(accusations.says(kAnna, kBert, "a lie"));
}

}  // namespace
}  // namespace gossamer::cluster
