// SPDX-License-Identifier: Apache-2.0
//
// Nodes that are expelled, as the coordinator and the members see them.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/control/control_message.h"
#include "cluster/control/coordinator.h"
#include "cluster/control/member_links.h"
#include "cluster/control/test_hello.h"
#include "cluster/control/test_leadership.h"
#include "cluster/control/test_store_rows.h"
#include "net/link/test_counting_network.h"

namespace gossamer::cluster {
namespace {

constexpr net::PeerId kLead{kCoordinatorNode, Incarnation(1)};

// Whether a node that holds the certificate of `from` is refused by the links of a node.
class Guest {
 public:
  explicit Guest(net::PeerId host)
      : links(network, {.run = "run", .self = host, .program = "test", .coordinator = kCoordinatorNode}) {
    network.keeps = true;
  }

  static membership::MemberRecord record(net::PeerId peer) {
    membership::MemberRecord record;
    record.set_node(peer.node.value);
    record.set_incarnation(peer.incarnation.value);
    record.set_state(membership::SERVING);
    return record;
  }
  // The coordinator tells of a life that joins.
  static void tell(MemberLinks& peers, net::PeerId joins) { peers.expect(record(joins), {}); }

  [[nodiscard]] bool refuses(net::PeerId from, Instant now) {
    const host::ConnectionId connection{++last_};
    net::LinkEvents events;
    links.on(knock(connection, from), now, events);
    network.sent.clear();
    links.on(host::Received{.connection = connection, .frame = net::encode_frame(hello(from, last_))}, now,
             events);
    CHECK(!network.sent.empty());
    return network.sent.front().kind_case() == wire::FrameHeader::kRefusal;
  }

  net::CountingNetwork network;
  net::Links links;

 private:
  std::uint64_t last_ = 1000;
};

class ExpellingTest : public ::testing::Test {
 protected:
  ExpellingTest() { lead({}); }

  // A coordinator takes up the store.
  void lead(Records records) {
    auto changes = begin_lead(records, {.run = "run", .batch = 1});
    ASSERT_TRUE(changes.ok());
    keep(*changes, kept_);
    CoordinatorOptions options;
    options.run = "run";
    options.generation = Generation(1);
    coordinator_.reset();
    guest_.emplace(kLead);
    coordinator_.emplace(std::move(options), std::move(records), workload_, guest_->links, now_);
    store();
  }
  void lead_again() {
    std::vector<host::Entry> entries;
    for (const auto& [key, value] : kept_) entries.push_back({.key = key, .value = value});
    auto records = read_records(entries);
    ASSERT_TRUE(records.ok()) << records.error().message();
    lead(*std::move(records));
  }

  void store() {
    while (const auto changes = coordinator_->next_commit()) {
      keep(*changes, kept_);
      coordinator_->committed(now_);
    }
  }

  [[nodiscard]] Result<std::string> begin(NodeId node) {
    membership::BeginAsk ask;
    ask.set_run("run");
    ask.set_memory_bytes(1 << 20);
    ask.set_cores(1);
    Result<std::string> begun = Error{.what = "no answer"};
    coordinator_->begin(
        node, ask.SerializeAsString(), [&](const Result<std::string>& answer) { begun = answer; }, now_);
    store();
    return begun;
  }
  template <class Fill>
  void say(net::PeerId from, Fill fill) {
    membership::ToCoordinator said;
    fill(said);
    coordinator_->on(net::Arrived{.from = from, .message = pack(said), .receipt = {}}, now_);
    store();
  }
  net::PeerId serve(NodeId node) {
    membership::BeginAnswer begun;
    const auto answer = begin(node);
    CHECK(answer.ok() && begun.ParseFromString(*answer));
    const net::PeerId peer{NodeId(begun.node()), Incarnation(begun.incarnation())};
    say(peer, [](auto& said) { said.mutable_here(); });
    say(peer, [](auto& said) { said.mutable_ready(); });
    rest();
    return peer;
  }
  void rest() {
    for (const auto& [node, record] : std::map(coordinator_->view().members())) {
      say(peer_of(record),
          [&](auto& said) { said.mutable_frozen()->set_epoch(coordinator_->view().epoch().value); });
    }
  }
  void expel(const std::vector<NodeId>& nodes) {
    bool done = false;
    coordinator_->expel(nodes, now_, [&done] { done = true; });
    EXPECT_FALSE(done) << "before the store has it";
    store();
    EXPECT_TRUE(done);
  }

  Instant now_;
  TestWorkload workload_;
  StoreRows kept_;
  std::optional<Guest> guest_;
  std::optional<Coordinator> coordinator_;
};

// Claim: an expelled member is out of the view, its life is fenced and its things go to the others. It gets
// no new life. A coordinator that takes up the store knows all of that.
TEST_F(ExpellingTest, ExpelsAMember) {
  const net::PeerId stays = serve(NodeId(10));
  const net::PeerId goes = serve(NodeId(11));
  expel({goes.node});
  for (int coordinators = 0; coordinators < 2; ++coordinators) {
    if (coordinators == 0) rest();
    EXPECT_EQ(coordinator_->view().expelled(), std::set{goes.node});
    EXPECT_TRUE(coordinator_->fenced().contains(goes.incarnation));
    EXPECT_FALSE(coordinator_->view().members().contains(goes.node));
    EXPECT_TRUE(coordinator_->view().members().contains(stays.node));
    EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
    for (const auto& [thing, node] : coordinator_->holdings()) EXPECT_EQ(node, stays.node);
    const auto again = begin(goes.node);
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().kind, ErrorKind::kRefused);
    EXPECT_NE(again.error().what.find("expelled"), std::string::npos);
    EXPECT_TRUE(guest_->refuses({goes.node, Incarnation(500)}, now_));
    EXPECT_FALSE(guest_->refuses({NodeId(12), Incarnation(500)}, now_));
    lead_again();
  }
}

// Claim: a node that is no member is expelled, too, and the next view says so. Without members there is no
// view to change.
TEST_F(ExpellingTest, ExpelsANodeThatIsAway) {
  expel({NodeId(20)});
  EXPECT_EQ(coordinator_->view().epoch(), Epoch());
  serve(NodeId(10));
  EXPECT_EQ(coordinator_->view().expelled(), std::set{NodeId(20)});
  const Epoch before = coordinator_->view().epoch();
  expel({NodeId(21)});
  EXPECT_EQ(coordinator_->view().epoch(), Epoch(before.value + 1));
  EXPECT_EQ(coordinator_->view().expelled(), (std::set{NodeId(20), NodeId(21)}));
  EXPECT_FALSE(begin(NodeId(21)).ok());
  rest();
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
}

// Claim: if the store has only the node's record when a coordinator ends, the next one fences the member.
TEST_F(ExpellingTest, GoesOnHalfWay) {
  serve(NodeId(10));
  const net::PeerId goes = serve(NodeId(11));
  const auto before = kept_;
  expel({goes.node});
  const auto record = std::pair("nodes/00000000000000000011", kept_.at("nodes/00000000000000000011"));
  kept_ = before;
  kept_.insert(record);
  lead_again();
  EXPECT_TRUE(coordinator_->fenced().contains(goes.incarnation));
  EXPECT_EQ(coordinator_->view().expelled(), std::set{goes.node});
  EXPECT_FALSE(coordinator_->view().members().contains(goes.node));
}

// Claim: no other node is given the number of a node that has begun, also where the store does not know that
// it was given, as after it was put back from an older copy; and none that of an expelled node.
TEST_F(ExpellingTest, NumbersAreGivenOnce) {
  const auto give = [&] {
    NodeId given;
    coordinator_->give_node("token", 0, [&](NodeId node) { given = node; });
    store();
    return given;
  };
  EXPECT_EQ(give(), NodeId(2));
  const net::PeerId goes = serve(NodeId(5));
  EXPECT_EQ(give(), NodeId(6));
  expel({goes.node});
  expel({NodeId(20)});
  EXPECT_EQ(give(), NodeId(7));
  lead_again();
  EXPECT_EQ(give(), NodeId(21));
}

// Claim: a member refuses an expelled node whatever life it claims, and no other one.
TEST(ExpelledByMembers, AllLivesAreRefused) {
  constexpr net::PeerId kSelf{NodeId(2), Incarnation(10)};
  Guest guest(kSelf);
  View view;
  MemberLinks peers({.self = kSelf}, view, guest.links);
  membership::Change change;
  change.set_epoch(1);
  change.add_expelled(9);
  ASSERT_TRUE(view.apply(change).ok());
  guest.tell(peers, {NodeId(9), Incarnation(3)});
  guest.tell(peers, {NodeId(8), Incarnation(3)});
  EXPECT_FALSE(guest.refuses({NodeId(9), Incarnation(3)}, {}));
  peers.view_changed({});
  EXPECT_TRUE(guest.refuses({NodeId(9), Incarnation(3)}, {}));
  EXPECT_TRUE(guest.refuses({NodeId(9), Incarnation(1'000'000)}, {}));
  EXPECT_FALSE(guest.refuses({NodeId(8), Incarnation(3)}, {}));
}

// Claim: a joining life that the coordinator has fenced is refused at once, without another view, and older
// lives of its node with it. Its next life is taken once the member is told of it. A life in the view is not
// touched: the next view says what becomes of it.
TEST(ExpelledByMembers, LivesThatAreGone) {
  constexpr net::PeerId kSelf{NodeId(2), Incarnation(10)};
  constexpr net::PeerId kJoins{NodeId(9), Incarnation(12)};
  constexpr net::PeerId kServes{NodeId(8), Incarnation(11)};
  Guest guest(kSelf);
  View view;
  MemberLinks peers({.self = kSelf}, view, guest.links);
  membership::Change change;
  change.set_epoch(1);
  *change.add_members() = Guest::record(kServes);
  ASSERT_TRUE(view.apply(change).ok());
  peers.view_changed({});
  guest.tell(peers, kJoins);
  EXPECT_FALSE(guest.refuses(kJoins, {}));
  EXPECT_TRUE(guest.links.linked(kJoins.node));
  EXPECT_TRUE(peers.gone(kJoins, {}));
  EXPECT_FALSE(guest.links.linked(kJoins.node)) << "it is served no more";
  EXPECT_TRUE(guest.refuses(kJoins, {}));
  EXPECT_FALSE(peers.gone(kServes, {}));
  EXPECT_FALSE(guest.refuses(kServes, {}));
  EXPECT_FALSE(peers.gone(kSelf, {}));
  EXPECT_FALSE(peers.gone(kLead, {}));
  EXPECT_FALSE(guest.refuses(kLead, {}));
  constexpr net::PeerId kNext{NodeId(9), Incarnation(13)};
  guest.tell(peers, kNext);
  EXPECT_FALSE(guest.refuses(kNext, {}));
  EXPECT_TRUE(guest.refuses(kJoins, {}));
}

// Claim: a member takes a life of which the coordinator has told it, as one that joins or in the view, and no
// other life of that node, younger or older. Lives of the coordinator need not be told. From the first moment
// on nobody is taken at his word.
TEST(ExpelledByMembers, LivesThatNobodyGave) {
  constexpr net::PeerId kSelf{NodeId(2), Incarnation(10)};
  Guest guest(kSelf);
  View view;
  MemberLinks peers({.self = kSelf}, view, guest.links);
  EXPECT_TRUE(guest.refuses({NodeId(9), Incarnation(12)}, {}));
  EXPECT_FALSE(guest.refuses({kCoordinatorNode, Incarnation(77)}, {}));
  guest.tell(peers, {NodeId(9), Incarnation(12)});
  for (const bool in_view : {false, true}) {
    if (in_view) {
      membership::Change change;
      change.set_epoch(1);
      *change.add_members() = Guest::record({NodeId(9), Incarnation(12)});
      ASSERT_TRUE(view.apply(change).ok());
      peers.view_changed({});
    }
    EXPECT_FALSE(guest.refuses({NodeId(9), Incarnation(12)}, {})) << in_view;
    EXPECT_TRUE(guest.refuses({NodeId(9), Incarnation(13)}, {}));
    EXPECT_TRUE(guest.refuses({NodeId(9), Incarnation(11)}, {}));
    EXPECT_TRUE(guest.refuses({NodeId(8), Incarnation(12)}, {}));
  }
}

}  // namespace
}  // namespace gossamer::cluster
