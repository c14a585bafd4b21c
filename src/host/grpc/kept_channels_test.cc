// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/kept_channels.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "host/grpc/network.h"

namespace gossamer::host {
namespace {

using namespace std::chrono_literals;

// Claim: one channel serves the questions to an address until one fails, or waits for too long. The next
// question gets another. Other addresses have channels of their own.
TEST(KeptChannels, OneAsLongAsItWorks) {
  KeptChannels kept;
  int made = 0;
  const auto take = [&](const std::string& key, KeptChannels::Now now) {
    return kept.take(key, now, [&] {
      ++made;
      return grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials());
    });
  };
  const KeptChannels::Now start{};
  const auto first = take("a", start);
  const auto second = take("a", start + 2s);  // the first waits
  EXPECT_EQ(first.channel, second.channel);
  first.questions->ended(true, start + 2s);
  second.questions->ended(true, start + 2s);
  EXPECT_EQ(take("a", start + 100s).channel, first.channel);
  EXPECT_NE(take("b", start + 100s).channel, first.channel);
  EXPECT_EQ(made, 2);
  const auto late = take("a", start + 103s);  // nothing was answered for 3 s
  EXPECT_NE(late.channel, first.channel);
  late.questions->ended(false, start + 104s);
  EXPECT_NE(take("a", start + 104s).channel, late.channel);
  kept.clear();
  (void)take("b", start + 100s);
  EXPECT_EQ(made, 5);
}

// A network that answers each question, and one that asks it.
class Asking {
 public:
  Asking() {
    server_ = make_grpc_network(std::nullopt, [this](NetworkEvent event) {
      auto* const asked = std::get_if<Asked>(&event);
      if (asked == nullptr) return;
      {
        const std::lock_guard lock(mutex_);
        connections_.insert(asked->from);
      }
      if (asked->body == "fails") return server_->answer(asked->question, Error{.what = "it stands by"});
      server_->answer(asked->question, std::string("answer"));
    });
    at_ = *server_->listen({"127.0.0.1", 0}, Lane::kControl);
    client_ = make_grpc_network(std::nullopt, [this](const NetworkEvent& event) {
      if (std::holds_alternative<Answered>(event)) answered_.set_value();
    });
  }
  void ask(const std::string& body, Question::Asked how) {
    answered_ = {};
    (void)client_->ask(at_, {.method = "Lead", .body = body, .asked = how});
    answered_.get_future().wait();
  }
  // Each connection has a port of its own, and each has cost a handshake.
  [[nodiscard]] std::size_t handshakes() {
    const std::lock_guard lock(mutex_);
    return connections_.size();
  }

 private:
  std::promise<void> answered_;
  std::mutex mutex_;
  std::set<std::string> connections_;
  std::unique_ptr<Network> server_;
  std::unique_ptr<Network> client_;
  Endpoint at_;
};

// Claim: twenty questions that are asked again and again cost one handshake, though some are answered with an
// error. Twenty that are asked once cost twenty.
TEST(KeptChannels, OneHandshake) {
  Asking asking;
  for (int i = 0; i < 20; ++i) asking.ask(i % 3 == 0 ? "fails" : "", Question::Asked::kAgain);
  EXPECT_EQ(asking.handshakes(), 1U);
  for (int i = 0; i < 20; ++i) asking.ask("", Question::Asked::kOnce);
  EXPECT_EQ(asking.handshakes(), 21U);
}

}  // namespace
}  // namespace gossamer::host
