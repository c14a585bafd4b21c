// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_exchange.h"

#include <gmock/gmock.h>
#include <gossamer/chunks.pb.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "node/files/test_exchanging_node.h"

namespace gossamer::node {
namespace {

using ::testing::ElementsAre;
using testing::ExchangingNode;
using ::testing::HasSubstr;
using testing::make_bytes;

class FileExchangeTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kMost = 1ULL << 30;

  ExchangingNode& add(std::uint64_t number, std::uint64_t incarnation = 1,
                      std::shared_ptr<host::SimDisk> disk = nullptr) {
    auto& node = nodes_[number];
    node = std::make_unique<ExchangingNode>(timeline_, internet_, number, incarnation, std::move(disk));
    return *node;
  }
  void remove(std::uint64_t number) { nodes_.erase(number); }
  void run_for(double seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
      timeline_.run_until(timeline_.now() + from_seconds(0.01));
      for (const auto& [number, node] : nodes_) node->tick();
    }
  }
  void get(ExchangingNode& node, const StoredFile& file, std::set<net::PeerId> donors) {
    const Sha256& id = file.manifest.id();
    node.exchange->get({.id = id, .path = "/data/copy", .most_bytes = kMost});
    node.exchange->donors(id, std::move(donors));
  }

  host::Timeline timeline_{3};
  host::SimInternet internet_{timeline_, 3};
  std::map<std::uint64_t, std::unique_ptr<ExchangingNode>> nodes_;
};

// A file of many chunks comes from two nodes that have it, with the right bytes.
// The node that got it gives it on.
TEST_F(FileExchangeTest, ComesFromSeveral) {
  const std::string bytes = make_bytes(20'500'000);
  ExchangingNode& a = add(1);
  ExchangingNode& b = add(2);
  ExchangingNode& c = add(3);
  ExchangingNode& d = add(4);
  const StoredFile file = a.store("/train.cache", bytes);
  a.give(file);
  b.give(b.store("/train.cache", bytes));
  c.node.open(a.node);
  c.node.open(b.node);
  d.node.open(c.node);
  get(c, file, {a.node.id, b.node.id});
  run_for(20);
  ASSERT_EQ(c.got.size(), 1U);
  ASSERT_TRUE(c.got[0].file.ok()) << c.got[0].file.error().message();
  EXPECT_TRUE(*host::read_text(*c.disk, "/data/copy") == bytes);
  for (const ExchangingNode* const donor : {&a, &b})
    EXPECT_GT(donor->node.links->statistics(NodeId(3)).acknowledged_bytes, 3'000'000U);
  c.give(*c.got[0].file);
  get(d, file, {c.node.id});
  run_for(20);
  ASSERT_EQ(d.got.size(), 1U);
  EXPECT_TRUE(*host::read_text(*d.disk, "/data/copy") == bytes);
}

// A process that ends in between leaves chunks. The next one on that disk asks for the rest alone.
TEST_F(FileExchangeTest, GoesOnAfterARestart) {
  const std::string bytes = make_bytes(12'000'000);
  ExchangingNode& a = add(1);
  const StoredFile file = a.store("/train.cache", bytes);
  a.give(file);
  ExchangingNode& b = add(2);
  internet_.set_rates("m1", {.up_bytes_per_second = 2e6, .down_bytes_per_second = 2e6});
  b.node.open(a.node);
  get(b, file, {a.node.id});
  run_for(4);
  const std::uint64_t first = a.node.links->statistics(NodeId(2)).acknowledged_bytes;
  EXPECT_GT(first, 3'000'000U);
  EXPECT_TRUE(b.got.empty());
  const std::shared_ptr<host::SimDisk> disk = b.disk;
  remove(2);
  run_for(1);
  ExchangingNode& again = add(2, 2, disk);
  again.node.open(a.node);
  get(again, file, {a.node.id});
  run_for(30);
  ASSERT_EQ(again.got.size(), 1U);
  ASSERT_TRUE(again.got[0].file.ok());
  EXPECT_TRUE(*host::read_text(*disk, "/data/copy") == bytes);
  EXPECT_LT(a.node.links->statistics(NodeId(2)).acknowledged_bytes, bytes.size() - first + 4'000'000);
}

// A node that gives other bytes than those named is told of and left out. Another node's bytes are taken.
TEST_F(FileExchangeTest, ALiarIsNamed) {
  const std::string bytes = make_bytes(5'000'000);
  ExchangingNode& honest = add(1);
  ExchangingNode& liar = add(2);
  ExchangingNode& c = add(3);
  const StoredFile file = honest.store("/train.cache", bytes);
  honest.give(file);
  // The file has changed since its manifest was made.
  EXPECT_TRUE(host::replace_file(*liar.disk, "/train.cache", make_bytes(5'000'000, 9)).ok());
  liar.give({.manifest = file.manifest, .path = "/train.cache"});
  c.node.open(liar.node);
  get(c, file, {liar.node.id});
  run_for(2);
  ASSERT_FALSE(c.remarks.empty());
  EXPECT_THAT(c.remarks[0], HasSubstr("other bytes for chunk"));
  EXPECT_TRUE(c.got.empty());
  c.node.open(honest.node);
  c.exchange->donors(file.manifest.id(), {liar.node.id, honest.node.id});
  run_for(5);
  ASSERT_EQ(c.got.size(), 1U);
  EXPECT_TRUE(*host::read_text(*c.disk, "/data/copy") == bytes);
}

// A donor that dies and connections that break cost only time. The links of another life begin anew.
TEST_F(FileExchangeTest, DonorsComeAndGo) {
  const std::string bytes = make_bytes(10'000'000);
  ExchangingNode& a = add(1);
  ExchangingNode& b = add(2);
  const StoredFile file = a.store("/train.cache", bytes);
  a.give(file);
  internet_.set_rates("m1", {.up_bytes_per_second = 2e6, .down_bytes_per_second = 2e6});
  b.node.open(a.node);
  get(b, file, {a.node.id});
  run_for(1.5);
  internet_.reset("m1", "m2");
  run_for(1);
  const std::shared_ptr<host::SimDisk> disk = a.disk;
  remove(1);
  run_for(1);
  EXPECT_TRUE(b.got.empty());
  ExchangingNode& again = add(1, 2, disk);
  again.give(file);
  internet_.set_rates("m1", {.up_bytes_per_second = 1e7, .down_bytes_per_second = 1e7});
  b.node.open(again.node);
  again.node.open(b.node);
  b.exchange->donors(file.manifest.id(), {again.node.id});
  run_for(20);
  ASSERT_EQ(b.got.size(), 1U);
  EXPECT_TRUE(*host::read_text(*b.disk, "/data/copy") == bytes);
}

// A disk without room, and a file that is larger than was said, are errors. Nothing
// is left under the file's name.
TEST_F(FileExchangeTest, Refusals) {
  ExchangingNode& a = add(1);
  ExchangingNode& b = add(2);
  const StoredFile file = a.store("/train.cache", make_bytes(5'000'000));
  a.give(file);
  b.node.open(a.node);
  b.disk->restart_count({.capacity_bytes = 6'000'000});
  get(b, file, {a.node.id});
  run_for(2);
  ASSERT_EQ(b.got.size(), 1U);
  ASSERT_FALSE(b.got[0].file.ok());
  EXPECT_THAT(b.got[0].file.error().message(), HasSubstr("too little room"));
  b.disk->restart_count({});
  b.exchange->get({.id = file.manifest.id(), .path = "/data/copy", .most_bytes = 4'999'999});
  b.exchange->donors(file.manifest.id(), {a.node.id});
  run_for(2);
  ASSERT_EQ(b.got.size(), 2U);
  ASSERT_FALSE(b.got[1].file.ok());
  EXPECT_THAT(b.got[1].file.error().message(), HasSubstr("larger than it may be"));
  EXPECT_FALSE(*b.disk->exists("/data/copy"));
}

// A node that asks for everything again and again is served no faster than the limit of the donor.
TEST_F(FileExchangeTest, GivesNoMoreThanItsLimit) {
  ExchangingNode& a = add(1);
  ExchangingNode& b = add(2);
  const StoredFile file = a.store("/train.cache", make_bytes(30'000'000));
  a.exchange.emplace(*a.disk, FileExchange::Options{.aside = a.aside, .seed = 1, .bytes_per_second = 5e6},
                     timeline_.now());
  a.exchange->connect(a.node.links.get());
  a.give(file);
  b.node.open(a.node);
  get(b, file, {a.node.id});
  run_for(4);
  // The limit is a full bucket, four seconds, and one chunk that overdraws it.
  EXPECT_LE(a.node.links->statistics(NodeId(2)).acknowledged_bytes, 5e6 + 4 * 5e6 + 2e6);
  EXPECT_TRUE(b.got.empty());
  run_for(6);
  EXPECT_EQ(b.got.size(), 1U);
}

// Bytes that are no question or no answer are their sender's fault. So are questions without end. A donor
// with a bad disk, and a node that fetches, are blamed for nothing.
TEST_F(FileExchangeTest, NonsenseIsBlamed) {
  ExchangingNode& a = add(1);
  ExchangingNode& b = add(2);
  const StoredFile file = a.store("/train.cache", make_bytes(3'000'000));
  a.give(file);
  b.node.open(a.node);
  get(b, file, {a.node.id});
  run_for(2);
  ASSERT_EQ(b.got.size(), 1U);
  EXPECT_TRUE(a.exchange->take_blamed().empty());
  const auto say = [&](std::uint32_t channel, const std::string& body) {
    ASSERT_TRUE(b.node.send(a.node.id, host::Lane::kBulk, {.channel = channel, .body = body, .payload = {}}));
  };
  for (const std::uint32_t channel : {kChunkRequests, kChunkAnswers}) {
    say(channel, "\xff");
    run_for(1);
    const auto blamed = a.exchange->take_blamed();
    ASSERT_EQ(blamed.size(), 1U) << channel;
    EXPECT_EQ(blamed[0].peer, b.node.id);
  }
  wire::Chunks ask;
  ask.set_manifest(file.manifest.id().data(), file.manifest.id().size());
  ask.set_kind(wire::Chunks::ASK);
  ask.set_with_manifest(true);
  for (int i = 0; i < 128; ++i) say(kChunkRequests, ask.SerializeAsString());
  run_for(1);
  EXPECT_TRUE(a.exchange->take_blamed().empty());
  for (int i = 0; i < 300; ++i) say(kChunkRequests, ask.SerializeAsString());
  run_for(1);
  EXPECT_GT(a.exchange->take_blamed().size(), 100U);
}

}  // namespace
}  // namespace gossamer::node
