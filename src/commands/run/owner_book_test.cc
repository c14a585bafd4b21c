// SPDX-License-Identifier: Apache-2.0
#include "commands/run/owner_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::commands {
namespace {

constexpr std::uint64_t kBookSteps = 100;
constexpr const char* kBook = "/run/nodes/owners";

// A run of 100 steps. Names are "r-NODE-STEP" for a result and "c-NODE-STEP" for a checkpoint.
class NamedRun final : public LedTraining {
 public:
  [[nodiscard]] Facts led_facts() const override {
    return {.run_id = "r", .fingerprint = "f", .steps = kBookSteps};
  }
  [[nodiscard]] Result<Start> find_start(EventSink) override { return Start(); }
  [[nodiscard]] Result<DoneSteps> take_trained(const engine::TrainHooks&) override { return DoneSteps(); }
  [[nodiscard]] std::optional<tensors::CheckpointInfo> checkpoint(StepNumber) const override { return {}; }
  [[nodiscard]] Result<Led> lead(const FleetWanted&) override { return Error{.what = "nobody leads"}; }
  [[nodiscard]] std::optional<DeliveredFile> read_delivered(std::string_view name) const override {
    unsigned node = 0;
    unsigned step = 0;
    char kind = 0;
    if (std::sscanf(std::string(name).c_str(), "%c-%u-%u", &kind, &node, &step) != 3) return std::nullopt;
    return DeliveredFile{
        .node = NodeId(node),
        .step = StepNumber(step),
        .result = kind == 'r',
        .name = std::string(1, kind) + "-" + std::to_string(node) + "-" + std::to_string(step)};
  }
  [[nodiscard]] Result<void> check_delivered(const std::string&, const DeliveredFile&,
                                             std::span<const Owned> owned) const override {
    checked.assign(owned.begin(), owned.end());
    return {};
  }
  [[nodiscard]] Result<bool> delivered(std::size_t) override { return false; }
  [[nodiscard]] std::size_t parts() const override { return 0; }
  [[nodiscard]] Result<void> take_delivered() override { return {}; }

  mutable std::vector<Owned> checked;
};

// Nodes 2 and 3 own tracks 0 and 1. Node 4 is no owner. The incarnation of a node is ten times its number,
// and one more for each life that it has had before.
class OwnerBookTest : public ::testing::Test {
 protected:
  OwnerBookTest() {
    EXPECT_TRUE(disk_.make_directories("/run/nodes").ok());
    look();  // nobody has worked yet
    install({2, 3});
  }
  net::PeerId peer(std::uint64_t node) { return {NodeId(node), Incarnation(node * 10 + lives_[node])}; }
  void install(const std::vector<std::uint64_t>& nodes) {
    ++epoch_;
    std::map<NodeId, membership::MemberRecord> members;
    for (const std::uint64_t node : nodes) {
      membership::MemberRecord& record = members[NodeId(node)];
      record.set_node(node);
      record.set_incarnation(peer(node).incarnation.value);
      record.set_state(membership::SERVING);
    }
    view_ = cluster::View(Epoch(epoch_), std::move(members), {});
    holdings_.clear();
    for (std::size_t thing = 0; thing < nodes.size(); ++thing)
      holdings_[placement::ThingId(thing)] = NodeId(nodes[thing]);
    decision_ = "decision " + std::to_string(epoch_);
    look();
  }
  void look() {
    book_->look(LeadBooks{.view = view_,
                          .holdings = holdings_,
                          .decision = decision_,
                          .marks = marks_,
                          .installed = Epoch(epoch_),
                          .ends = ends_ || failed_,
                          .failed = failed_,
                          .heard = heard_});
  }
  void mark(std::uint64_t track, std::uint64_t node, std::uint64_t step) {
    static_cast<void>(marks_->applied(
        {.track = cluster::TrackId(track), .by = peer(node).incarnation, .next = StepNumber(step)}));
  }
  // What is said of an offer, in a word.
  std::string judged(std::uint64_t node, const std::string& name) {
    const auto verdict = book_->judge(peer(node), name);
    if (const auto* const awaited = std::get_if<OwnerBook::Awaited>(&verdict)) return awaited->name;
    if (const auto* const early = std::get_if<OwnerBook::Early>(&verdict))
      return early->former ? "left over" : early->own ? "contradicts" : "early";
    if (const auto* const refused = std::get_if<OwnerBook::Refused>(&verdict)) return refused->why;
    return "unneeded";
  }

  host::SimDisk disk_;
  NamedRun run_;
  std::uint64_t epoch_ = 0;
  bool ends_ = false;
  bool failed_ = false;
  std::set<NodeId> heard_;
  std::map<std::uint64_t, std::uint64_t> lives_;  // before the present one, by node
  cluster::View view_;
  cluster::HoldingMap holdings_;
  std::string decision_;
  const std::array<cluster::TrackId, 2> tracks_{cluster::TrackId(0), cluster::TrackId(1)};
  std::optional<cluster::MarkLedger> marks_{std::in_place, tracks_};
  std::unique_ptr<OwnerBook> book_ = std::make_unique<OwnerBook>(disk_, run_, kBook);
};

// Only an owner's own part is awaited, and the name is the lead's.
TEST_F(OwnerBookTest, OnlyOwnersDeliver) {
  mark(0, 2, kBookSteps);
  mark(1, 3, kBookSteps);
  EXPECT_EQ(judged(2, "r-002-100"), "r-2-100");
  EXPECT_EQ(judged(3, "c-3-100"), "c-3-100");
  EXPECT_EQ(judged(2, "r-3-100"), "it is node 3's");
  EXPECT_EQ(judged(4, "r-4-100"), "it owns no part of the run");
  EXPECT_EQ(judged(2, "7.steps"), "its name says neither whose it is nor of which step");
  EXPECT_EQ(judged(2, "r-2-99"), "the run has 100 steps");
  EXPECT_EQ(judged(2, "c-2-101"), "the run has 100 steps");
}

// Nothing is asked for before all members have come so far by their marks. A member that offers what it
// cannot have yet by its own marks contradicts itself; members are a step apart at most.
TEST_F(OwnerBookTest, NothingIsTakenEarly) {
  mark(0, 2, 50);
  mark(1, 3, 49);
  EXPECT_EQ(judged(2, "c-2-49"), "c-2-49");
  EXPECT_EQ(judged(2, "c-2-50"), "early");
  EXPECT_EQ(judged(3, "c-3-50"), "early");
  EXPECT_EQ(judged(3, "c-3-51"), "contradicts");
  EXPECT_EQ(judged(2, "r-2-100"), "contradicts");
  mark(0, 2, kBookSteps);
  EXPECT_EQ(judged(2, "r-2-100"), "early");
  mark(1, 3, kBookSteps - 1);
  EXPECT_EQ(judged(3, "r-3-100"), "early");
  mark(1, 3, kBookSteps);
  EXPECT_EQ(judged(2, "r-2-100"), "r-2-100");
}

// A file that is ahead of its sender's own marks may be of an earlier life of its node. So a member
// contradicts itself only in its first life. The next lead knows which one that was, and the next fleet does.
TEST_F(OwnerBookTest, AFormerLifeMayHaveWrittenIt) {
  mark(0, 2, 60);
  mark(1, 3, 59);
  lives_[2] = 1;
  EXPECT_EQ(judged(2, "c-2-60"), "c-2-60") << "it does not serve";
  const auto go_back = [this] {
    marks_.emplace(tracks_);
    install({2, 3});
    mark(0, 2, 41);
    mark(1, 3, 41);
  };
  const auto expect_left_over = [this] {
    EXPECT_EQ(judged(2, "c-2-60"), "left over");
    EXPECT_EQ(judged(2, "r-2-100"), "left over");
    EXPECT_EQ(judged(2, "c-2-42"), "early");
    EXPECT_EQ(judged(2, "c-2-41"), "c-2-41");
    EXPECT_EQ(judged(3, "c-3-60"), "contradicts");
  };
  go_back();
  expect_left_over();
  book_ = std::make_unique<OwnerBook>(disk_, run_, kBook);
  look();
  expect_left_over();
  epoch_ = 0;  // a fleet that begins anew
  view_ = cluster::View();
  look();
  epoch_ = 5;
  go_back();
  expect_left_over();
  const auto written = [this] { return host::read_text(disk_, kBook)->size(); };
  for (std::size_t i = 0; i < OwnerBook::kMostInstalls; ++i) install({2, 3});
  const std::size_t bytes = written();
  for (std::size_t i = 0; i < OwnerBook::kMostInstalls; ++i) install({2, 3});
  EXPECT_LT(written(), bytes + 2 * OwnerBook::kMostInstalls) << "a node has one first life";
}

// While the run ends nobody takes over from a lost member, so the marks may stay behind. What the others save
// is still awaited. A result is not.
TEST_F(OwnerBookTest, TheEndDoesNotWaitForMarks) {
  mark(0, 2, 50);
  EXPECT_EQ(judged(2, "c-2-50"), "early");
  ends_ = true;
  look();
  EXPECT_EQ(judged(2, "c-2-50"), "c-2-50");
  EXPECT_EQ(judged(2, "c-2-60"), "contradicts");
  EXPECT_EQ(judged(3, "c-3-50"), "early") << "it has said nothing";
  mark(0, 2, kBookSteps);
  EXPECT_EQ(judged(2, "r-2-100"), "early");
}

// A checkpoint that is older than a whole one is not needed. One of the same step may have a lost piece.
TEST_F(OwnerBookTest, OldCheckpointsAreNotNeeded) {
  mark(0, 2, 50);
  mark(1, 3, 50);
  book_->follow_checkpoints([] { return StepNumber(40); });
  EXPECT_EQ(judged(2, "c-2-39"), "unneeded");
  EXPECT_EQ(judged(2, "c-2-40"), "c-2-40");
}

// A member that was in a view brings what it saved without a coordinator, to the next lead, too. Its result
// is not mixed with those of members that go on.
TEST_F(OwnerBookTest, OwnersReturn) {
  install({2});
  EXPECT_EQ(judged(3, "c-3-70"), "c-3-70");
  EXPECT_EQ(judged(3, "r-3-100"), "unneeded");
  install({});
  EXPECT_EQ(judged(3, "r-3-100"), "r-3-100");
  book_ = std::make_unique<OwnerBook>(disk_, run_, kBook);
  EXPECT_EQ(judged(3, "c-3-70"), "early") << "it does not lead yet";
  marks_.emplace(tracks_);
  epoch_ = 0;  // a fleet that begins anew
  view_ = cluster::View();
  look();
  EXPECT_EQ(judged(3, "c-3-70"), "c-3-70");
  EXPECT_EQ(judged(4, "c-4-70"), "it owns no part of the run");
  install({2});
  EXPECT_EQ(judged(3, "c-3-70"), "unneeded") << "the new fleet has a step 70 of its own";
  EXPECT_EQ(judged(2, "c-2-0"), "c-2-0");
  book_ = std::make_unique<OwnerBook>(disk_, run_, kBook);
  look();
  EXPECT_EQ(judged(3, "c-3-70"), "unneeded");
  book_ = std::make_unique<OwnerBook>(disk_, run_, "/run/nodes/none");
  look();
  EXPECT_EQ(judged(3, "c-3-70"), "it owns no part of the run");
}

// A file is checked against all that its member owned by the last views. Older ones are forgotten.
TEST_F(OwnerBookTest, ChecksWhatWasOwned) {
  install({3, 2});
  const auto owned = [&](std::uint64_t node) {
    EXPECT_TRUE(book_->check(peer(node), "c-" + std::to_string(node) + "-1")("/file").ok());
    std::vector<std::string> entries;
    for (const auto& one : run_.checked)
      entries.push_back(one.decision + (one.things.contains(0) ? " 0" : "") +
                        (one.things.contains(1) ? " 1" : ""));
    return entries;
  };
  EXPECT_EQ(owned(2), (std::vector<std::string>{"decision 1 0", "decision 2 1"}));
  EXPECT_EQ(owned(4), std::vector<std::string>());
  for (std::size_t i = 0; i < OwnerBook::kMostInstalls - 1; ++i) install({3});
  EXPECT_EQ(owned(2), std::vector<std::string>{"decision 2 1"});
  install({3});
  EXPECT_EQ(owned(2), std::vector<std::string>());
}

// The owners by the last view are those by which members worked, also if it comes with the end of the run:
// they save by it. A view that ends the run because a part was lost has none. Members that hold nothing are
// no owners.
TEST_F(OwnerBookTest, TheLastOwners) {
  EXPECT_EQ(book_->last_owners(), (std::set<NodeId>{NodeId(2), NodeId(3)}));
  install({4});
  EXPECT_EQ(book_->last_owners(), std::set<NodeId>{NodeId(4)});
  install({});
  EXPECT_EQ(book_->last_owners(), std::set<NodeId>());
  install({2, 3});
  ends_ = true;
  install({2, 4});
  EXPECT_EQ(book_->last_owners(), (std::set<NodeId>{NodeId(2), NodeId(4)}));
  failed_ = true;
  install({3});
  EXPECT_EQ(book_->last_owners(), (std::set<NodeId>{NodeId(2), NodeId(4)}));
  book_ = std::make_unique<OwnerBook>(disk_, run_, "/run/nodes/none");
  look();
  EXPECT_EQ(book_->last_owners(), std::set<NodeId>{NodeId(3)}) << "the store is all that it has";
}

// Owners that no lead has heard since this one took the fleet up may have newer steps: until they are heard,
// the fleet goes on without them, or it has ended for good. The next lead knows which of these it was.
TEST_F(OwnerBookTest, OwnersThatNobodyHeard) {
  const std::set<NodeId> both{NodeId(2), NodeId(3)};
  EXPECT_EQ(book_->unheard(), std::set<NodeId>()) << "this lead has given them their parts";
  const auto next_lead = [this] {
    book_ = std::make_unique<OwnerBook>(disk_, run_, kBook);
    look();
  };
  next_lead();
  EXPECT_EQ(book_->unheard(), both);
  next_lead();
  heard_ = {NodeId(3)};
  look();
  heard_ = {};
  look();
  EXPECT_EQ(book_->unheard(), std::set<NodeId>{NodeId(2)});
  install({3, 4});
  EXPECT_EQ(book_->unheard(), std::set<NodeId>());
  next_lead();
  failed_ = true;
  install({5});
  EXPECT_EQ(book_->unheard(), (std::set<NodeId>{NodeId(3), NodeId(4)})) << "a view that ends the run";
  failed_ = false;
  book_->settle();
  EXPECT_EQ(book_->unheard(), std::set<NodeId>());
  book_ = std::make_unique<OwnerBook>(disk_, run_, kBook);
  EXPECT_EQ(book_->unheard(), std::set<NodeId>());
  install({3});
  book_ = std::make_unique<OwnerBook>(disk_, run_, kBook);
  EXPECT_EQ(book_->unheard(), std::set<NodeId>{NodeId(3)});
}

// A lead that takes over within a change has a newer view, and members hold what the installed one gave them.
// That is no new Install: owners that nobody has heard stay so. With the next one the fleet has gone on
// without them.
TEST_F(OwnerBookTest, ANewerViewOfTheSamePlacementForgetsNobody) {
  const std::set<NodeId> both{NodeId(2), NodeId(3)};
  book_ = std::make_unique<OwnerBook>(disk_, run_, kBook);
  std::map<NodeId, membership::MemberRecord> members = view_.members();
  members[NodeId(4)].set_node(4);
  members[NodeId(4)].set_state(membership::SERVING);
  view_ = cluster::View(Epoch(epoch_ + 1), std::move(members), {});
  look();
  EXPECT_EQ(book_->unheard(), both);
  EXPECT_EQ(book_->last_owners(), both);
  EXPECT_TRUE(book_->never_owned(NodeId(4))) << "it has no part yet";
  install({3, 4});
  EXPECT_EQ(book_->unheard(), std::set<NodeId>());
  EXPECT_TRUE(book_->owns(NodeId(4)));
}

// A process loses the lead, and has it again. Members may have left meanwhile, with steps that nobody knows
// of. It asks for them as another process would, also if the fleet has an Install that this one has not seen.
// A fleet that begins, or that has ended for good, has nobody to ask for.
TEST_F(OwnerBookTest, ALeadThatComesBackKnowsWhoWasAlone) {
  const std::set<NodeId> both{NodeId(2), NodeId(3)};
  heard_ = both;
  look();
  book_->look(std::nullopt);
  EXPECT_EQ(book_->unheard(), std::set<NodeId>());
  heard_ = {NodeId(3)};
  look();
  EXPECT_EQ(book_->unheard(), std::set<NodeId>{NodeId(2)});
  book_->look(std::nullopt);
  heard_ = {};
  install({2, 4});
  EXPECT_EQ(book_->unheard(), (std::set<NodeId>{NodeId(2), NodeId(4)})) << "another lead has placed them";
  install({4});
  EXPECT_EQ(book_->unheard(), std::set<NodeId>()) << "this one has";
  book_->look(std::nullopt);
  epoch_ = 0;
  view_ = cluster::View();
  look();
  EXPECT_EQ(book_->unheard(), std::set<NodeId>()) << "a fleet that begins";
  epoch_ = 5;
  install({2, 3});
  book_->look(std::nullopt);
  book_->settle();
  look();
  EXPECT_EQ(book_->unheard(), std::set<NodeId>()) << "a fleet that has ended";
}

// The book is written aside, and settled meanwhile. What is written later than it was said leaves the newest
// book in its file. So it stays settled, until there is an Install after that.
TEST_F(OwnerBookTest, AnOlderBookIsNotWrittenOverANewerOne) {
  std::vector<std::function<void()>> aside;
  book_->keep_by([&aside](std::function<void()> work, const auto&) { aside.push_back(std::move(work)); });
  const auto unheard_by_the_next = [&] {
    for (const auto& work : std::exchange(aside, {})) work();
    const OwnerBook next(disk_, run_, kBook);
    return next.unheard();
  };
  install({3, 4});
  book_->settle();
  EXPECT_EQ(unheard_by_the_next(), std::set<NodeId>());
  install({2, 4});
  book_->settle();
  install({3, 5});
  std::ranges::reverse(aside);
  EXPECT_EQ(unheard_by_the_next(), (std::set<NodeId>{NodeId(3), NodeId(5)}));
}

// A member that is more views behind than the book has is not to be blamed: it may have owned what it brings.
// Nobody can say so any more, and its file is not taken. The next lead knows it, too.
TEST_F(OwnerBookTest, WhoWasAwayForManyViewsIsNotBlamed) {
  for (std::size_t i = 1; i < OwnerBook::kMostInstalls; ++i) install({3, 3 + i % 2});
  EXPECT_EQ(judged(2, "c-2-70"), "c-2-70");
  EXPECT_EQ(judged(9, "c-9-70"), "it owns no part of the run");
  EXPECT_TRUE(book_->never_owned(NodeId(9)));
  install({3});
  EXPECT_EQ(judged(2, "c-2-70"), "unneeded");
  EXPECT_FALSE(book_->never_owned(NodeId(2)));
  EXPECT_EQ(judged(2, "c-3-70"), "it is node 3's");
  book_ = std::make_unique<OwnerBook>(disk_, run_, kBook);
  look();
  EXPECT_EQ(judged(2, "c-2-70"), "unneeded");
}

}  // namespace
}  // namespace gossamer::commands
