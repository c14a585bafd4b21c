// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/poller_hold.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <variant>

#include "host/grpc/network.h"

namespace gossamer::host {
namespace {

// One poller for each four processors, and always one.
TEST(PollerHold, SmallMachinesPollWithOneThread) {
  for (const int processors : {0, 1, 2, 4, 7}) EXPECT_EQ(useful_pollers(processors), 1) << processors;
  EXPECT_EQ(useful_pollers(8), 2);
  EXPECT_EQ(useful_pollers(64), 16);
}

// A client, and a server that sends every frame back. threads() gives the threads that told the client of
// them.
class EchoedFrames {
 public:
  // The threads of the first `frames` events of a frame that went there and back, one at a time.
  std::set<std::thread::id> threads(int frames) {
    const auto at = server_->listen({"127.0.0.1", 0}, Lane::kControl);
    EXPECT_TRUE(at.ok());
    const ConnectionId connection = client_->connect(*at, Lane::kControl);
    std::set<std::thread::id> seen;
    for (int frame = 0; frame < frames; ++frame) {
      client_->send(connection, {Slice::of(std::string("frame"))});
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [&] { return came_ > frame; });
      seen.insert(last_);
    }
    return seen;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  int came_ = 0;
  std::thread::id last_;
  std::unique_ptr<Network> server_ = make_grpc_network(std::nullopt, [this](const NetworkEvent& event) {
    if (const auto* const one = std::get_if<Received>(&event)) server_->send(one->connection, one->frame);
  });
  std::unique_ptr<Network> client_ = make_grpc_network(std::nullopt, [this](const NetworkEvent& event) {
    if (!std::holds_alternative<Received>(event)) return;
    const std::lock_guard lock(mutex_);
    ++came_;
    last_ = std::this_thread::get_id();
    arrived_.notify_all();
  });
};

// Events come from no more threads than useful_pollers() says. Two pollers take turns, so a thousand frames
// would show both.
TEST(PollerHold, EventsComeFromTheUsefulPollers) {
  if (grpc_pollers() == 0) GTEST_SKIP() << "nothing is known of this version's pollers";
  const int useful = useful_pollers(usable_processors());
  EchoedFrames frames;
  const std::set<std::thread::id> seen = frames.threads(1000);
  EXPECT_LE(seen.size(), static_cast<std::size_t>(useful));
}

// Networks come and go one after the other, and several at a time, which share the hold. The end of one does
// not take it from the others.
TEST(PollerHold, NetworksComeAndGo) {
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(EchoedFrames().threads(2).empty());
  EchoedFrames longer;
  EXPECT_FALSE(EchoedFrames().threads(2).empty());
  EXPECT_FALSE(longer.threads(2).empty());
}

}  // namespace
}  // namespace gossamer::host
