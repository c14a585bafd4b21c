// SPDX-License-Identifier: Apache-2.0
#include "node/coordinator_node.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "base/node_name.h"
#include "cluster/admission/enrolment.h"
#include "engines/check/check_workload.h"
#include "host/api/files.h"
#include "host/grpc/authority_fetch.h"
#include "host/grpc/certificates.h"
#include "host/posix/clock.h"
#include "node/admission/enrolling.h"
#include "node/questions.h"
#include "run/test_machine.h"

namespace gossamer::node {
namespace {

// The machine's clock, whose date a test may set.
class SetClock final : public host::Clock {
 public:
  [[nodiscard]] Instant now() const override { return clock_.now() + from_seconds(later.load()); }
  [[nodiscard]] Duration process_cpu() const override { return clock_.process_cpu(); }
  [[nodiscard]] double wall_seconds() const override { return clock_.wall_seconds() + ahead.load(); }
  std::atomic<double> ahead = 0;  // seconds of the date alone
  std::atomic<double> later = 0;  // seconds that have passed

 private:
  host::PosixClock clock_;
};

// A coordinator that leads, with its files on a simulated disk. The test asks as strangers and users do.
class CoordinatorNodeTest : public ::testing::Test {
 protected:
  CoordinatorNodeTest() : store_(::testing::TempDir() + "coordinator_node_" + std::to_string(getpid())) {
    std::filesystem::remove(store_);
    CHECK(machine_.disk.make_directories("/run").ok());
  }
  ~CoordinatorNodeTest() override {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    node_.reset();
    std::filesystem::remove(store_);
  }

  void start() {
    CoordinatorOptions options;
    options.directory = "/run";
    options.state = "/state";
    options.listen = host::Endpoint{"127.0.0.1", 0};
    options.store = "sqlite:" + store_;
    options.tracks = workload_.tracks();
    options.report.log.level = LogLevel::kOff;
    auto started = CoordinatorNode::start(host_, std::move(options), workload_);
    ASSERT_TRUE(started.ok()) << started.error().message();
    node_ = *std::move(started);
    const auto token = node_->new_token("for the test");
    ASSERT_TRUE(token.ok()) << token.error().message();
    token_ = *cluster::decode_token(*token);
    thread_ = std::thread([this] { static_cast<void>(node_->run([this] { return over_.load(); })); });
  }
  [[nodiscard]] Result<Membership> join() {
    return enroll(
        {.token = token_, .wire = wire_range(), .program = "test", .now_seconds = clock_.wall_seconds()});
  }
  [[nodiscard]] Result<std::string> ask(const host::NetworkCredentials& as, const char* method,
                                        std::string body) {
    return ask_once({.at = node_->address(),
                     .credentials = as,
                     .question = {.method = method,
                                  .body = std::move(body),
                                  .timeout = from_seconds(20),
                                  .to = certificate_name(cluster::kCoordinatorNode)}});
  }
  [[nodiscard]] Result<std::string> renew(const Membership& of) {
    return ask(of.credentials, cluster::kRenewMethod,
               cluster::renew_request({.request = *host::request_for(of.credentials.key)}));
  }
  [[nodiscard]] std::string own_certificate() {
    return *host::read_text(machine_.disk, "/run/credentials/certificate.pem");
  }
  // Only a failure reaches the deadline.
  void wait_until(const std::function<bool()>& there) {
    const Instant deadline = clock_.now() + from_seconds(10);
    while (!there() && clock_.now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(there());
  }
  // From now on nothing more can be written, or everything again.
  void fill_disk() { machine_.disk.restart_count({.capacity_bytes = 0}); }
  void empty_disk() { machine_.disk.restart_count({}); }
  [[nodiscard]] bool revoked() {
    const auto list = cluster::TokenBook(machine_.disk, "/run/tokens").list();
    return list.ok() && list->records.size() == 1 && list->records.front().revoked;
  }

  const std::string store_;
  run::testing::SimMachine machine_;
  SetClock clock_;
  const run::NodeHost host_{.disk = machine_.disk,
                            .clock = clock_,
                            .compute = machine_.compute,
                            .kernels = kernels::kernels_for(kernels::best_isa()),
                            .console = machine_.console};
  check::CheckWorkload workload_{check::CheckConfig{.things = 1}};
  cluster::Token token_;
  std::unique_ptr<CoordinatorNode> node_;

 private:
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// Claim: nobody is expelled while the token that let the node in cannot be revoked. The node would come back
// with it, and the user would believe it gone. Asked again on a disk with room, both are done.
TEST_F(CoordinatorNodeTest, ExpelsNobodyWithoutRevokingTheToken) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto node = join();
  ASSERT_TRUE(node.ok()) << node.error().message();
  fill_disk();
  EXPECT_FALSE(ask_expel(host_, "/run", {.nodes = {node->node}}).ok());
  empty_disk();
  EXPECT_FALSE(revoked());
  EXPECT_TRUE(join().ok());
  const auto done = ask_expel(host_, "/run", {.nodes = {node->node}});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(done->tokens, std::vector<std::string>{token_.id});
  EXPECT_TRUE(revoked());
  EXPECT_FALSE(join().ok());
}

// Claim: a token whose file is gone lets nobody in, so its nodes are expelled without it.
TEST_F(CoordinatorNodeTest, ExpelsNodesOfATokenThatIsGone) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto node = join();
  ASSERT_TRUE(node.ok()) << node.error().message();
  ASSERT_TRUE(machine_.disk.remove_all("/run/tokens/" + token_.id + ".json").ok());
  const auto done = ask_expel(host_, "/run", {.nodes = {node->node}});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(done->nodes, std::vector<NodeId>{node->node});
  EXPECT_TRUE(done->tokens.empty());
}

// Claim: a coordinator whose clock was ahead for a while, by minutes or by a year, can be joined once the
// clock is right. Its own certificate of that while would not hold for years.
TEST_F(CoordinatorNodeTest, CanBeJoinedAfterItsClockWasAhead) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (const double days : {0.01, 1.5, 365.0}) {
    const std::string before = own_certificate();
    clock_.ahead = days * 24 * 3600;
    if (days > 3.5) wait_until([&] { return own_certificate() != before; });
    clock_.ahead = 0;
    wait_until([&] { return host::time_of(own_certificate())->from <= clock_.wall_seconds(); });
    wait_until([&] { return join().ok(); });
  }
}

// Claim: a coordinator shows its renewed certificate although its disk is full, and keeps it once there is
// room. With the old one it would be out of reach in the end.
TEST_F(CoordinatorNodeTest, ShowsACertificateThatItCannotKeep) {
  ASSERT_NO_FATAL_FAILURE(start());
  const std::string before = own_certificate();
  fill_disk();
  clock_.ahead = 4.0 * 24 * 3600;
  const auto served = [this] {
    const auto fetched = host::fetch_certificates(node_->address(), from_seconds(10));
    const auto* const chain = std::get_if<host::ServedCertificates>(&fetched);
    return chain == nullptr ? 0 : chain->front().valid_until;
  };
  wait_until([&] { return served() > host::time_of(before)->until; });
  EXPECT_EQ(own_certificate(), before);
  empty_disk();
  clock_.later = 60;
  wait_until([&] { return own_certificate() != before; });
}

// Claim: a request that cannot be signed gets no number, as that would be a row in the store for ever. The
// next node has the next number, however many such requests there were.
TEST_F(CoordinatorNodeTest, GivesNoNumberForAWorthlessRequest) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto first = join();
  ASSERT_TRUE(first.ok()) << first.error().message();
  const std::string good = host::make_request()->request;
  for (const std::string& worthless : {std::string(), std::string("x"), good.substr(0, good.size() / 2)}) {
    const auto answer =
        ask({.authority = first->credentials.authority, .certificate = {}, .key = {}}, cluster::kEnrollMethod,
            cluster::enroll_request(
                {.token = token_, .request = worthless, .wire = wire_range(), .program = "test"}));
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().kind, ErrorKind::kBadData) << answer.error().message();
  }
  const auto second = join();
  ASSERT_TRUE(second.ok()) << second.error().message();
  EXPECT_EQ(second->node, NodeId(first->node.value + 1));
}

// Claim: a node that asks Renew again and again gets one certificate in a while, and no other node waits for
// it. The others fail, and are not refused: it may ask later.
TEST_F(CoordinatorNodeTest, RenewsOnceInAWhile) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto node = join();
  const auto other = join();
  ASSERT_TRUE(node.ok() && other.ok());
  EXPECT_TRUE(renew(*node).ok());
  for (int i = 0; i < 3; ++i) {
    const auto again = renew(*node);
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().kind, ErrorKind::kFailed);
  }
  EXPECT_TRUE(renew(*other).ok());
  clock_.later = Renewal::kLongestWait / 2;
  EXPECT_TRUE(renew(*node).ok());
}

}  // namespace
}  // namespace gossamer::node
