// SPDX-License-Identifier: Apache-2.0
#include "node/files/member_supply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <set>

#include "host/api/files.h"
#include "node/files/file_collection.h"
#include "node/files/test_delivery_rules.h"
#include "node/files/test_exchanging_node.h"

namespace gossamer::node {
namespace {

using testing::ExchangingNode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_bytes;

// A member on a machine of its own, whose directory is /own.
class SuppliedMember {
 public:
  SuppliedMember(host::Timeline& timeline, host::SimInternet& internet, std::uint64_t number, Supply told,
                 std::shared_ptr<host::SimDisk> its_disk, bool in_place)
      : disk(std::move(its_disk)), node(timeline, internet, number, ++lives), timeline_(timeline) {
    node.consumes = false;
    const auto aside = [this](std::function<void()> work, std::function<void(Instant)> then) {
      work_.emplace_back(std::move(work), std::move(then));
    };
    supply = std::make_unique<MemberSupply>(
        *disk, std::move(told), aside,
        MemberSupply::Options{.directory = "/own", .seed = number, .in_place = in_place}, timeline.now());
    supply->connect(node.links.get());
    node.on_event = [this](const net::LinkEvent& event) {
      const auto* const arrived = std::get_if<net::Arrived>(&event);
      if (arrived != nullptr && !supply->on(*arrived, coordinator, timeline_.now()))
        node.links->consumed(arrived->receipt, timeline_.now());
    };
  }
  void tick() {
    if (!work_.empty()) {
      auto [work, then] = std::move(work_.front());
      work_.pop_front();
      work();
      then(timeline_.now());
    }
    supply->donors(donors);
    supply->tick(coordinator, timeline_.now());
    for (std::string& one : supply->take_remarks()) remarks.push_back(std::move(one));
  }

  static inline std::uint64_t lives = 1;
  std::shared_ptr<host::SimDisk> disk;
  net::Node node;
  net::PeerId coordinator;
  std::set<net::PeerId> donors;
  std::unique_ptr<MemberSupply> supply;
  std::vector<std::string> remarks;

 private:
  host::Timeline& timeline_;
  std::deque<std::pair<std::function<void()>, std::function<void(Instant)>>> work_;
};

// A coordinator, which is node 1, with two files of a run.
class MemberSupplyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* const made : {"/run/cache", "/run/kept", "/run/parts"})
      ASSERT_TRUE(coordinator_.disk->make_directories(made).ok());
    put("train.cache", "");
    put("step-000000000060.3.part", "/run/kept/step-000000000060.3.part");
    coordinator_.on_other = [this](const net::Arrived& arrived) {
      return collection_.on(arrived, *coordinator_.node.links, timeline_.now());
    };
    coordinator_.on_tick = [this] { collection_.tick(*coordinator_.node.links, timeline_.now()); };
  }
  void put(const std::string& name, const std::string& path) {
    bytes_[name] = make_bytes(2'500'000, told_.files.size());
    const std::string at = path.empty() ? "/run/cache/" + name : path;
    ASSERT_TRUE(host::replace_file(*coordinator_.disk, at, bytes_[name]).ok());
    ASSERT_TRUE(add_file(*coordinator_.disk, told_, name, path).ok());
    const Supply::File& file = told_.files.back();
    const auto stored = find_stored(*coordinator_.disk, told_.place_of(file), file.manifest);
    ASSERT_TRUE(stored.has_value());
    coordinator_.give(*stored);
  }
  // Fetches from the coordinator unless it is told otherwise.
  enum class Files { kElsewhere, kInPlace };
  SuppliedMember& join(std::uint64_t number, std::shared_ptr<host::SimDisk> disk = nullptr,
                       Files files = Files::kElsewhere) {
    if (disk == nullptr) disk = std::make_shared<host::SimDisk>();
    auto& member = members_[number];
    member.reset();
    member = std::make_unique<SuppliedMember>(timeline_, internet_, number, told_, std::move(disk),
                                              files == Files::kInPlace);
    member->coordinator = coordinator_.node.id;
    member->donors = {coordinator_.node.id};
    member->node.open(coordinator_.node);
    return *member;
  }
  void run_for(double seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
      timeline_.run_until(timeline_.now() + from_seconds(0.01));
      coordinator_.tick();
      for (const auto& [number, member] : members_) member->tick();
    }
  }
  static std::string text(host::Disk& disk, const std::string& path) {
    const auto found = host::read_text(disk, path);
    return found.ok() ? *found : "none";
  }
  void expect_all(const SuppliedMember& member) {
    ASSERT_TRUE(member.supply->here());
    const Supply& here = member.supply->supplied().supply;
    for (const Supply::File& file : here.files)
      EXPECT_TRUE(text(*member.disk, here.place_of(file).path) == bytes_[file.name]) << file.name;
  }

  host::Timeline timeline_{3};
  host::SimInternet internet_{timeline_, 3};
  Supply told_{.directory = "/run/cache", .deliver = "/run/parts", .most_bytes = 10'000'000};
  std::map<std::string, std::string> bytes_;
  ExchangingNode coordinator_{timeline_, internet_, 1};
  testing::AskedRules rules_;
  FileCollection collection_{
      *coordinator_.disk, *coordinator_.exchange, rules_,
      FileCollection::Options{
          .directory = told_.deliver, .most_bytes = told_.most_bytes, .aside = coordinator_.aside}};
  std::map<std::uint64_t, std::unique_ptr<SuppliedMember>> members_;
};

// A member elsewhere gets all files below its own directory, and gives them to other members.
TEST_F(MemberSupplyTest, ComesFromTheCoordinatorAndFromMembers) {
  SuppliedMember& first = join(7);
  EXPECT_FALSE(first.supply->here());
  run_for(20);
  expect_all(first);
  EXPECT_TRUE(first.supply->supplied().elsewhere);
  EXPECT_EQ(first.supply->supplied().supply.directory, "/own/data");
  EXPECT_EQ(first.supply->supplied().supply.deliver, "/own/deliver");
  EXPECT_THAT(first.remarks, ::testing::Contains(HasSubstr("data: all here, 5.0 MB")));
  SuppliedMember& second = join(8);
  second.donors = {first.node.id};
  second.node.open(first.node);
  run_for(20);
  expect_all(second);
}

// What appears in the member's directory comes to the coordinator's, until the run is over: then nothing of
// it stays at the member.
TEST_F(MemberSupplyTest, DeliversUntilTheRunIsOver) {
  SuppliedMember& member = join(7);
  run_for(20);
  const std::string deliver = member.supply->supplied().supply.deliver;
  ASSERT_TRUE(host::replace_file(*member.disk, deliver + "/part-7-30", "trained").ok());
  ASSERT_TRUE(host::replace_file(*member.disk, deliver + "/7.steps", "a step\n").ok());
  run_for(5);
  EXPECT_EQ(text(*coordinator_.disk, "/run/parts/part-7-30"), "trained");
  EXPECT_EQ(text(*coordinator_.disk, "/run/parts/7.steps"), "a step\n");
  EXPECT_FALSE(*member.disk->exists(deliver + "/part-7-30"));
  const auto disk = member.disk;
  member.supply->run_over();
  members_.clear();
  EXPECT_FALSE(*disk->exists("/own/data"));
  EXPECT_FALSE(*disk->exists("/own/deliver"));
}

// What the coordinator does not have when the run is over stays at the member, whether it was looked at or
// not. What was fetched goes.
TEST_F(MemberSupplyTest, KeepsWhatIsNotBrought) {
  for (const bool looked_at : {false, true}) {
    SuppliedMember& member = join(7);
    run_for(20);
    ASSERT_TRUE(member.supply->here());
    rules_.verdicts["part-7-30"] = DeliveryRules::Early{};
    const auto disk = member.disk;
    const std::string learnt = looked_at ? "learnt" : "learnt, and not looked at";
    ASSERT_TRUE(host::replace_file(*disk, "/own/deliver/part-7-30", learnt).ok());
    if (looked_at) run_for(2);
    ASSERT_EQ(FileDelivery::under_way(*disk, "/own/deliver"), looked_at);
    member.supply->run_over();
    members_.clear();
    EXPECT_FALSE(*disk->exists("/own/data"));
    rules_.verdicts.clear();
    join(7, disk);
    run_for(20);
    EXPECT_EQ(text(*coordinator_.disk, "/run/parts/part-7-30"), learnt);
  }
}

// A member on the coordinator's machine uses its files where they lie, if its user says so, and has nothing
// of its own.
TEST_F(MemberSupplyTest, InPlaceNothingIsFetched) {
  SuppliedMember& member = join(7, coordinator_.disk, Files::kInPlace);
  expect_all(member);
  EXPECT_FALSE(member.supply->supplied().elsewhere);
  EXPECT_EQ(member.supply->supplied().supply, told_);
  run_for(1);
  EXPECT_FALSE(*member.disk->exists("/own"));
  member.supply->run_over();
  members_.clear();
  EXPECT_TRUE(*coordinator_.disk->exists("/run/cache/train.cache"));
}

// Without that word no path counts that the coordinator names, even if all files are there.
TEST_F(MemberSupplyTest, PathsOfTheCoordinatorDoNotCount) {
  SuppliedMember& member = join(7, coordinator_.disk);
  EXPECT_FALSE(member.supply->here());
  run_for(20);
  expect_all(member);
  EXPECT_TRUE(member.supply->supplied().elsewhere);
  EXPECT_EQ(member.supply->supplied().supply.deliver, "/own/deliver");
  // A user who says so where the files are not gets them as any other.
  SuppliedMember& other = join(8, nullptr, Files::kInPlace);
  run_for(20);
  expect_all(other);
  EXPECT_TRUE(other.supply->supplied().elsewhere);
}

// A process that starts again has what the one before has fetched, unless the run was over.
TEST_F(MemberSupplyTest, LastsFromLifeToLife) {
  SuppliedMember& before = join(7);
  run_for(20);
  expect_all(before);
  const auto disk = before.disk;
  SuppliedMember& after = join(7, disk);
  after.donors = {};
  run_for(1);
  expect_all(after);
  EXPECT_TRUE(after.supply->supplied().elsewhere);
  EXPECT_THAT(after.remarks, IsEmpty());
}

// A file that was damaged between two processes of a member is named, and comes anew. The bytes that are
// wrong reach neither the engine nor another member.
TEST_F(MemberSupplyTest, ADamagedFileIsFetchedAgain) {
  SuppliedMember& before = join(7);
  run_for(20);
  const auto disk = before.disk;
  for (const std::size_t at : {std::size_t{0}, std::size_t{1'700'000}, std::size_t{2'499'999}}) {
    std::string damaged = bytes_["train.cache"];
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    ASSERT_TRUE(host::replace_file(*disk, "/own/data/train.cache", damaged).ok());
    SuppliedMember& after = join(7, disk);
    EXPECT_FALSE(after.supply->here());
    run_for(20);
    expect_all(after);
    SuppliedMember& other = join(8);
    other.donors = {after.node.id};
    other.node.open(after.node);
    run_for(20);
    expect_all(other);
    EXPECT_THAT(after.remarks, ::testing::Contains(HasSubstr("/own/data/train.cache is damaged")));
    EXPECT_THAT(after.remarks, ::testing::Contains(HasSubstr("data: all here, 2.5 MB")));
  }
}

// Claim: what an earlier process of a member has saved is brought to the coordinator before the engine
// begins.
TEST_F(MemberSupplyTest, BringsWhatWasSavedFirst) {
  const auto disk = std::make_shared<host::SimDisk>();
  ASSERT_TRUE(disk->make_directories("/own/deliver").ok());
  ASSERT_TRUE(host::replace_file(*disk, "/own/deliver/part-7-30", "saved").ok());
  rules_.verdicts["part-7-30"] = DeliveryRules::Early{};
  const SuppliedMember& member = join(7, disk);
  run_for(20);
  EXPECT_THAT(member.remarks, ::testing::Contains(HasSubstr("data: all here")));
  EXPECT_THAT(member.remarks, ::testing::Contains(HasSubstr("brings to the coordinator")));
  EXPECT_FALSE(member.supply->here());
  EXPECT_FALSE(member.supply->failure().has_value());
  rules_.verdicts.clear();
  run_for(7);
  expect_all(member);
  EXPECT_EQ(text(*coordinator_.disk, "/run/parts/part-7-30"), "saved");
}

// Claim: the engine waits for ten minutes at most until the coordinator takes what was saved, which stays.
TEST_F(MemberSupplyTest, BringsForTenMinutes) {
  const auto disk = std::make_shared<host::SimDisk>();
  ASSERT_TRUE(disk->make_directories("/own/deliver").ok());
  ASSERT_TRUE(host::replace_file(*disk, "/own/deliver/part-7-30", "saved").ok());
  rules_.verdicts["part-7-30"] = DeliveryRules::Early{};
  const SuppliedMember& member = join(7, disk);
  run_for(20);
  timeline_.run_until(Instant{} + from_seconds(590));
  run_for(0.1);
  EXPECT_FALSE(member.supply->here());
  timeline_.run_until(Instant{} + from_seconds(601));
  run_for(0.1);
  expect_all(member);
  EXPECT_TRUE(FileDelivery::under_way(*disk, "/own/deliver"));
}

// Claim: the ten minutes begin once there is something to bring, however long the data took.
TEST_F(MemberSupplyTest, BringsForTenMinutesAfterItsData) {
  const auto disk = std::make_shared<host::SimDisk>();
  ASSERT_TRUE(disk->make_directories("/own/deliver").ok());
  ASSERT_TRUE(host::replace_file(*disk, "/own/deliver/part-7-30", "saved").ok());
  rules_.verdicts["part-7-30"] = DeliveryRules::Early{};
  SuppliedMember& member = join(7, disk);
  member.donors.clear();
  run_for(1);
  timeline_.run_until(Instant{} + from_seconds(700));
  member.donors = {coordinator_.node.id};
  run_for(20);
  EXPECT_THAT(member.remarks, ::testing::Contains(HasSubstr("data: all here")));
  EXPECT_FALSE(member.supply->here());
  timeline_.run_until(Instant{} + from_seconds(1400));
  run_for(0.1);
  expect_all(member);
}

// Claim: a slow line does not make the engine begin without what was saved, as bytes come. Once nothing has
// come for ten minutes, it begins.
TEST_F(MemberSupplyTest, BringsForAsLongAsBytesCome) {
  const auto disk = std::make_shared<host::SimDisk>();
  const std::string saved = make_bytes(5'000'000, 3);
  ASSERT_TRUE(disk->make_directories("/own/deliver").ok());
  ASSERT_TRUE(host::replace_file(*disk, "/own/deliver/part-7-30", saved).ok());
  const SuppliedMember& member = join(7, disk);
  internet_.set_rates("m7", {.up_bytes_per_second = 5e3, .down_bytes_per_second = 125e6});
  run_for(100);
  EXPECT_THAT(member.remarks, ::testing::Contains(HasSubstr("brings to the coordinator")));
  run_for(700);
  EXPECT_FALSE(member.supply->here()) << "five minutes are to come";
  internet_.cut("m7", "m1");
  run_for(590);
  EXPECT_FALSE(member.supply->here());
  internet_.heal("m7", "m1");
  run_for(60);
  internet_.cut("m7", "m1");
  run_for(590);
  EXPECT_FALSE(member.supply->here()) << "something has come meanwhile";
  run_for(30);
  expect_all(member);
  internet_.heal("m7", "m1");
  run_for(400);
  EXPECT_TRUE(text(*coordinator_.disk, "/run/parts/part-7-30") == saved);
}

// What waits to be delivered is set aside as a whole, under a name that nothing has yet. Where nothing waits,
// nothing is moved.
TEST_F(MemberSupplyTest, SetsAsideWhatWaits) {
  host::SimDisk disk;
  const std::string deliver = MemberSupply::deliveries("/own");
  const auto set_aside = [&] { return FileDelivery::set_aside(disk, deliver)->value_or("none"); };
  EXPECT_EQ(set_aside(), "none");
  ASSERT_TRUE(disk.make_directories("/own/deliver/outgoing").ok());
  EXPECT_EQ(set_aside(), "none");
  ASSERT_TRUE(host::replace_file(disk, "/own/deliver/part-7-1", "waits").ok());
  EXPECT_EQ(set_aside(), "/own/deliver.1");
  EXPECT_FALSE(*disk.exists("/own/deliver"));
  ASSERT_TRUE(disk.make_directories("/own/deliver/outgoing").ok());
  ASSERT_TRUE(host::replace_file(disk, "/own/deliver/outgoing/3-part-7-2", "is under way").ok());
  EXPECT_EQ(set_aside(), "/own/deliver.2");
  EXPECT_EQ(text(disk, "/own/deliver.1/part-7-1"), "waits");
  EXPECT_EQ(text(disk, "/own/deliver.2/outgoing/3-part-7-2"), "is under way");
}

// A file that is larger than it was said to be is not taken, and the files will never be here.
TEST_F(MemberSupplyTest, FailsOnAFileThatIsTooLarge) {
  told_.files[0].bytes -= 1;
  const SuppliedMember& member = join(7);
  run_for(20);
  EXPECT_FALSE(member.supply->here());
  ASSERT_TRUE(member.supply->failure().has_value());
  EXPECT_THAT(member.supply->failure()->message(), HasSubstr("larger than it may be"));
}

}  // namespace
}  // namespace gossamer::node
