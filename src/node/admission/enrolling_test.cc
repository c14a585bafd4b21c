// SPDX-License-Identifier: Apache-2.0
//
// Enrolling over real gRPC with TLS, against the coordinator's half with a token book in memory.
#include "node/admission/enrolling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <memory>

#include "base/hex.h"
#include "base/node_name.h"
#include "cluster/control/view.h"
#include "host/posix/clock.h"
#include "host/sim/disk.h"

namespace gossamer::node {
namespace {

using ::testing::HasSubstr;

constexpr cluster::WireRange kWire{.least = 1, .most = 1};

// A run with an open control port that answers Enroll from within the sink.
class Coordinator {
 public:
  explicit Coordinator(const std::string& run, cluster::WireRange wire = kWire)
      : validity_{.now_seconds = clock_.wall_seconds(), .days = 2},
        credentials_(*create_run_credentials(disk_, "run", run, validity_)),
        identity_{.run = run, .authority = credentials_.authority.certificate, .wire = wire},
        signer_(signer_of(credentials_.authority, validity_)) {
    network_ = host::make_grpc_network(credentials_.own.credentials, [this](host::NetworkEvent event) {
      if (auto* const asked = std::get_if<host::Asked>(&event))
        network_->answer(asked->question, answer(*asked));
    });
    at_ = *network_->listen({"127.0.0.1", 0}, host::Lane::kControl);
  }

  [[nodiscard]] std::int64_t now() const { return static_cast<std::int64_t>(clock_.wall_seconds()); }
  [[nodiscard]] const host::Endpoint& at() const { return at_; }
  [[nodiscard]] cluster::TokenBook& book() { return book_; }
  [[nodiscard]] const RunCredentials& credentials() const { return credentials_; }

  // So many questions from now on come while it does not lead.
  void leads_after(int questions) { not_led_ = questions; }
  [[nodiscard]] int questions_before_it_leads() const { return not_led_; }

  // A token of this run that expires after `lifetime` seconds.
  [[nodiscard]] cluster::Token token(std::int64_t lifetime) {
    cluster::Token token{.at = at_,
                         .id = to_hex(*host::random_secret(cluster::kTokenIdBytes)),
                         .secret = *host::random_secret(cluster::kSecretBytes),
                         .authority = *host::fingerprint(identity_.authority)};
    EXPECT_TRUE(book_.add(cluster::record_of(token, now(), now() + lifetime, "")).ok());
    return token;
  }

 private:
  Result<std::string> answer(const host::Asked& asked) {
    if (asked.method != cluster::kEnrollMethod) {
      return Error{.what = "no such question: " + asked.method, .got = "from " + asked.peer.certificate};
    }
    if (not_led_ > 0) {
      --not_led_;
      return Error{.what = std::string(cluster::kLeadsNotNow)};
    }
    const auto request = cluster::check_enroll(
        asked.body,
        {.run = identity_, .tokens = book_, .now = now(), .used = [](const std::string&) { return 0; }});
    if (!request.ok()) return request.error();
    return cluster::admit(*request, NodeId{++last_node_}, identity_, signer_);
  }

  host::PosixClock clock_;
  host::Validity validity_;
  host::SimDisk disk_{{}};
  RunCredentials credentials_;
  cluster::RunIdentity identity_;
  cluster::Signer signer_;
  cluster::TokenBook book_{disk_, "run/tokens"};
  std::atomic<int> not_led_ = 0;
  std::atomic<std::uint64_t> last_node_{cluster::kCoordinatorNode.value};
  std::unique_ptr<host::Network> network_;
  host::Endpoint at_;
};

class Enrolling : public ::testing::Test {
 protected:
  void SetUp() override { (void)std::signal(SIGPIPE, SIG_IGN); }

  [[nodiscard]] Result<Membership> try_with(const cluster::Token& token) const {
    return enroll({.token = token,
                   .wire = kWire,
                   .program = "test",
                   .now_seconds = clock_.wall_seconds(),
                   .asks_again = 3,
                   .pause = from_milliseconds(1)});
  }
  // Expects a refusal for good, with these words.
  void expect_refused(const cluster::Token& token, const std::string& words) const {
    const auto result = try_with(token);
    ASSERT_FALSE(result.ok()) << words;
    EXPECT_EQ(result.error().kind, ErrorKind::kRefused) << result.error().message();
    EXPECT_THAT(result.error().message(), HasSubstr(words));
  }

  host::PosixClock clock_;
};

// A good token makes nodes, each with a number of its own. The files that a node keeps in its directory are
// enough to be known by that name after a restart, without the token.
TEST_F(Enrolling, GoodToken) {
  Coordinator coordinator("run-1");
  const cluster::Token token = *cluster::decode_token(cluster::encode_token(coordinator.token(60)));
  host::SimDisk disk{{}};
  for (const std::uint64_t number : {2U, 3U}) {
    const auto membership = try_with(token);
    ASSERT_TRUE(membership.ok()) << membership.error().message();
    EXPECT_EQ(membership->node, NodeId{number});
    EXPECT_EQ(membership->run, "run-1");
    ASSERT_TRUE(keep_membership(disk, "node", *membership).ok());
    const auto loaded = load_membership(disk, "node", clock_.wall_seconds());
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->node, NodeId{number});
    const auto answer = ask_once(
        {.at = coordinator.at(), .credentials = loaded->credentials, .question = {.method = "Other"}});
    EXPECT_EQ(answer.error().what, "no such question: Other");
    EXPECT_EQ(answer.error().got, "from " + certificate_name(NodeId{number}));
  }
}

// A coordinator whose store is slow leads a moment later, and is asked again. It is not asked for ever.
TEST_F(Enrolling, CoordinatorThatLeadsLater) {
  Coordinator coordinator("run-1");
  coordinator.leads_after(3);
  EXPECT_TRUE(try_with(coordinator.token(60)).ok());
  EXPECT_EQ(coordinator.questions_before_it_leads(), 0);
  coordinator.leads_after(5);
  const auto late = try_with(coordinator.token(60));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().what, cluster::kLeadsNotNow);
  EXPECT_EQ(coordinator.questions_before_it_leads(), 1);
}

// Tokens that are expired, revoked, of a wrong secret or unknown are refused for good, each in its own words.
TEST_F(Enrolling, BadTokens) {
  Coordinator coordinator("run-1");
  expect_refused(coordinator.token(-1), "has expired");
  const cluster::Token token = coordinator.token(60);
  cluster::Token other = token;
  other.secret[0] = static_cast<char>(other.secret[0] ^ 1);
  expect_refused(other, "secret is wrong");
  other = token;
  other.id = "0123456789abcdef";
  expect_refused(other, "not known to this run");
  EXPECT_TRUE(try_with(token).ok());
  ASSERT_TRUE(coordinator.book().revoke(token.id, coordinator.now()).ok());
  expect_refused(token, "was revoked");
}

// A token of another run is refused before its secret is sent, also if both runs have one name.
TEST_F(Enrolling, OtherRun) {
  Coordinator ours("run-1");
  Coordinator theirs("run-1");
  cluster::Token token = theirs.token(60);
  token.at = ours.at();
  expect_refused(token, "another run");
}

// A refusal for want of a common wire version names both ranges.
TEST_F(Enrolling, OtherVersion) {
  Coordinator coordinator("run-1", {.least = 3, .most = 5});
  expect_refused(coordinator.token(60), "got version 1; expected versions 3 to 5");
}

// Other servers on the port are told apart: one without TLS, and one that is not there.
TEST_F(Enrolling, OtherServers) {
  Coordinator coordinator("run-1");
  cluster::Token token = coordinator.token(60);
  const auto plain = host::make_grpc_network(std::nullopt, [](const host::NetworkEvent&) {});
  token.at = *plain->listen({"127.0.0.1", 0}, host::Lane::kControl);
  auto result = try_with(token);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(result.error().message(), HasSubstr("no TLS there"));
  token.at.port = 1;
  result = try_with(token);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("127.0.0.1:1: cannot connect"));
}

// An answer that does not fit is not believed: no answer at all, another's certificate, another name.
TEST_F(Enrolling, LyingAnswers) {
  Coordinator honest("run-1");
  const RunCredentials& credentials = honest.credentials();
  const auto request = *host::make_request();
  const host::Validity validity{.now_seconds = clock_.wall_seconds(), .days = 2};
  const auto answer_with = [&](const std::string& certificate, NodeId node) {
    cluster::RunIdentity identity{
        .run = "run-1", .authority = credentials.authority.certificate, .wire = kWire};
    wire::EnrollRequest asked;
    return *cluster::admit(asked, node, identity, [&](const std::string&, const std::string&) {
      return Result<std::string>(certificate);
    });
  };
  const std::string foreign = *host::sign_request(credentials.authority, request.request, "node-9", validity);
  for (const auto& [answer, words] :
       {std::pair{std::string("\xff"), "cannot read the answer"}, std::pair{std::string(), "lacks something"},
        std::pair{answer_with(foreign, NodeId{9}), "for another key"},
        std::pair{answer_with("garbage", NodeId{9}), "cannot read the certificate"}}) {
    std::unique_ptr<host::Network> network;
    network = host::make_grpc_network(credentials.own.credentials,
                                      [&network, text = answer](const host::NetworkEvent& event) {
                                        if (const auto* asked = std::get_if<host::Asked>(&event))
                                          network->answer(asked->question, text);
                                      });
    cluster::Token token = honest.token(60);
    token.at = *network->listen({"127.0.0.1", 0}, host::Lane::kControl);
    const auto result = try_with(token);
    ASSERT_FALSE(result.ok()) << words;
    EXPECT_EQ(result.error().kind, ErrorKind::kBadData);
    EXPECT_THAT(result.error().message(), HasSubstr(words));
  }
}

// Claim: an answer is not believed that names another node, or another run, than its certificate does.
TEST_F(Enrolling, AnswersThatContradictTheirCertificate) {
  struct Case {
    std::string run;
    std::string certified;
    bool believed = false;
  };
  const Coordinator honest("run-1");
  const RunCredentials& credentials = honest.credentials();
  const host::Validity validity{.now_seconds = clock_.wall_seconds(), .days = 2};
  for (const Case& one :
       {Case{.run = "run-1", .certified = "node-8", .believed = true},
        Case{.run = "run-1", .certified = "node-9"}, Case{.run = "run-2", .certified = "node-8"}}) {
    SCOPED_TRACE(one.certified + " of " + one.run);
    const cluster::RunIdentity identity{
        .run = one.run, .authority = credentials.authority.certificate, .wire = kWire};
    const cluster::Signer signer = [&](const std::string& request, const std::string&) {
      return host::sign_request(credentials.authority, request, one.certified, validity);
    };
    std::unique_ptr<host::Network> network;
    network = host::make_grpc_network(
        credentials.own.credentials, [&network, &identity, &signer](const host::NetworkEvent& event) {
          const auto* const asked = std::get_if<host::Asked>(&event);
          if (asked == nullptr) return;
          wire::EnrollRequest request;
          EXPECT_TRUE(request.ParseFromString(asked->body));
          network->answer(asked->question, cluster::admit(request, NodeId{8}, identity, signer));
        });
    const cluster::Token token{.at = *network->listen({"127.0.0.1", 0}, host::Lane::kControl),
                               .id = "0123456789abcdef",
                               .secret = *host::random_secret(cluster::kSecretBytes),
                               .authority = *host::fingerprint(identity.authority)};
    const auto result = try_with(token);
    EXPECT_EQ(result.ok(), one.believed);
    if (result.ok()) {
      EXPECT_EQ(result->node, NodeId{8});
    } else {
      EXPECT_EQ(result.error().kind, ErrorKind::kBadData);
      EXPECT_THAT(result.error().message(), HasSubstr("not what the answer says"));
    }
  }
}

}  // namespace
}  // namespace gossamer::node
