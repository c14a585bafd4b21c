// SPDX-License-Identifier: Apache-2.0
//
// A member that breaks the rules of channels, in a simulated fleet that computes: it ends its own life alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/control/control_message.h"
#include "engines/check/check_engine.h"
#include "engines/check/check_workload.h"
#include "net/link/channels.h"
#include "simulation/fleet.h"

namespace gossamer::check {
namespace {

// Joins, opens its links, and holds nothing for ever.
class JoiningEngine final : public cluster::Engine {
 public:
  void on(const cluster::ProcessEvent&, Instant) override {}
  void tick(Instant) override {}
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return std::nullopt; }
  void drain(const std::string&, Instant) override {}
  [[nodiscard]] std::optional<Error> failure() const override { return std::nullopt; }
  [[nodiscard]] std::vector<CounterSample> counters() const override { return {}; }
};

enum class To { kCoordinator, kMembers };

struct Breach {
  net::Sender as = net::Sender::kServing;
  To to = To::kMembers;
  host::Lane lane = host::Lane::kControl;
  net::Message message;
};

class HostileMemberTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kHonest = 3;

  // Three honest members compute. The hostile one is the fourth of them, or joins.
  void begin(net::Sender as) {
    const CheckConfig config{.things = 8, .elements = 64, .pause_ms = 20};
    workload_.emplace(config);
    fleet_.emplace(simulation::Fleet::Options{.workload = *workload_,
                                              .configuration = check_config_bytes(config),
                                              .tracks = workload_->tracks(),
                                              .first_members = kHonest,
                                              .seed = 3});
    for (std::size_t i = 0; i < kHonest; ++i) honest_.push_back(join());
    hostile_ =
        as == net::Sender::kServing ? join() : fleet_->join({.make_engine = [](cluster::MemberProcess&) {
          return std::make_unique<JoiningEngine>();
        }});
    fleet_->run_for(5);
    life_ = fleet_->member(hostile_).member()->self();
    lives_ = honest_lives();
  }
  std::string join() {
    return fleet_->join({.make_engine = [](cluster::MemberProcess& process) {
      return std::make_unique<CheckEngine>(process, CheckEngine::Options{});
    }});
  }
  [[nodiscard]] std::map<std::string, Incarnation> honest_lives() {
    std::map<std::string, Incarnation> lives;
    for (const std::string& machine : honest_) {
      const auto& member = fleet_->member(machine);
      if (const auto life = member.life()) lives[machine] = *life;
    }
    return lives;
  }
  // The hostile member sends it to the coordinator, or to all honest members.
  void send(const Breach& breach) {
    net::Links& links = *fleet_->member(hostile_).links();
    const Instant now = fleet_->timeline().now();
    if (breach.to == To::kCoordinator)
      return (void)links.send({cluster::kCoordinatorNode, {}}, breach.lane, breach.message, now);
    for (const std::string& machine : honest_) {
      const NodeId node = fleet_->member(machine).member()->self().node;
      EXPECT_TRUE(links.send({node, {}}, breach.lane, breach.message, now).has_value());
    }
  }
  [[nodiscard]] StepNumber step() {
    return static_cast<const CheckEngine&>(fleet_->member(honest_.front()).engine())
        .step()
        .value_or(StepNumber());
  }
  // Claim: within 2 s the sender is fenced, with a reason, and no other. The others go on.
  void expect_harmless(Breach breach, const std::string& what) {
    for (const To to : {To::kCoordinator, To::kMembers}) {
      breach.to = to;
      expect_harmless_once(breach, what + (to == To::kMembers ? ", to members" : ", to the coordinator"));
    }
  }
  void expect_harmless_once(const Breach& breach, const std::string& what) {
    begin(breach.as);
    send(breach);
    fleet_->run_for(2);
    ASSERT_NE(fleet_->leader(), nullptr);
    EXPECT_TRUE(fleet_->leader()->fenced().contains(life_.incarnation)) << what;
    const bool told = fleet_->log().find("rule") != std::string::npos ||
                      fleet_->log().find("cannot read what a member said") != std::string::npos;
    EXPECT_TRUE(told) << what << "\n" << fleet_->log();
    EXPECT_EQ(honest_lives(), lives_) << what;
    EXPECT_EQ(fleet_->failure(), std::nullopt) << what;
    const StepNumber before = step();
    fleet_->run_for(2);
    EXPECT_GT(step(), before) << what;
    EXPECT_EQ(honest_lives(), lives_) << what;
    honest_.clear();
    fleet_.reset();
  }

  std::optional<CheckWorkload> workload_;
  std::optional<simulation::Fleet> fleet_;
  std::vector<std::string> honest_;
  std::string hostile_;
  net::PeerId life_;
  std::map<std::string, Incarnation> lives_;
};

net::Message message(std::uint32_t channel, std::string body, std::uint64_t payload = 0) {
  net::Message made{.channel = channel, .body = std::move(body), .payload = {}};
  if (payload > 0) made.payload.push_back(Slice::of(std::string(payload, 'x')));
  return made;
}

// A node that sends where it may not: each channel that its row leaves out, and one that nobody has.
TEST_F(HostileMemberTest, WhoMayNotSend) {
  for (const net::Sender as : {net::Sender::kServing, net::Sender::kJoining}) {
    std::set<std::uint32_t> may;
    for (const net::ChannelRule& row : net::channel_rules()) {
      if (row.sender == as) may.insert(row.channel);
    }
    for (std::uint32_t channel = 0; channel <= 10; ++channel) {
      if (may.contains(channel)) continue;
      expect_harmless({.as = as, .message = message(channel, "x")},
                      fmt::format("channel {} as a {}", channel, name(as)));
    }
  }
}

// What a node may send to its coordinator alone, or to members alone, and sends to the others.
TEST_F(HostileMemberTest, ToWhomItMayNotSend) {
  for (const net::ChannelRule& row : net::channel_rules()) {
    if (row.sender == net::Sender::kCoordinator || row.receiver == net::Receiver::kAny) continue;
    const host::Lane lane = row.lanes == net::Lanes::kBulk ? host::Lane::kBulk : host::Lane::kControl;
    expect_harmless_once(
        {.as = row.sender,
         .to = row.receiver == net::Receiver::kMember ? To::kCoordinator : To::kMembers,
         .lane = lane,
         .message = message(row.channel, "x")},
        fmt::format("channel {} as a {}, not to a {}", row.channel, name(row.sender), name(row.receiver)));
  }
}

// A message larger than its row allows, and one on a lane that its row leaves out.
TEST_F(HostileMemberTest, TooMuchAndOtherLanes) {
  for (const net::ChannelRule& row : net::channel_rules()) {
    if (row.sender == net::Sender::kCoordinator || row.most_bytes > net::kMaxPayloadBytes) continue;
    const host::Lane lane = row.lanes == net::Lanes::kControl ? host::Lane::kControl : host::Lane::kBulk;
    const std::string who = fmt::format("channel {} as a {}", row.channel, name(row.sender));
    expect_harmless({.as = row.sender, .lane = lane, .message = message(row.channel, "x", row.most_bytes)},
                    who);
    if (row.lanes == net::Lanes::kBoth) continue;
    const host::Lane other = lane == host::Lane::kBulk ? host::Lane::kControl : host::Lane::kBulk;
    expect_harmless({.as = row.sender, .lane = other, .message = message(row.channel, "x")}, who);
  }
}

// Bytes that are no message, on the channels that this fleet serves.
TEST_F(HostileMemberTest, Garbage) {
  expect_harmless_once({.message = message(net::kCheckChannel, "\xff")}, "garbage for the engine");
  for (const net::Sender as : {net::Sender::kServing, net::Sender::kJoining}) {
    expect_harmless_once({.as = as, .to = To::kCoordinator, .message = message(net::kControlChannel, "\xff")},
                         "garbage for the coordinator");
  }
}

// Claim: a member that breaks a rule in each of its lives, as soon as it serves, leaves the others their
// lives and more than half their pace. Its lives come ever later.
TEST_F(HostileMemberTest, HalfThePaceAtLeast) {
  std::array<std::uint64_t, 2> steps{};  // with a fourth member that is honest, and with one that is not
  for (std::size_t hostile = 0; hostile < steps.size(); ++hostile) {
    begin(net::Sender::kServing);
    const StepNumber before = step();
    std::set<Incarnation> lives;
    for (int tenths = 0; tenths < 600; ++tenths) {
      fleet_->run_for(0.1);
      const auto life = fleet_->member(hostile_).life();
      if (!life || hostile == 0 || !lives.insert(*life).second) continue;
      net::Links& links = *fleet_->member(hostile_).links();
      (void)links.send({cluster::kCoordinatorNode, {}}, host::Lane::kControl,
                       message(net::kControlChannel, "\xff"), fleet_->timeline().now());
    }
    steps[hostile] = step().value - before.value;
    EXPECT_EQ(honest_lives(), lives_);
    EXPECT_GE(lives.size(), hostile == 1 ? 4U : 0U);
    honest_.clear();
    fleet_.reset();
  }
  EXPECT_GT(2 * steps[1], steps[0]) << steps[1] << " steps beside a hostile member, " << steps[0] << " else";
}

// Claim: a member that lies about the breach of a rule fences nobody, whoever serves or joins.
TEST_F(HostileMemberTest, LiarsFenceNobody) {
  begin(net::Sender::kServing);
  const std::string joins = fleet_->join(
      {.make_engine = [](cluster::MemberProcess&) { return std::make_unique<JoiningEngine>(); }});
  fleet_->run_for(1);
  fleet_->member(hostile_).falsify([&](membership::ToCoordinator& said) {
    if (!said.has_beat()) return;
    for (const auto& [machine, member] : fleet_->members()) {
      if (machine == hostile_ || member->member() == nullptr) continue;
      membership::Broke& broke = *said.mutable_beat()->add_broke();
      broke.set_node(member->member()->self().node.value);
      broke.set_incarnation(member->member()->self().incarnation.value);
      broke.set_rule("a rule that it has kept");
    }
  });
  const auto joining = fleet_->member(joins).life();
  fleet_->run_for(30);
  EXPECT_EQ(honest_lives(), lives_);
  EXPECT_EQ(fleet_->member(joins).life(), joining);
  EXPECT_NE(fleet_->log().find("accused"), std::string::npos) << fleet_->log();
}

}  // namespace
}  // namespace gossamer::check
