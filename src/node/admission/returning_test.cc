// SPDX-License-Identifier: Apache-2.0
//
// Nodes whose certificates have ended: what the coordinator decides about their proofs, and both ends over a
// real door and real gRPC.
#include "node/admission/returning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/node_name.h"
#include "cluster/admission/enrolment.h"
#include "cluster/control/view.h"
#include "host/posix/clock.h"
#include "host/sim/disk.h"
#include "node/admission/enrolling.h"

namespace gossamer::node {
namespace {

using ::testing::HasSubstr;

constexpr double kDaySeconds = 24 * 3600;
constexpr double kToday = 1.8e9;
constexpr NodeId kKnown{7};
constexpr NodeId kExpelled{8};

// A certificate of a week that was signed so many days ago.
host::Validity week_from(double days_ago, double now = kToday) {
  return {.now_seconds = now - days_ago * kDaySeconds, .days = 7};
}

// A run that knows two nodes, one of them expelled.
struct KnowingRun {
  explicit KnowingRun(double now = kToday)
      : authority(*host::make_authority("run-1",
                                        {.now_seconds = now - 1000 * kDaySeconds, .days = kAuthorityDays})) {}

  [[nodiscard]] std::string certificate(const std::string& request, const std::string& name,
                                        const host::Validity& validity) const {
    return *host::sign_request(authority, request, name, validity);
  }
  [[nodiscard]] Result<NodeId> check(const cluster::RenewProof& proof, double now = kToday) const {
    return check_body(cluster::renew_request(proof), now);
  }
  [[nodiscard]] Result<NodeId> check_body(const std::string& body, double now = kToday) const {
    return check_return(body, {.authority = authority.certificate,
                               .now_seconds = now,
                               .knows = [](NodeId node) { return node == kKnown || node == kExpelled; },
                               .expelled = [](NodeId node) { return node == kExpelled; }});
  }

  host::KeyAndCertificate authority;
};

void expect_refused(const Result<NodeId>& result, const std::string& words) {
  ASSERT_FALSE(result.ok()) << words;
  EXPECT_EQ(result.error().kind, ErrorKind::kRefused) << result.error().message();
  EXPECT_THAT(result.error().message(), HasSubstr(words));
}

// Claim: a node that the run knows is accepted however long ago its certificate has ended, and also while it
// holds.
TEST(CheckReturn, KnownNodes) {
  const KnowingRun run;
  const auto own = *host::make_request();
  for (const double days_ago : {-0.5, 0.0, 3.5, 7.0, 8.0, 30.0, 365.0, 999.0}) {
    const auto node = run.check(
        {.request = own.request, .certificate = run.certificate(own.request, "node-7", week_from(days_ago))});
    ASSERT_TRUE(node.ok()) << days_ago << ": " << node.error().message();
    EXPECT_EQ(*node, kKnown);
  }
}

// Claim: the run's records decide. A node that was expelled, that the run has not numbered, that is the
// coordinator or that is no node gets nothing, each in its own words.
TEST(CheckReturn, TheRecordsDecide) {
  const KnowingRun run;
  const auto own = *host::make_request();
  const auto named = [&](const std::string& name) {
    return run.check(
        {.request = own.request, .certificate = run.certificate(own.request, name, week_from(8))});
  };
  EXPECT_TRUE(named("node-7").ok());
  expect_refused(named("node-8"), "this node was expelled from the run");
  expect_refused(named("node-9"), "the run does not know this node");
  expect_refused(named("node-1"), "only a node's certificate is renewed");
  expect_refused(named("someone"), "only a node's certificate is renewed");
}

// Claim: only this run's authority makes a node, and only while it holds. Its own certificate is none. A
// certificate that has not begun is no refusal: the coordinator's clock may be set right.
TEST(CheckReturn, OnlyThisAuthority) {
  const KnowingRun run;
  const KnowingRun other;
  const auto own = *host::make_request();
  const auto shows = [&](const std::string& certificate, double now = kToday) {
    return run.check({.request = own.request, .certificate = certificate}, now);
  };
  const std::string good = run.certificate(own.request, "node-7", week_from(8));
  EXPECT_TRUE(shows(good).ok());
  expect_refused(shows(other.certificate(own.request, "node-7", week_from(8))), "does not hold");
  const auto early = shows(run.certificate(own.request, "node-7", week_from(-3)));
  EXPECT_EQ(early.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(early.error().message(), HasSubstr("not yet valid"));
  expect_refused(shows(other.certificate(own.request, "node-7", week_from(-3))), "does not hold");
  EXPECT_TRUE(shows(good, kToday + 2649 * kDaySeconds).ok());
  expect_refused(shows(good, kToday + 2651 * kDaySeconds), "expired");

  // Signed by a node's key in place of the authority's, and by itself.
  const host::KeyAndCertificate node{.key = own.key, .certificate = good};
  expect_refused(shows(*host::sign_request(node, own.request, "node-7", week_from(8))), "does not hold");
  const auto self_made = *host::make_authority("node-7", week_from(8));
  expect_refused(shows(self_made.certificate), "does not hold");
  const auto by_authority = host::request_for(run.authority.key);
  expect_refused(run.check({.request = *by_authority, .certificate = run.authority.certificate}),
                 "only a node's certificate is renewed");
}

// Claim: a certificate without its key proves nothing. Any request of its own key is good, the first one too,
// and that of another key is refused.
TEST(CheckReturn, OnlyItsKey) {
  const KnowingRun run;
  const auto own = *host::make_request();
  const auto thief = *host::make_request();
  const std::string certificate = run.certificate(own.request, "node-7", week_from(8));
  EXPECT_TRUE(run.check({.request = own.request, .certificate = certificate}).ok());
  EXPECT_TRUE(run.check({.request = *host::request_for(own.key), .certificate = certificate}).ok());
  expect_refused(run.check({.request = thief.request, .certificate = certificate}), "not signed by the key");
}

// Claim: no change of one character of a proof lets another node in, and no answer is anything but a refusal
// or bad data.
TEST(CheckReturn, Forged) {
  const KnowingRun run;
  const auto own = *host::make_request();
  const std::string certificate = run.certificate(own.request, "node-7", week_from(8));
  const auto forged = [](std::string text, std::size_t at) {
    text[at] = text[at] == 'A' ? 'B' : 'A';
    return text;
  };
  std::size_t refused = 0;
  const auto look = [&](const cluster::RenewProof& proof) {
    const auto result = run.check(proof);
    if (result.ok()) {
      EXPECT_EQ(*result, kKnown);
      return;
    }
    ++refused;
    EXPECT_TRUE(result.error().kind == ErrorKind::kRefused || result.error().kind == ErrorKind::kBadData);
  };
  for (std::size_t at = 0; at < certificate.size(); ++at)
    look({.request = own.request, .certificate = forged(certificate, at)});
  for (std::size_t at = 0; at < own.request.size(); ++at)
    look({.request = forged(own.request, at), .certificate = certificate});
  // A few bits of the encoding mean nothing, such as the last ones of base64.
  EXPECT_GT(refused + 20, certificate.size() + own.request.size());
}

// Claim: a question without a proof is refused, and bytes that are no proof are bad data.
TEST(CheckReturn, NoProof) {
  const KnowingRun run;
  const auto own = *host::make_request();
  expect_refused(run.check({.request = own.request}), "needs a certificate of the run");
  expect_refused(run.check_body(""), "needs a certificate of the run");
  EXPECT_EQ(run.check_body("\xff").error().kind, ErrorKind::kBadData);
  EXPECT_EQ(run.check({.request = own.request, .certificate = "x"}).error().kind, ErrorKind::kBadData);
  EXPECT_EQ(run.check({.request = "x", .certificate = run.certificate(own.request, "node-7", week_from(8))})
                .error()
                .kind,
            ErrorKind::kBadData);
}

// A run with an open control port. Renew of a stranger is answered as a coordinator does, or by `lies`. Every
// other question gets the asker's name.
class AtTheDoor {
 public:
  AtTheDoor() : run_(clock_.wall_seconds()) {
    const auto own = *host::make_request();
    network_ = host::make_grpc_network(
        host::NetworkCredentials{.authority = run_.authority.certificate,
                                 .certificate = run_.certificate(own.request, "node-1", week()),
                                 .key = own.key},
        [this](host::NetworkEvent event) {
          if (auto* const asked = std::get_if<host::Asked>(&event))
            network_->answer(asked->question, answer(*asked));
        });
    at_ = *network_->listen({"127.0.0.1", 0}, host::Lane::kControl);
  }

  [[nodiscard]] double now() const { return clock_.wall_seconds(); }
  [[nodiscard]] host::Validity week() const { return week_from(0, now()); }
  // A node of this run whose certificate ended a day ago.
  [[nodiscard]] Membership ended(NodeId node) const {
    const auto own = *host::make_request();
    return {.node = node,
            .run = "run-1",
            .credentials = {
                .authority = run_.authority.certificate,
                .certificate = run_.certificate(own.request, certificate_name(node), week_from(8, now())),
                .key = own.key}};
  }
  [[nodiscard]] Result<Membership> come_back(const Membership& membership) const {
    return node::come_back(membership, {.at = at_, .now_seconds = now()});
  }
  [[nodiscard]] Result<std::string> ask(const Membership& membership, const std::string& method) const {
    return ask_once({.at = at_, .credentials = membership.credentials, .question = {.method = method}});
  }
  [[nodiscard]] const KnowingRun& run() const { return run_; }
  void lie(std::string answer) { lie_ = std::move(answer); }

 private:
  Result<std::string> answer(const host::Asked& asked) {
    if (!asked.peer.certificate.empty() || asked.method != cluster::kRenewMethod)
      return "asked by '" + asked.peer.certificate + "'";
    if (!lie_.empty()) return lie_;
    const auto node = run_.check_body(asked.body, now());
    if (!node.ok()) return node.error();
    return cluster::renew(asked.body, *node, signer_of(run_.authority, week()));
  }

  host::PosixClock clock_;
  KnowingRun run_;
  std::string lie_;
  std::unique_ptr<host::Network> network_;
  host::Endpoint at_;
};

class Returning : public ::testing::Test {
 protected:
  void SetUp() override { (void)std::signal(SIGPIPE, SIG_IGN); }
  AtTheDoor coordinator_;
};

// Claim: a node whose certificate has ended gets one for the same number and key, which its directory keeps
// and gRPC takes.
TEST_F(Returning, ComesBack) {
  const Membership before = coordinator_.ended(kKnown);
  host::SimDisk disk{{}};
  ASSERT_TRUE(keep_membership(disk, "node", before).ok());
  EXPECT_FALSE(load_membership(disk, "node", coordinator_.now()).ok());
  const auto kept = ended_membership(disk, "node", coordinator_.now());
  ASSERT_TRUE(kept);
  const auto after = coordinator_.come_back(*kept);
  ASSERT_TRUE(after.ok()) << after.error().message();
  EXPECT_EQ(after->node, kKnown);
  EXPECT_EQ(after->run, "run-1");
  EXPECT_EQ(after->credentials.key, before.credentials.key);
  EXPECT_GT(host::time_of(after->credentials.certificate)->until, coordinator_.now() + 6 * kDaySeconds);
  ASSERT_TRUE(keep_membership(disk, "node", *after).ok());
  EXPECT_TRUE(load_membership(disk, "node", coordinator_.now()).ok());
  EXPECT_EQ(*coordinator_.ask(*after, "Begin"), "asked by 'node-7'");
}

// Claim: an ended certificate is worth nothing at gRPC, for Renew as for all else.
TEST_F(Returning, NothingElse) {
  const Membership ended = coordinator_.ended(kKnown);
  for (const char* method : {"Begin", "Lead", "Status", "Renew"}) {
    const auto answer = coordinator_.ask(ended, method);
    ASSERT_FALSE(answer.ok()) << method << ": " << *answer;
    EXPECT_EQ(answer.error().kind, ErrorKind::kFailed);
  }
}

// Claim: a refusal reaches the node as one, in the coordinator's words.
TEST_F(Returning, Refusals) {
  const auto expelled = coordinator_.come_back(coordinator_.ended(kExpelled));
  ASSERT_FALSE(expelled.ok());
  EXPECT_EQ(expelled.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(expelled.error().message(), HasSubstr("this node was expelled from the run"));
  const auto unknown = coordinator_.come_back(coordinator_.ended(NodeId{9}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(unknown.error().message(), HasSubstr("gossamer token create"));
}

// Claim: a node sends its proof to its own run alone. The coordinator of another one is not asked.
TEST_F(Returning, AnotherRun) {
  const AtTheDoor other;
  const auto back = coordinator_.come_back(other.ended(kKnown));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().kind, ErrorKind::kFailed);
}

// Claim: a node believes no answer with a certificate for another key, for another node, or of another
// authority, nor one that has ended already.
TEST_F(Returning, LyingAnswers) {
  const Membership ended = coordinator_.ended(kKnown);
  const auto own = *host::request_for(ended.credentials.key);
  const auto foreign = *host::make_request();
  const KnowingRun& run = coordinator_.run();
  const auto certified = [](std::string certificate) {
    return *cluster::renew(cluster::renew_request({.request = {}}), kKnown,
                           [&](const auto&...) { return Result<std::string>(std::move(certificate)); });
  };
  struct Lie {
    std::string answer;
    ErrorKind kind;
    const char* words;
  };
  const std::vector<Lie> lies{
      {"\xff", ErrorKind::kBadData, "cannot read the answer"},
      {certified("garbage"), ErrorKind::kBadData, "cannot read the certificate"},
      {certified(run.certificate(foreign.request, "node-7", coordinator_.week())), ErrorKind::kBadData,
       "for another key"},
      {certified(run.certificate(own, "node-9", coordinator_.week())), ErrorKind::kBadData,
       "of another node"},
      {certified(KnowingRun(coordinator_.now()).certificate(own, "node-7", coordinator_.week())),
       ErrorKind::kBadData, "does not hold"},
      {certified(ended.credentials.certificate), ErrorKind::kFailed, "look at the clocks"}};
  for (const Lie& lie : lies) {
    coordinator_.lie(lie.answer);
    const auto back = coordinator_.come_back(ended);
    ASSERT_FALSE(back.ok()) << lie.words;
    EXPECT_EQ(back.error().kind, lie.kind) << back.error().message();
    EXPECT_THAT(back.error().message(), HasSubstr(lie.words));
  }
}

}  // namespace
}  // namespace gossamer::node
