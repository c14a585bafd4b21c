// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/enrolment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/admission/test_tokens.h"
#include "host/sim/disk.h"

namespace gossamer::cluster {
namespace {

using ::testing::HasSubstr;

const RunIdentity kRun{.run = "run-1", .authority = "AUTHORITY", .wire = {2, 4}};

class EnrolmentTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(book_.add(record_of(token_, kNow, kNow + 60, "")).ok()); }

  [[nodiscard]] Result<wire::EnrollRequest> check(const EnrollProof& proof) {
    return check_enroll(enroll_request(proof), rules());
  }
  [[nodiscard]] EnrollRules rules() {
    return {.run = kRun, .tokens = book_, .now = kNow, .used = [this](const std::string& id) {
              return id == token_.id ? used_ : 1000;
            }};
  }

  Token token_ = token_of('a');
  host::SimDisk disk_{{}};
  TokenBook book_{disk_, "tokens"};
  std::uint64_t used_ = 0;
};

// A token of three uses lets in three nodes. Afterwards it is refused in words of its own. A wrong secret
// says nothing about uses.
TEST_F(EnrolmentTest, Uses) {
  TokenRecord record = record_of(token_of('b'), kNow, kNow + 60, "");
  record.uses = 3;
  ASSERT_TRUE(book_.add(record).ok());
  token_ = token_of('b');
  for (used_ = 0; used_ < 6; ++used_) {
    const auto request = check({.token = token_, .request = "", .wire = {2, 2}, .program = ""});
    EXPECT_EQ(request.ok(), used_ < 3) << used_;
    if (request.ok()) continue;
    EXPECT_EQ(request.error().kind, ErrorKind::kRefused);
    EXPECT_THAT(request.error().what, HasSubstr("no uses left"));
  }
  Token wrong = token_;
  wrong.secret[5] = 'x';
  const auto refused = check({.token = wrong, .request = "", .wire = {2, 2}, .program = ""});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().what, HasSubstr("secret is wrong"));
}

// A good token becomes a certificate under the name of the node id given. The node reads the coordinator's
// answer, with the highest version of both.
TEST_F(EnrolmentTest, GoodToken) {
  const auto request = check({.token = token_, .request = "REQUEST", .wire = {1, 3}, .program = "p"});
  ASSERT_TRUE(request.ok()) << request.error().message();
  const auto answer = admit(*request, NodeId{17}, kRun, [](const std::string& text, const std::string& name) {
    return Result<std::string>(text + " signed for " + name);
  });
  ASSERT_TRUE(answer.ok());
  const auto enrolled = read_enroll_answer(*answer);
  ASSERT_TRUE(enrolled.ok());
  EXPECT_EQ(enrolled->node, NodeId{17});
  EXPECT_EQ(enrolled->run, "run-1");
  EXPECT_EQ(enrolled->certificate, "REQUEST signed for node-17");
  EXPECT_EQ(enrolled->authority, "AUTHORITY");
  EXPECT_EQ(enrolled->wire, 3U);
  const auto newer = check({.token = token_, .request = "REQUEST", .wire = {3, 5}, .program = "p"});
  ASSERT_TRUE(newer.ok()) << newer.error().message();
  const auto older_run =
      admit(*newer, NodeId{18}, kRun, [](const auto&...) { return Result<std::string>("C"); });
  ASSERT_TRUE(older_run.ok());
  EXPECT_EQ(read_enroll_answer(*older_run)->wire, 4U) << "the run's highest";
}

// All small ranges of versions: those with one in common pass, the others are refused with both ranges.
TEST_F(EnrolmentTest, WireRanges) {
  for (std::uint32_t least = 0; least <= 6; ++least) {
    for (std::uint32_t most = 0; most <= 6; ++most) {
      bool in_common = false;
      for (std::uint32_t version = least; version <= most; ++version)
        in_common = in_common || (version >= 2 && version <= 4);
      const auto request = check({.token = token_, .request = "", .wire = {least, most}, .program = ""});
      EXPECT_EQ(request.ok(), in_common) << least << " " << most;
      if (in_common) continue;
      EXPECT_EQ(request.error().kind, ErrorKind::kRefused);
      EXPECT_EQ(request.error().expected, "versions 2 to 4");
      EXPECT_THAT(request.error().got, HasSubstr(std::to_string(most)));
    }
  }
}

// A body that is no request is bad data. A wrong secret is the book's refusal. The signer's error reaches the
// asker.
TEST_F(EnrolmentTest, Refusals) {
  EXPECT_EQ(check_enroll("\xff\xff", rules()).error().kind, ErrorKind::kBadData);
  EXPECT_EQ(check_enroll("", rules()).error().kind, ErrorKind::kRefused);
  Token wrong = token_;
  wrong.secret[5] = 'x';
  const auto refused = check({.token = wrong, .request = "", .wire = {2, 2}, .program = ""});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().what, HasSubstr("secret is wrong"));
  const auto request = check({.token = token_, .request = "", .wire = {2, 2}, .program = ""});
  ASSERT_TRUE(request.ok());
  const auto unsigned_one = admit(*request, NodeId{1}, kRun, [](const std::string&, const std::string&) {
    return Result<std::string>(Error{.kind = ErrorKind::kBadData, .what = "no request"});
  });
  ASSERT_FALSE(unsigned_one.ok());
  EXPECT_EQ(unsigned_one.error().what, "no request");
  for (const char* answer : {"", "\xff", "\x08\x01"}) EXPECT_FALSE(read_enroll_answer(answer).ok());
}

// A node that renews gets a certificate under its own number, whatever its request says. Other bytes are bad
// data.
TEST(Renewing, KeepsTheName) {
  const Signer signer = [](const std::string& text, const std::string& name) {
    return Result<std::string>(text + " signed for " + name);
  };
  const auto answer = renew(renew_request({.request = "REQUEST"}), NodeId{7}, signer);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(*read_renew_answer(*answer), "REQUEST signed for node-7");
  EXPECT_EQ(renew("\xff", NodeId{7}, signer).error().kind, ErrorKind::kBadData);
  for (const char* wrong : {"", "\xff"}) EXPECT_FALSE(read_renew_answer(wrong).ok());
}

// Claim: both parts of a proof arrive, and the certificate is empty where none was sent.
TEST(Renewing, CarriesItsProof) {
  for (const char* certificate : {"", "CERTIFICATE"}) {
    const auto read = read_renew_request(renew_request({.request = "REQUEST", .certificate = certificate}));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->request, "REQUEST");
    EXPECT_EQ(read->certificate, certificate);
  }
  EXPECT_EQ(read_renew_request("\xff").error().kind, ErrorKind::kBadData);
}

}  // namespace
}  // namespace gossamer::cluster
