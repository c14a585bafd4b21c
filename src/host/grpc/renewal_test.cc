// SPDX-License-Identifier: Apache-2.0
//
// What a renewed certificate costs the connections of before, and the network's end.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/grpc/certificates.h"
#include "host/grpc/network.h"
#include "host/posix/clock.h"
#include "host/posix/mailbox.h"

namespace gossamer::host {
namespace {

constexpr double kPatienceSeconds = 60;

// Two nodes of one run, of which the second connects to the first.
class Renewal : public ::testing::Test {
 protected:
  struct Node {
    KeyAndRequest request = *make_request();
    std::unique_ptr<Mailbox<NetworkEvent>> mailbox = std::make_unique<Mailbox<NetworkEvent>>();
    std::vector<NetworkEvent> events = {};
    std::unique_ptr<RenewableNetwork> network = {};
  };
  Renewal() {
    for (Node* const node : {&first_, &second_}) {
      node->network = make_grpc_network(
          credentials(*node),
          [mailbox = node->mailbox.get()](NetworkEvent event) { mailbox->push(std::move(event)); });
    }
    at_ = *first_.network->listen({"127.0.0.1", 0}, Lane::kControl);
  }
  NetworkCredentials credentials(const Node& node) {
    return {.authority = authority_.certificate,
            .certificate = *sign_request(authority_, node.request.request,
                                         &node == &first_ ? "node-2" : "node-3", validity_),
            .key = node.request.key};
  }
  // Opens one connection more, and returns it as the second node knows it.
  ConnectionId connect() {
    const std::size_t before = count<Accepted>(first_);
    const ConnectionId opened = second_.network->connect(at_, Lane::kControl);
    EXPECT_TRUE(wait(first_, [&] { return count<Accepted>(first_) > before; }));
    return opened;
  }
  template <class Event>
  static std::size_t count(const Node& node) {
    return static_cast<std::size_t>(std::ranges::count_if(
        node.events, [](const auto& event) { return std::holds_alternative<Event>(event); }));
  }
  template <class Done>
  bool wait(Node& node, Done done) {
    const Instant end = clock_.now() + from_seconds(kPatienceSeconds);
    while (!done()) {
      if (clock_.now() >= end) return false;
      for (auto& event : node.mailbox->wait(from_milliseconds(20))) node.events.push_back(std::move(event));
    }
    return true;
  }
  // Whether what the second node sends on the connection arrives.
  bool carries(ConnectionId connection) {
    const std::size_t before = count<Received>(first_);
    second_.network->send(connection, {Slice::of(std::string("hello"))});
    return wait(first_, [&] { return count<Received>(first_) > before; });
  }
  void renew() { ASSERT_TRUE(first_.network->renew(credentials(first_)).ok()); }

  PosixClock clock_;
  const Validity validity_{.now_seconds = clock_.wall_seconds(), .days = 1};
  const KeyAndCertificate authority_ = *make_authority("test", validity_);
  Node first_;
  Node second_;
  Endpoint at_;
};

// Claim: a connection ends with the third renewal of the certificate that its opener was shown, and not
// before. The other end opens it anew, and sees the new certificate.
TEST_F(Renewal, OldConnectionsEnd) {
  const ConnectionId first = connect();
  renew();
  const ConnectionId second = connect();
  EXPECT_TRUE(carries(first));
  renew();
  EXPECT_TRUE(carries(first));
  EXPECT_EQ(count<Closed>(first_), 0U);
  renew();
  EXPECT_TRUE(wait(first_, [&] { return count<Closed>(first_) == 1; }));
  EXPECT_TRUE(carries(second));
  renew();
  EXPECT_TRUE(wait(first_, [&] { return count<Closed>(first_) == 2; }));
}

// Claim: a network ends at once, however many certificates it has had, and with connections of all of them.
TEST_F(Renewal, ItsEndDoesNotWait) {
  for (int i = 0; i < 6; ++i) {
    static_cast<void>(connect());
    renew();
  }
  const Instant begin = clock_.now();
  first_.network.reset();
  EXPECT_LT((clock_.now() - begin).seconds(), 5);
}

}  // namespace
}  // namespace gossamer::host
