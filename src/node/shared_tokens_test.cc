// SPDX-License-Identifier: Apache-2.0
#include "node/shared_tokens.h"

#include <fmt/format.h>
#include <gossamer/admission.pb.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "cluster/control/test_coordinator.h"
#include "host/api/question.h"
#include "host/sim/disk.h"

namespace gossamer::node {
namespace {

constexpr std::int64_t kWall = 1'800'000'000;

cluster::TokenRecord numbered(std::uint64_t number) {
  return {.id = fmt::format("{:016x}", number),
          .secret_sha256 = std::string(64, 'a'),
          .created = kWall - 10,
          .expires = kWall + 1000,
          .revoked = std::nullopt,
          .note = {}};
}

// A coordinator that shares its store, and the tokens of its directory.
class SharedTokensTest : public cluster::CoordinatorTest {
 protected:
  [[nodiscard]] TokenShare::Lead lead_of(std::uint64_t generation) const {
    return {.generation = Generation(generation), .wall_seconds = kWall, .now = now_};
  }
  [[nodiscard]] bool revoked() { return book_.list()->records.front().revoked.has_value(); }

  host::SimDisk disk_;
  cluster::TokenBook book_{disk_, "/run/tokens"};
  TokenShare share_;
};

// Claim: a lead that cannot write its directory has not taken up the store's tokens, and says so, until it
// can. It tries again each second, and tells the errors once. Each lead begins anew.
TEST_F(SharedTokensTest, AreTriedAgainUntilTheyAreHere) {
  ASSERT_TRUE(disk_.make_directories("/run").ok() && book_.add(numbered(1)).ok());
  cluster::TokenRecord gone = numbered(1);
  gone.revoked = kWall - 1;
  coordinator_->keep_token(gone.id, cluster::to_text(gone));
  EXPECT_FALSE(share_.shared(Generation(1)).ok());
  disk_.restart_count({.capacity_bytes = 0});
  EXPECT_EQ(share_.share(book_, *coordinator_, lead_of(1)).size(), 1U);
  const auto later = share_.shared(Generation(1));
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(later.error().kind, ErrorKind::kFailed);
  EXPECT_FALSE(revoked());
  EXPECT_EQ(coordinator_->tokens().at(gone.id), cluster::to_text(gone));
  now_ = now_ + from_seconds(1);
  EXPECT_TRUE(share_.share(book_, *coordinator_, lead_of(1)).empty());
  EXPECT_FALSE(share_.shared(Generation(1)).ok());
  disk_.restart_count({});
  now_ = now_ + from_seconds(0.9);
  EXPECT_TRUE(share_.share(book_, *coordinator_, lead_of(1)).empty());
  EXPECT_FALSE(share_.shared(Generation(1)).ok());
  now_ = now_ + from_seconds(0.1);
  EXPECT_TRUE(share_.share(book_, *coordinator_, lead_of(1)).empty());
  EXPECT_TRUE(share_.shared(Generation(1)).ok());
  EXPECT_TRUE(revoked());
  EXPECT_EQ(coordinator_->tokens().at(gone.id), cluster::to_text(gone));
  EXPECT_FALSE(share_.shared(Generation(2)).ok());
  EXPECT_TRUE(share_.share(book_, *coordinator_, lead_of(2)).empty());
  EXPECT_TRUE(share_.shared(Generation(2)).ok());
}

// Claim: a record in the store that cannot be read is told, and keeps no stranger out.
TEST_F(SharedTokensTest, DamageHoldsNothingUp) {
  coordinator_->keep_token("0000000000000001", "garbage");
  EXPECT_EQ(share_.share(book_, *coordinator_, lead_of(1)).size(), 1U);
  EXPECT_TRUE(share_.shared(Generation(1)).ok());
}

// Claim: any number of tokens is told in questions that may be asked, each token once. A directory without
// tokens asks one question, as the answer has those of the others.
TEST_F(SharedTokensTest, AreToldInPieces) {
  ASSERT_EQ(token_questions(book_, kWall)->size(), 1U);
  ASSERT_TRUE(disk_.make_directories("/run").ok());
  constexpr std::uint64_t kTokens = 1000;
  for (std::uint64_t i = 0; i < kTokens; ++i) ASSERT_TRUE(book_.add(numbered(i)).ok());
  const auto questions = token_questions(book_, kWall);
  ASSERT_TRUE(questions.ok());
  std::set<std::string> told;
  for (const std::string& question : *questions) {
    EXPECT_LE(question.size(), host::kMaxQuestionBytes);
    wire::Tokens tokens;
    ASSERT_TRUE(tokens.ParseFromString(question));
    for (const std::string& record : tokens.records()) EXPECT_TRUE(told.insert(record).second);
  }
  EXPECT_EQ(told.size(), kTokens);
  EXPECT_LE(questions->size(), 6U);
}

}  // namespace
}  // namespace gossamer::node
