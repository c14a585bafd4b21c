// SPDX-License-Identifier: Apache-2.0
//
// What is said of files on their way: answers that a member has no reason to believe, and more offers than a
// member can have.
#include <gossamer/delivery.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "node/files/file_collection.h"
#include "node/files/file_delivery.h"
#include "node/files/test_delivery_rules.h"
#include "node/files/test_exchanging_node.h"

namespace gossamer::node {
namespace {

using testing::ExchangingNode;

// A coordinator, which is node 1, and a member, which is node 7.
class FileWordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.on_other = [this](const net::Arrived& arrived) {
      return collection_.on(arrived, *coordinator_.node.links, timeline_.now());
    };
    coordinator_.on_tick = [this] { collection_.tick(*coordinator_.node.links, timeline_.now()); };
    auto delivery = FileDelivery::start(*member_.disk, *member_.exchange, member_.aside, "/own/deliver");
    ASSERT_TRUE(delivery.ok());
    delivery_ = *std::move(delivery);
    member_.on_other = [this](const net::Arrived& arrived) {
      return delivery_->on(arrived, coordinator_.node.id, *member_.node.links, timeline_.now());
    };
    member_.on_tick = [this] { delivery_->tick(coordinator_.node.id, *member_.node.links, timeline_.now()); };
    member_.node.open(coordinator_.node);
    run_for(1);
  }
  void run_for(double seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
      timeline_.run_until(timeline_.now() + from_seconds(0.01));
      coordinator_.tick();
      member_.tick();
    }
  }
  static void say(net::Node& from, const net::Node& to, wire::Delivery::Kind kind, const std::string& name,
                  const std::string& hash) {
    wire::Delivery body;
    body.set_kind(kind);
    body.set_name(name);
    body.set_manifest(hash);
    EXPECT_TRUE(from.send(to.id, net::Lane::kControl,
                          {.channel = kDeliveries, .body = body.SerializeAsString(), .payload = {}}));
  }
  [[nodiscard]] std::size_t taken() const {
    const auto heard = member_.node.all<net::Arrived>();
    return static_cast<std::size_t>(std::ranges::count_if(heard, [](const net::Arrived& one) {
      wire::Delivery body;
      return one.message.channel == kDeliveries && body.ParseFromString(one.message.body) &&
             body.kind() == wire::Delivery::TAKEN;
    }));
  }

  host::Timeline timeline_{3};
  host::SimInternet internet_{timeline_, 3};
  testing::AskedRules rules_;
  ExchangingNode coordinator_{timeline_, internet_, 1};
  ExchangingNode member_{timeline_, internet_, 7};
  FileCollection collection_{
      *coordinator_.disk, *coordinator_.exchange, rules_,
      FileCollection::Options{.directory = "/run/parts", .most_bytes = 10'000, .aside = coordinator_.aside}};
  std::unique_ptr<FileDelivery> delivery_;
};

// Claim: a file stays at its member until this coordinator says that it has these very bytes. Words of other
// nodes, or about other bytes of that name, remove nothing.
TEST_F(FileWordsTest, OthersRemoveNoFile) {
  rules_.verdicts["part-7-1"] = DeliveryRules::Early{};
  ASSERT_TRUE(host::replace_file(*member_.disk, "/own/deliver/part-7-1", "trained").ok());
  net::Node other(timeline_, internet_, 8);
  other.open(member_.node);
  run_for(3);
  const std::string path = "/own/deliver/outgoing/1-part-7-1";
  const auto stored = describe_file(*member_.disk, path, "part-7-1");
  ASSERT_TRUE(stored.ok()) << stored.error().message();
  const Sha256& id = stored->manifest.id();
  const std::string right(reinterpret_cast<const char*>(id.data()), id.size());
  for (const auto kind : {wire::Delivery::TAKEN, wire::Delivery::REFUSED}) {
    say(coordinator_.node, member_.node, kind, "part-7-1", std::string(32, 'x'));
    run_for(1);
    EXPECT_TRUE(*member_.disk->exists(path)) << "about other bytes";
    say(other, member_.node, kind, "part-7-1", right);
    run_for(1);
    EXPECT_TRUE(*member_.disk->exists(path)) << "of another node";
  }
  rules_.verdicts.clear();
  run_for(7);
  const auto there = host::read_text(*coordinator_.disk, "/run/parts/part-7-1");
  ASSERT_TRUE(there.ok()) << there.error().message();
  EXPECT_EQ(*there, "trained");
  EXPECT_FALSE(FileDelivery::under_way(*member_.disk, "/own/deliver"));
}

// Claim: of all that a member offers at once, 16 files wait at the coordinator.
TEST_F(FileWordsTest, SixteenOffersWait) {
  const auto name = [](int i) { return "name-" + std::to_string(i); };
  for (int i = 0; i < 100; ++i) {
    rules_.verdicts[name(i)] = DeliveryRules::Early{};
    say(member_.node, coordinator_.node, wire::Delivery::OFFER, name(i), std::string(32, 'x'));
  }
  run_for(1);
  EXPECT_EQ(taken(), 0U);
  for (int i = 0; i < 100; ++i) rules_.verdicts[name(i)] = DeliveryRules::Unneeded{};
  // The coordinator judges the offers of a node that it hears.
  constexpr std::uint32_t kAny = 99;
  EXPECT_TRUE(member_.node.send(coordinator_.node.id, net::Lane::kControl,
                                {.channel = kAny, .body = "beat", .payload = {}}));
  run_for(1);
  EXPECT_EQ(taken(), 16U);
}

}  // namespace
}  // namespace gossamer::node
