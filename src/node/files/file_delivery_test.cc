// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_delivery.h"

#include <gmock/gmock.h>
#include <gossamer/delivery.pb.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "host/api/durable_directories.h"
#include "node/files/file_collection.h"
#include "node/files/test_delivery_rules.h"
#include "node/files/test_exchanging_node.h"

namespace gossamer::node {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::ExchangingNode;
using ::testing::HasSubstr;
using testing::make_bytes;

// A coordinator, which is node 1, and a member.
class Delivering : public ::testing::Test {
 protected:
  void lead(std::shared_ptr<host::SimDisk> disk = nullptr) {
    const std::uint64_t incarnation = ++leads_;
    collection_.reset();
    coordinator_.emplace(timeline_, internet_, 1, incarnation, std::move(disk));
    collection_.emplace(
        *coordinator_->disk, *coordinator_->exchange, rules_,
        FileCollection::Options{
            .directory = "/run/parts", .most_bytes = 10'000'000, .aside = coordinator_->aside});
    coordinator_->on_other = [this](const net::Arrived& arrived) {
      return collection_->on(arrived, *coordinator_->node.links, timeline_.now());
    };
    coordinator_->on_tick = [this] {
      collection_->tick(*coordinator_->node.links, timeline_.now());
      for (FileCollection::Blamed& one : collection_->take_blamed()) blamed_.push_back(std::move(one));
      for (std::string& one : collection_->take_remarks()) coordinator_->remarks.push_back(std::move(one));
    };
  }
  void join(std::shared_ptr<host::SimDisk> disk = nullptr) {
    delivery_.reset();
    member_.emplace(timeline_, internet_, 7, ++lives_, std::move(disk));
    auto delivery = FileDelivery::start(*member_->disk, *member_->exchange, member_->aside, "/own/deliver");
    ASSERT_TRUE(delivery.ok()) << delivery.error().message();
    delivery_ = *std::move(delivery);
    member_->on_other = [this](const net::Arrived& arrived) {
      return delivery_->on(arrived, coordinator_->node.id, *member_->node.links, timeline_.now());
    };
    member_->on_tick = [this] {
      delivery_->tick(coordinator_->node.id, *member_->node.links, timeline_.now());
    };
    member_->node.open(coordinator_->node);
  }
  void run_for(double seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
      timeline_.run_until(timeline_.now() + from_seconds(0.01));
      if (coordinator_) coordinator_->tick();
      if (member_) member_->tick();
    }
  }
  void write(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(host::replace_file(*member_->disk, "/own/deliver/" + name, bytes).ok());
  }
  std::string collected(const std::string& name) {
    const auto text = host::read_text(*coordinator_->disk, "/run/parts/" + name);
    return text.ok() ? *text : "none";
  }

  host::Timeline timeline_{3};
  host::SimInternet internet_{timeline_, 3};
  // Whether this node was blamed, with these words, and no other.
  [[nodiscard]] bool blames(std::uint64_t node, const std::string& words) {
    const auto blamed = std::exchange(blamed_, {});
    if (blamed.empty()) return false;
    return std::ranges::all_of(blamed, [&](const auto& one) {
      return one.peer.node == NodeId(node) && one.why.find(words) != std::string::npos;
    });
  }
  void offer(net::Node& from, const std::string& name, const Sha256& id) {
    offer(from, name, std::string(reinterpret_cast<const char*>(id.data()), id.size()));
  }
  void offer(net::Node& from, const std::string& name, const std::string& hash = std::string(32, 'x')) {
    wire::Delivery body;
    body.set_kind(wire::Delivery::OFFER);
    body.set_name(name);
    body.set_manifest(hash);
    EXPECT_TRUE(from.send(coordinator_->node.id, host::Lane::kControl,
                          {.channel = kDeliveries, .body = body.SerializeAsString(), .payload = {}}));
  }

  testing::AskedRules rules_;
  std::vector<FileCollection::Blamed> blamed_;
  std::uint64_t leads_ = 0;
  std::uint64_t lives_ = 0;
  bool written_ = false;
  std::optional<ExchangingNode> coordinator_;
  std::optional<FileCollection> collection_;
  std::optional<ExchangingNode> member_;
  std::unique_ptr<FileDelivery> delivery_;
};

// Files arrive whole, and the member then removes them. One that is still written is not looked at.
TEST_F(Delivering, FilesArriveWhole) {
  lead();
  join();
  const std::string part = make_bytes(3'500'000);
  write("part-7-200", part);
  write("part-7-300.tmp", part);
  run_for(5);
  EXPECT_TRUE(collected("part-7-200") == part);
  EXPECT_THAT(*member_->disk->list("/own/deliver"), ElementsAre("outgoing", "part-7-300.tmp"));
  EXPECT_TRUE(member_->disk->list("/own/deliver/outgoing")->empty());
  EXPECT_TRUE(coordinator_->disk->list("/run/parts.incoming")->empty());
}

// A file is seen in one of the two places until the coordinator has it.
TEST_F(Delivering, IsUnderWayUntilItIsThere) {
  lead();
  join();
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/nothing"));
  internet_.set_rates("m7", {.up_bytes_per_second = 1e6, .down_bytes_per_second = 1e6});
  write("part-7-200", make_bytes(2'000'000));
  int looks = 0;
  for (; collected("part-7-200") == "none" && looks < 2000; ++looks) {
    const bool here = *member_->disk->exists("/own/deliver/part-7-200");
    ASSERT_TRUE(here || FileDelivery::under_way(*member_->disk, "/own/deliver")) << looks;
    run_for(0.01);
  }
  EXPECT_GT(looks, 100);
  EXPECT_LT(looks, 2000);
  run_for(1);
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
}

// A newer file of the same name takes the older one's place, also while the older is under way.
TEST_F(Delivering, TheNewestOfAName) {
  lead();
  join();
  internet_.set_rates("m7", {.up_bytes_per_second = 1e6, .down_bytes_per_second = 1e6});
  write("part-7-200", make_bytes(4'000'000));
  run_for(2);
  EXPECT_EQ(collected("part-7-200"), "none");
  const std::string newer = make_bytes(2'000'000, 5);
  write("part-7-200", newer);
  run_for(20);
  EXPECT_TRUE(collected("part-7-200") == newer);
  write("part-7-200", make_bytes(1'000'000, 6));
  run_for(10);
  EXPECT_TRUE(collected("part-7-200") == make_bytes(1'000'000, 6));
}

// Nothing is lost or doubled when a coordinator starts again or connections break.
TEST_F(Delivering, AnotherCoordinator) {
  lead();
  join();
  internet_.set_rates("m7", {.up_bytes_per_second = 1e6, .down_bytes_per_second = 1e6});
  for (int i = 0; i < 8; ++i) {
    if (i == 1) write("part-7-9", make_bytes(4'000'000));
    run_for(0.5);
    if (i == 2) internet_.reset("m1", "m7");
    if (i != 5) continue;
    const std::shared_ptr<host::SimDisk> disk = coordinator_->disk;
    member_->node.fence(coordinator_->node.id);
    lead(disk);
    member_->node.open(coordinator_->node);
  }
  run_for(30);
  EXPECT_TRUE(collected("part-7-9") == make_bytes(4'000'000));
}

// What an earlier process of the member has saved and not brought is brought by the next one, first of all.
// It may have been moved aside, or not. A half of a file goes, and so does an older one of the same name.
TEST_F(Delivering, AnotherLifeOfTheMember) {
  lead();
  join();
  run_for(1);
  const std::shared_ptr<host::SimDisk> disk = member_->disk;
  write("part-7-8", make_bytes(3'000'000));
  while (*disk->exists("/own/deliver/part-7-8")) run_for(0.01);
  EXPECT_EQ(disk->list("/own/deliver/outgoing")->size(), 1U);
  EXPECT_EQ(collected("part-7-8"), "none");
  EXPECT_FALSE(delivery_->brings_earlier()) << "it is this process's own";
  write("part-7-8", make_bytes(200'000));
  write("part-7-9", "of before");
  write("part-7-10.tmp", "a half");
  delivery_.reset();
  member_.reset();
  EXPECT_TRUE(host::replace_file(*disk, "/own/deliver/outgoing/nothing", "no number").ok());
  run_for(1);
  join(disk);
  EXPECT_TRUE(delivery_->brings_earlier());
  write("part-7-12", "of this one");
  run_for(5);
  EXPECT_FALSE(delivery_->brings_earlier());
  EXPECT_TRUE(collected("part-7-8") == make_bytes(200'000));
  EXPECT_EQ(collected("part-7-9"), "of before");
  EXPECT_EQ(collected("part-7-12"), "of this one");
  EXPECT_THAT(*disk->list("/own/deliver"), ElementsAre("outgoing"));
  EXPECT_TRUE(disk->list("/own/deliver/outgoing")->empty());
}

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

// A full disk is told, with the time since when. It is nobody's fault. The file arrives once there is room.
TEST_F(Delivering, AFullDisk) {
  lead();
  join();
  run_for(1);
  coordinator_->disk->restart_count({.capacity_bytes = 1'000'000});
  write("part-7-2", make_bytes(2'000'000));
  run_for(3);
  EXPECT_THAT(coordinator_->remarks, Contains(HasSubstr("too little room")));
  ASSERT_TRUE(collection_->failing());
  const Instant since = collection_->failing()->since;
  run_for(8);
  ASSERT_TRUE(collection_->failing());
  EXPECT_EQ(collection_->failing()->since, since);
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
  run_for(40);
  EXPECT_TRUE(coordinator_->disk->list("/run/parts.incoming")->empty());
  EXPECT_TRUE(blamed_.empty());
}

// The coordinator's machine loses its power at each operation of its disk in turn. The file is then at the
// member or, whole and durable, in the coordinator's directory. The next coordinator gets it.
TEST_F(Delivering, PowerIsLostAtEachOperation) {
  const std::string part = make_bytes(1'500'000);
  const auto deliver = [&](const host::SimDiskOptions& options) {
    auto disk = std::make_shared<host::SimDisk>();
    EXPECT_TRUE(host::make_durable_directories(*disk, "/run/parts").ok());
    disk->restart_count(options);
    lead(disk);
    join();
    write("part-7-200", part);
    run_for(3);
    return disk;
  };
  const std::uint64_t operations = deliver({})->operations();
  EXPECT_TRUE(collected("part-7-200") == part);
  ASSERT_GT(operations, 10U);
  for (std::uint64_t at = 0; at < operations; ++at) {
    const auto disk = deliver({.seed = at, .crash_at_operation = at});
    const std::shared_ptr<host::SimDisk> later = disk->after_crash();
    const auto kept = host::read_text(*later, "/run/parts/part-7-200");
    ASSERT_TRUE((kept.ok() && *kept == part) || FileDelivery::under_way(*member_->disk, "/own/deliver"))
        << at;
    member_->node.fence(coordinator_->node.id);
    lead(later);
    member_->node.open(coordinator_->node);
    run_for(3);
    ASSERT_TRUE(collected("part-7-200") == part) << at;
    ASSERT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver")) << at;
  }
}

// A member's machine loses its power at each operation of its disk in turn, with one file on its way and
// another one written meanwhile. Both are then at the coordinator, or still at the member, whose next process
// brings them.
TEST_F(Delivering, AMembersPowerIsLostAtEachOperation) {
  const std::string first = make_bytes(1'500'000);
  const std::string second = make_bytes(300'000);
  const auto deliver = [&](const host::SimDiskOptions& options) {
    auto disk = std::make_shared<host::SimDisk>();
    EXPECT_TRUE(host::make_durable_directories(*disk, "/own/deliver").ok());
    EXPECT_TRUE(host::replace_file(*disk, "/own/deliver/part-7-200", first).ok());
    lead();
    written_ = false;
    disk->restart_count(options);
    delivery_.reset();
    member_.emplace(timeline_, internet_, 7, ++lives_, disk);
    auto delivery = FileDelivery::start(*disk, *member_->exchange, member_->aside, "/own/deliver");
    if (!delivery.ok()) return disk;  // its power is gone
    delivery_ = *std::move(delivery);
    member_->on_other = [this](const net::Arrived& arrived) {
      return delivery_->on(arrived, coordinator_->node.id, *member_->node.links, timeline_.now());
    };
    member_->on_tick = [this] {
      delivery_->tick(coordinator_->node.id, *member_->node.links, timeline_.now());
    };
    member_->node.open(coordinator_->node);
    run_for(0.3);
    written_ = host::replace_file(*disk, "/own/deliver/part-7-300", second).ok();
    run_for(4);
    return disk;
  };
  const std::uint64_t operations = deliver({})->operations();
  ASSERT_TRUE(collected("part-7-200") == first && collected("part-7-300") == second);
  ASSERT_GT(operations, 10U);
  for (std::uint64_t at = 0; at < operations; ++at) {
    const auto disk = deliver({.seed = at, .crash_at_operation = at});
    const bool written = written_;
    const std::shared_ptr<host::SimDisk> later = disk->after_crash();
    coordinator_->node.fence(member_->node.id);
    join(later);
    run_for(7);
    ASSERT_TRUE(collected("part-7-200") == first) << at;
    if (written) {
      ASSERT_TRUE(collected("part-7-300") == second) << at;
    }
    ASSERT_FALSE(FileDelivery::under_way(*later, "/own/deliver")) << at;
    ASSERT_TRUE(blamed_.empty()) << at << blamed_.front().why;
  }
}

}  // namespace
}  // namespace gossamer::node
