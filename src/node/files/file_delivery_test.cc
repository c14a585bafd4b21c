// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/api/durable_directories.h"
#include "node/files/test_delivering.h"

namespace gossamer::node {
namespace {

using testing::Delivering;
using ::testing::ElementsAre;
using testing::ExchangingNode;
using ::testing::HasSubstr;
using testing::make_bytes;

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

// A delivery moves while bytes of its files come to the coordinator. It does not while nothing comes, or
// while another peer asks for them.
TEST_F(Delivering, MovesWhileBytesCome) {
  lead();
  join();
  internet_.set_rates("m7", {.up_bytes_per_second = 1e5, .down_bytes_per_second = 1e5});
  run_for(1);
  EXPECT_EQ(delivery_->moved(), std::nullopt);
  write("part-7-200", make_bytes(1'000'000));
  run_for(2);
  for (int i = 0; i < 5; ++i) {
    run_for(1);
    ASSERT_TRUE(delivery_->moved().has_value());
    EXPECT_LT((timeline_.now() - *delivery_->moved()).seconds(), 0.5) << i;
  }
  EXPECT_EQ(collected("part-7-200"), "none");
  internet_.cut("m7", "m1");
  run_for(1);
  const auto moved = delivery_->moved();
  ExchangingNode other(timeline_, internet_, 8);
  member_->node.open(other.node);
  member_->store("/own/same", make_bytes(1'000'000));
  const Sha256 id = describe_file(*member_->disk, "/own/same", "part-7-200")->manifest.id();
  other.exchange->get({.id = id, .path = "/got", .most_bytes = 2'000'000});
  other.exchange->donors(id, {member_->node.id});
  for (int i = 0; i < 3000 && other.got.empty(); ++i) {
    run_for(0.01);
    other.tick();
  }
  EXPECT_FALSE(other.got.empty());
  EXPECT_EQ(delivery_->moved(), moved);
  internet_.heal("m7", "m1");
  run_for(20);
  EXPECT_EQ(collected("part-7-200"), make_bytes(1'000'000));
  const auto last = delivery_->moved();
  EXPECT_GT(last, moved);
  run_for(5);
  EXPECT_EQ(delivery_->moved(), last);
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

// A file that can never be read holds up the others for no time, and the run for five minutes. It stays on
// this machine under a name that is told. Another one like it does not take its place. Once moved back, it is
// brought.
TEST_F(Delivering, AFileThatIsNeverRead) {
  lead();
  join();
  const auto damaged = [&] {  // no bytes come from what is a directory
    EXPECT_TRUE(host::make_durable_directories(*member_->disk, "/own/deliver/part-7-200").ok());
    tick_for(1);
  };
  const auto told = [&] { return delivery_->take_remarks(); };
  damaged();
  write("part-7-300", "learnt");
  tick_for(290);
  EXPECT_EQ(collected("part-7-300"), "learnt");
  EXPECT_EQ(told().size(), 1U) << "it is told once that a file cannot be read";
  EXPECT_TRUE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  tick_for(20);
  EXPECT_FALSE(FileDelivery::under_way(*member_->disk, "/own/deliver"));
  EXPECT_THAT(told(), ElementsAre(HasSubstr("/own/deliver.unread/1-part-7-200")));
  damaged();
  tick_for(310);
  EXPECT_THAT(*member_->disk->list("/own/deliver.unread"), ElementsAre("1-part-7-200", "2-part-7-200"));
  const std::string mended = "/own/deliver.unread/1-part-7-200";
  EXPECT_TRUE(member_->disk->remove_all(mended).ok());
  EXPECT_TRUE(host::replace_file(*member_->disk, mended, "mended").ok());
  EXPECT_TRUE(member_->disk->rename(mended, "/own/deliver/part-7-200").ok());
  tick_for(5);
  EXPECT_EQ(collected("part-7-200"), "mended");
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
