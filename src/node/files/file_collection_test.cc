// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_collection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/files/test_delivering.h"

namespace gossamer::node {
namespace {

using ::testing::Contains;
using testing::Delivering;
using testing::ExchangingNode;
using ::testing::HasSubstr;
using testing::make_bytes;

// What cannot be offered is refused, and its sender blamed: names that lead elsewhere, no hash, no offer at
// all.
TEST_F(Delivering, MessagesThatCannotBe) {
  lead();
  join();
  run_for(1);
  for (const char* const name : {"../escape", "a/b", ".hidden", "", "x.tmp", "\x1b[2J"}) {
    offer(member_->node, name);
    run_for(0.3);
    EXPECT_TRUE(blames(7, "which is no name of a file")) << name;
  }
  offer(member_->node, "part-7-1", std::string(31, 'x'));
  run_for(0.3);
  EXPECT_TRUE(blames(7, "has no hash"));
  EXPECT_TRUE(member_->node.send(coordinator_->node.id, host::Lane::kControl,
                                 {.channel = kDeliveries, .body = "\xff", .payload = {}}));
  run_for(0.3);
  EXPECT_TRUE(blames(7, "what no member can say"));
}

// The coordinator asks for nothing that its rules refuse. The sender is blamed once, and told each time, so
// that it removes the file.
TEST_F(Delivering, RefusedOnes) {
  lead();
  join();
  rules_.of_node = NodeId(8);
  write("part-7-1", make_bytes(3'000'000));
  run_for(8);
  EXPECT_TRUE(blames(7, "part-7-1: it owns no part"));
  EXPECT_EQ(collected("part-7-1"), "none");
  EXPECT_FALSE(coordinator_->disk->exists("/run/parts.incoming").ok() &&
               *coordinator_->disk->exists("/run/parts.incoming"));
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  EXPECT_THAT(delivery_->take_remarks(), Contains(HasSubstr("the coordinator refuses this file")));
  rules_.of_node.reset();
  write("part-7-1", make_bytes(3'000'000));
  run_for(8);
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  EXPECT_TRUE(blamed_.empty()) << "it was refused before";
}

// A file that hashes right and is not what it should be does not appear. Its sender is blamed, and told to
// remove it. Another file of the same name is taken.
TEST_F(Delivering, DamagedOnes) {
  lead();
  join();
  rules_.damaged = "part-7-1";
  write("part-7-1", make_bytes(3'000'000));
  run_for(3);
  EXPECT_TRUE(blames(7, "a wrong checksum"));
  EXPECT_EQ(collected("part-7-1"), "none");
  EXPECT_TRUE(coordinator_->disk->list("/run/parts.incoming")->empty());
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  EXPECT_FALSE(collection_->failing());
  rules_.damaged.clear();
  write("part-7-1", "whole");
  run_for(3);
  EXPECT_EQ(collected("part-7-1"), "whole");
}

// A file that is larger than the coordinator takes is its sender's fault. So are chunks of other content.
TEST_F(Delivering, OtherContent) {
  lead();
  join();
  write("part-7-1", make_bytes(10'500'000));
  run_for(3);
  EXPECT_TRUE(blames(7, "larger than it may be"));
  EXPECT_EQ(collected("part-7-1"), "none");
  EXPECT_FALSE(collection_->failing());
  const StoredFile file = member_->store("/own/other", make_bytes(3'000'000));
  ASSERT_TRUE(host::replace_file(*member_->disk, "/own/other", make_bytes(3'000'000, 9)).ok());
  member_->give(file);
  offer(member_->node, "part-7-2", file.manifest.id());
  run_for(3);
  EXPECT_TRUE(blames(7, "part-7-2"));
  EXPECT_EQ(collected("part-7-2"), "none");
  EXPECT_TRUE(coordinator_->disk->list("/run/parts.incoming")->empty());
}

// An offer that the books do not show yet waits, and is asked for once they do. If not even its sender's own
// words show it, the sender is to blame after a while in which it is heard.
TEST_F(Delivering, EarlyOnes) {
  lead();
  join();
  member_->on_tick = [this] {
    delivery_->tick(coordinator_->node.id, *member_->node.links, timeline_.now());
    constexpr std::uint32_t kAny = 99;
    static_cast<void>(member_->node.send(coordinator_->node.id, host::Lane::kControl,
                                         {.channel = kAny, .body = "beat", .payload = {}}));
  };
  rules_.verdicts["part-7-1"] = DeliveryRules::Early{};
  write("part-7-1", "early");
  run_for(20);
  EXPECT_EQ(collected("part-7-1"), "none");
  EXPECT_TRUE(blamed_.empty());
  EXPECT_TRUE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  rules_.verdicts["part-7-1"] = DeliveryRules::Early{.own = true};
  run_for(1);
  EXPECT_TRUE(blamed_.empty()) << "its marks are on their way";
  rules_.verdicts.clear();
  run_for(1);
  EXPECT_EQ(collected("part-7-1"), "early");
  rules_.verdicts["part-7-2"] = DeliveryRules::Early{.own = true};
  write("part-7-2", "early");
  run_for(1);
  timeline_.run_until(timeline_.now() + from_seconds(8));
  run_for(0.1);
  EXPECT_TRUE(blamed_.empty()) << "the coordinator did not run, and its marks may have come meanwhile";
  run_for(2);
  EXPECT_TRUE(blames(7, "by its own marks it has not come so far"));
  EXPECT_EQ(collected("part-7-2"), "none");
}

// An offer that a former process of its sender may have written waits as long. Then its sender may remove it,
// and is not to blame.
TEST_F(Delivering, WhatAFormerProcessWrote) {
  lead();
  join();
  member_->on_tick = [this] {
    delivery_->tick(coordinator_->node.id, *member_->node.links, timeline_.now());
    constexpr std::uint32_t kAny = 99;
    static_cast<void>(member_->node.send(coordinator_->node.id, host::Lane::kControl,
                                         {.channel = kAny, .body = "beat", .payload = {}}));
  };
  rules_.verdicts["part-7-1"] = DeliveryRules::Early{.own = true, .former = true};
  write("part-7-1", "of this life");
  run_for(1.5);
  EXPECT_TRUE(FileDelivery::under_way(*member_->disk, "/own/deliver")) << "its marks are on their way";
  rules_.verdicts.clear();
  run_for(1);
  EXPECT_EQ(collected("part-7-1"), "of this life");
  rules_.verdicts["part-7-2"] = DeliveryRules::Early{.own = true, .former = true};
  write("part-7-2", "left over");
  run_for(3);
  EXPECT_EQ(collected("part-7-2"), "none");
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  EXPECT_TRUE(blamed_.empty());
}

// What is needed no more is not asked for, and its sender may remove it.
TEST_F(Delivering, UnneededOnes) {
  lead();
  join();
  rules_.verdicts["part-7-1"] = DeliveryRules::Unneeded{};
  write("part-7-1", "old");
  run_for(2);
  EXPECT_EQ(collected("part-7-1"), "none");
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  EXPECT_TRUE(blamed_.empty());
}

// The coordinator names files itself.
TEST_F(Delivering, TheCoordinatorNamesFiles) {
  lead();
  join();
  rules_.verdicts["part-007-1"] = DeliveryRules::Awaited{"part-7-1"};
  write("part-007-1", "named");
  run_for(2);
  EXPECT_EQ(collected("part-7-1"), "named");
  EXPECT_EQ(collected("part-007-1"), "none");
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
}

// A file that cannot be read for a moment, because the machine lacks memory or descriptors, is read again. It
// is told once, nobody is blamed, and the file arrives, whichever operation failed before it was offered.
TEST_F(Delivering, AFileThatCannotBeReadNow) {
  lead();
  join();
  run_for(1);
  for (const std::uint64_t operation : {0U, 1U, 2U, 3U}) {
    const std::string name = "part-7-" + std::to_string(operation);
    write(name, "learnt");
    member_->disk->restart_count({.fail_at_operation = operation});
    run_for(12);
    EXPECT_EQ(collected(name), "learnt") << operation;
    EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver")) << operation;
    EXPECT_EQ(delivery_->take_remarks().size(), 1U) << operation;
  }
  EXPECT_TRUE(blamed_.empty());
}

// A full disk is told, with the time of the last try. It is nobody's fault. The file arrives once there is
// room.
TEST_F(Delivering, AFullDisk) {
  lead();
  join();
  run_for(1);
  coordinator_->disk->restart_count({.capacity_bytes = 1'000'000});
  write("part-7-2", make_bytes(2'000'000));
  run_for(3);
  EXPECT_THAT(coordinator_->remarks, Contains(HasSubstr("too little room")));
  ASSERT_TRUE(collection_->failing());
  const Instant before = collection_->failing()->at;
  run_for(8);
  ASSERT_TRUE(collection_->failing());
  const Instant last = collection_->failing()->at;
  EXPECT_GT(last, before);
  EXPECT_THAT(collection_->failing()->last.message(), HasSubstr("too little room"));
  coordinator_->disk->restart_count({});
  run_for(10);
  EXPECT_FALSE(collection_->failing());
  EXPECT_TRUE(collected("part-7-2") == make_bytes(2'000'000));
  EXPECT_TRUE(blamed_.empty());
}

// A node may offer for ever. Few of its offers wait, one is asked for at a time, and what it does not repeat
// is forgotten. So another file of it comes through in the end, and files of others at once.
TEST_F(Delivering, OffersAreBounded) {
  lead();
  join();
  ExchangingNode other(timeline_, internet_, 8);
  other.node.open(coordinator_->node);
  run_for(1);
  for (int i = 0; i < 500; ++i) offer(other.node, "name-" + std::to_string(i));
  run_for(1);
  write("part-7-1", "of another");
  run_for(2);
  EXPECT_EQ(collected("part-7-1"), "of another");
  const auto arriving = coordinator_->disk->list("/run/parts.incoming");
  ASSERT_TRUE(arriving.ok());
  EXPECT_EQ(arriving->size(), 1U);
  run_for(25);
  EXPECT_EQ(coordinator_->disk->list("/run/parts.incoming")->size(), 1U);
  run_for(10);
  EXPECT_TRUE(coordinator_->disk->list("/run/parts.incoming")->empty());
  EXPECT_TRUE(blamed_.empty());
}

// A link that is silent or down, for however short or long, costs nothing of what has come: the chunks that
// are there stay, and the rest follows.
TEST_F(Delivering, OutagesCostNothing) {
  lead();
  join();
  internet_.set_rates("m7", {.up_bytes_per_second = 1e6, .down_bytes_per_second = 1e6});
  int number = 0;
  for (const double outage : {0.2, 1.9, 2.1, 9.9, 10.1, 19.9, 29.0, 30.1, 31.0, 40.0, 300.0, 4000.0}) {
    const std::string name = "part-7-" + std::to_string(++number);
    write(name, make_bytes(5'000'000, static_cast<std::size_t>(number)));
    for (int i = 0; i < 1000 && chunks_here() < 3; ++i) run_for(0.01);
    ASSERT_EQ(chunks_here(), 3U) << outage;
    internet_.cut("m1", "m7");
    internet_.cut("m7", "m1");
    tick_for(outage);
    EXPECT_GE(chunks_here(), 3U) << outage;
    internet_.heal("m1", "m7");
    internet_.heal("m7", "m1");
    for (int i = 0; i < 6000 && chunks_here() == 3; ++i) run_for(0.01);
    ASSERT_GT(chunks_here(), 3U) << outage;
    run_for(8);
    ASSERT_TRUE(collected(name) == make_bytes(5'000'000, static_cast<std::size_t>(number))) << outage;
  }
  EXPECT_TRUE(blamed_.empty());
}

// A node that is gone costs the coordinator's disk and memory something for a day, and not for ever. Time in
// which the coordinator did not run does not count.
TEST_F(Delivering, ANodeThatIsGoneIsForgotten) {
  lead();
  ExchangingNode other(timeline_, internet_, 8);
  other.node.open(coordinator_->node);
  run_for(1);
  offer(other.node, "name-1");
  run_for(1);
  EXPECT_EQ(coordinator_->disk->list("/run/parts.incoming")->size(), 1U);
  internet_.vanish("m8");
  timeline_.run_until(timeline_.now() + from_seconds(3 * 86'400.0));
  Instant now = timeline_.now();
  const auto collect_for = [&](double seconds) {
    for (int i = 0; i < seconds * 10; ++i)
      collection_->tick(*coordinator_->node.links, now = now + from_seconds(0.1));
    coordinator_->tick();
  };
  collect_for(FileCollection::kAwayTime.seconds() - 60);
  EXPECT_EQ(coordinator_->disk->list("/run/parts.incoming")->size(), 1U);
  collect_for(120);
  EXPECT_TRUE(coordinator_->disk->list("/run/parts.incoming")->empty());
  EXPECT_EQ(collection_->next_wakeup(), std::nullopt);
}

// What is not needed any more goes also while its sender is away. When it is back, it is told.
TEST_F(Delivering, WhatIsUnneededIsForgottenWithoutItsSender) {
  lead();
  join();
  internet_.set_rates("m7", {.up_bytes_per_second = 1e6, .down_bytes_per_second = 1e6});
  write("part-7-1", make_bytes(5'000'000));
  for (int i = 0; i < 1000 && chunks_here() < 3; ++i) run_for(0.01);
  internet_.cut("m1", "m7");
  internet_.cut("m7", "m1");
  tick_for(60);
  EXPECT_GE(chunks_here(), 3U);
  rules_.verdicts["part-7-1"] = DeliveryRules::Unneeded{};
  tick_for(1);
  EXPECT_TRUE(coordinator_->disk->list("/run/parts.incoming")->empty());
  internet_.heal("m1", "m7");
  internet_.heal("m7", "m1");
  run_for(30);
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  EXPECT_EQ(collected("part-7-1"), "none");
  EXPECT_TRUE(blamed_.empty());
}

}  // namespace
}  // namespace gossamer::node
