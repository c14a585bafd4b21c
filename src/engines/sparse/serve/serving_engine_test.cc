// SPDX-License-Identifier: Apache-2.0
//
// Members hold parts of a model, and the lead asks them, in virtual time.
#include "engines/sparse/serve/serving_engine.h"

#include <gossamer/sparse_serving.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/fleet/step/layout_message.h"
#include "engines/sparse/model/test_random_model.h"
#include "engines/sparse/serve/fleet_queries.h"
#include "engines/sparse/serve/test_served_fleet.h"

namespace gossamer::sparse_engine {
namespace {

using testing::Served;
using testing::ServedFleet;

// Claim: any number of nodes finds what one process finds, to the bit, with dense layers and without. It does
// not matter what the activation is: all other tests have relu. Any number of labels may be wanted. If there
// are too few shards, a member without a part does no harm.
TEST(ServingEngine, AnswersAsOneProcess) {
  const std::pair<std::vector<std::size_t>, kernels::Activation> networks[] = {
      {{}, kernels::Activation::kIdentity}, {{64, 32}, kernels::Activation::kTanh}};
  for (const auto& [dense, activation] : networks) {
    Served served({.features = 60, .labels = 77, .hidden = 48, .dense = dense}, PartInstances::kNone,
                  [used = activation](Model& model) { model.activation = used; });
    Rng rng(4, Purpose::kTest);
    const testing::OwnedRows queries = testing::random_rows(rng, 60, 20);
    for (const std::size_t members : {1U, 2U, 3U, 5U, 12U}) {
      ServedFleet fleet(served, members);
      for (const std::size_t labels : {1U, 10U, 77U}) {
        fleet.ask(queries.view(), labels);
        const auto answer = fleet.answer(60'000);
        ASSERT_TRUE(answer) << members << " members\n" << fleet->log();
        ASSERT_TRUE(answer->ok()) << answer->error().message();
        ASSERT_EQ((*answer)->net, served.one_process(queries.view(), labels)) << members << " members";
      }
    }
  }
}

// Claim: a member counts the questions that it has answered, the queries in them, and the parts that it has
// read.
TEST(ServingEngine, CountsWhatItAnswers) {
  Served served({.features = 60, .labels = 77, .hidden = 48});
  Rng rng(4, Purpose::kTest);
  const testing::OwnedRows queries = testing::random_rows(rng, 60, 20);
  ServedFleet fleet(served, 1);
  std::vector<std::uint64_t> counts[2];
  for (std::vector<std::uint64_t>& counted : counts) {
    fleet.ask(queries.view(), 10);
    ASSERT_TRUE(fleet.answer(60'000)) << fleet->log();
    for (const CounterSample& one : fleet->member("m1").engine().counters()) counted.push_back(one.value);
  }
  // Parts, rounds and queries. An answer takes a round for the hidden layer and one for the lists.
  ASSERT_EQ(counts[0].size(), 3U);
  EXPECT_GE(counts[0][0], 1U);
  EXPECT_EQ(counts[1], (std::vector<std::uint64_t>{counts[0][0], counts[0][1] + 2, counts[0][2] + 40}));
}

// Claim: members that are killed, leave or join, during a query or between two, change no answer. Each query
// gets one answer.
TEST(ServingEngine, MembersComeAndGo) {
  std::size_t between = 0;
  Served served({.features = 60, .labels = 200, .hidden = 96, .dense = {64}});
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Rng rng(seed, Purpose::kTest);
    ServedFleet fleet(served, 4, seed);
    for (int round = 0; round < 12; ++round) {
      const testing::OwnedRows queries =
          testing::random_rows(rng, 60, 1 + static_cast<std::uint32_t>(rng.below(30)));
      fleet.ask(queries.view(), 10);
      auto answer = fleet.answer(static_cast<int>(rng.below(90)));
      between += answer ? 1 : 0;
      auto victim = fleet->members().begin();
      std::advance(victim, rng.below(fleet->members().size()));
      if (round % 3 == 0) fleet->kill(victim->first);
      if (round % 3 == 1) victim->second->drain("it was told to");
      fleet.join();
      if (!answer) answer = fleet.answer(60'000);
      ASSERT_TRUE(answer) << "seed " << seed << ", round " << round << "\n" << fleet->log();
      ASSERT_TRUE(answer->ok()) << answer->error().message();
      ASSERT_EQ((*answer)->net, served.one_process(queries.view(), 10))
          << "seed " << seed << ", round " << round;
    }
    EXPECT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
  }
  EXPECT_GT(between, 10U);
  EXPECT_LT(between, 86U);
}

// Claim: members tell the next lead that they are ready, as they told the one that was killed. A query that
// was under way then is lost with its lead.
TEST(ServingEngine, TheNextLeadFindsThemReady) {
  Served served({.features = 60, .labels = 200, .hidden = 96});
  Rng rng(4, Purpose::kTest);
  const testing::OwnedRows queries = testing::random_rows(rng, 60, 20);
  for (const int milliseconds : {0, 7, 15, 60'000}) {
    ServedFleet fleet(served, 3);
    fleet.ask(queries.view(), 10);
    ASSERT_TRUE(fleet.answer(60'000)) << fleet->log();
    fleet.ask(queries.view(), 10);
    static_cast<void>(fleet.answer(milliseconds));
    fleet.kill_lead();
    fleet.ask(queries.view(), 10);
    const auto answer = fleet.answer(60'000);
    ASSERT_TRUE(answer) << fleet->log();
    ASSERT_TRUE(answer->ok()) << answer->error().message();
    EXPECT_EQ((*answer)->net, served.one_process(queries.view(), 10));
  }
}

// Claim: an answer goes over the link that brought its question, or not at all. A lead that has not asked
// gets none, though it is the next one and the members have computed for the one before.
TEST(ServingEngine, TheNextLeadGetsNoAnswerOfBefore) {
  Served served({.features = 60, .labels = 77, .hidden = 48});
  Rng rng(5, Purpose::kTest);
  const testing::OwnedRows queries = testing::random_rows(rng, 60, 8);
  ServedFleet fleet(served, 2, 1, from_seconds(3));
  fleet.ask(queries.view(), 10);
  ASSERT_TRUE(fleet.answer(60'000)) << fleet->log();
  fleet.ask(queries.view(), 10);
  EXPECT_FALSE(fleet.answer(1000)) << "members compute for 3 s";
  const std::size_t before = fleet.answers();
  EXPECT_GE(before, 2U);
  fleet.kill_lead();
  fleet->run_for(20);
  EXPECT_EQ(fleet->unsettled(), std::nullopt);
  EXPECT_EQ(fleet.answers(), before);
}

// Claim: a member that is fenced while it computes an answer, and begins another life, does not send that
// answer in it. The lead has not asked this life. Links have numbers from 1 in each life, so the link is not
// known by its number alone.
TEST(ServingEngine, TheNextLifeGivesNoAnswerOfBefore) {
  Served served({.features = 60, .labels = 77, .hidden = 48});
  Rng rng(5, Purpose::kTest);
  const testing::OwnedRows queries = testing::random_rows(rng, 60, 8);
  ServedFleet fleet(served, 2, 1, from_seconds(40));
  fleet.ask(queries.view(), 10);
  ASSERT_TRUE(fleet.answer(600'000)) << fleet->log();
  fleet.ask(queries.view(), 10);
  EXPECT_FALSE(fleet.answer(1000)) << "members compute for 40 s";
  const NodeId node = fleet->member("m1").node();
  const std::size_t before = fleet.answers_of(node);
  EXPECT_GE(before, 1U);
  const std::uint64_t lives = fleet->member("m1").lives();
  fleet->cut_off_for("m1", from_seconds(15));
  fleet->run_for(35);
  ASSERT_EQ(fleet->member("m1").lives(), lives + 1) << fleet->log();
  ASSERT_NE(fleet->member("m1").member(), nullptr);
  fleet->run_for(10);
  EXPECT_EQ(fleet.answers_of(node), before);
  EXPECT_EQ(fleet->failure(), std::nullopt);
}

// Claim: a number that overflows finds nothing for its own query, as in one process, and harms no other.
TEST(ServingEngine, OverflowsAlone) {
  Served served({.features = 60, .labels = 77, .hidden = 48});
  testing::OwnedRows queries;
  queries.begin = {0, 1, 2};
  queries.index = {3, 5};
  queries.value = {3e38F, 0.5F};
  ServedFleet fleet(served, 3);
  fleet.ask(queries.view(), 5);
  const auto answer = fleet.answer(60'000);
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((*answer)->net, served.one_process(queries.view(), 5));
  EXPECT_EQ((*answer)->net[1].size(), 5U);
}

net::Message net_question(Epoch epoch, std::uint32_t layer, std::uint32_t queries, std::uint32_t labels,
                          std::vector<std::byte> payload) {
  sparse_serving::Body body;
  body.mutable_question()->set_number(1);
  body.mutable_question()->set_epoch(epoch.value);
  body.mutable_question()->set_layer(layer);
  body.mutable_question()->set_queries(queries);
  body.mutable_question()->set_labels(labels);
  return {
      .channel = kQueryChannel, .body = body.SerializeAsString(), .payload = {Slice::of(std::move(payload))}};
}

std::vector<std::byte> payload_of(const std::vector<std::uint32_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Claim: a question that no lead asks makes the member leave, with an error that says what was wrong. Nothing
// is read beyond the bytes that were sent.
TEST(ServingEngine, RefusesQuestionsThatNobodyAsks) {
  Served served({.features = 60, .labels = 77, .hidden = 48});
  const auto make = [](Epoch epoch) {
    return std::vector<net::Message>{
        net_question(epoch, 0, 0, 0, {}),
        net_question(epoch, 0, 300, 0, {}),
        net_question(epoch, 2, 1, 5, {}),
        net_question(epoch, 0, 1, 0, payload_of({0})),
        net_question(epoch, 0, 1, 0, payload_of({0, 1})),
        net_question(epoch, 0, 1, 0, payload_of({0, 4'000'000'000, 1, 0})),
        net_question(epoch, 0, 1, 0, payload_of({1, 1, 3, 0})),
        net_question(epoch, 0, 2, 0, payload_of({0, 2, 1, 3, 0})),
        net_question(epoch, 0, 1, 0, payload_of({0, 1, 60, 0})),
        net_question(epoch, 1, 1, 5, payload_of({0, 0})),
        net_question(epoch, 1, 1, 0, std::vector<std::byte>(std::size_t{64} * 4)),
        net_question(epoch, 1, 1, 78, std::vector<std::byte>(std::size_t{64} * 4)),
    };
  };
  for (std::size_t i = 0; i < make(Epoch()).size(); ++i) {
    ServedFleet fleet(served, 1);
    fleet.ask(testing::OwnedRows{.begin = {0, 1}, .index = {1}, .value = {1}}.view(), 5);
    ASSERT_TRUE(fleet.answer(60'000));
    auto& [machine, process] = *fleet->members().begin();
    net::Message bad = make(Epoch(process->member()->installed().epoch()))[i];
    fleet->send(process->member()->self(), host::Lane::kControl, std::move(bad));
    for (int k = 0; k < 2000 && !process->done(); ++k) fleet->run_for(0.001);
    ASSERT_TRUE(process->engine().failure()) << i;
    EXPECT_EQ(process->engine().failure()->what, "the lead asked what cannot be answered") << i;
  }
}

// Messages of a member: the part that it has, and an answer.
net::Message ready(Epoch epoch, const sparse::NetworkPart& part) {
  sparse_serving::Body body;
  body.mutable_ready()->set_epoch(epoch.value);
  write_part(part, *body.mutable_ready()->mutable_part());
  return {.channel = kQueryChannel, .body = body.SerializeAsString(), .payload = {}};
}
net::Message answer_to(const net::Message& asked, std::vector<std::byte> payload) {
  sparse_serving::Body body;
  EXPECT_TRUE(body.ParseFromString(asked.body));
  const std::uint64_t number = body.question().number();
  body.mutable_answer()->set_number(number);
  return {
      .channel = kQueryChannel, .body = body.SerializeAsString(), .payload = {Slice::of(std::move(payload))}};
}

class OneMember : public ::testing::Test {
 protected:
  OneMember() {
    part_ = with_shards(no_part(shape_), shape_, {0, 1});
    columns_of(part_, 0) = {0, 16};
  }
  // A placement gives all parts to `from`, if it says that it is ready for a later epoch than the last.
  void say(net::PeerId from, const net::Message& message) {
    sparse_serving::Body body;
    if (body.ParseFromString(message.body) && body.has_ready() && Epoch(body.ready().epoch()) > placed_) {
      placed_ = Epoch(body.ready().epoch());
      Layout layout;
      for (std::uint64_t node = 2; node < 9; ++node) {
        LayoutMember& member = layout.members.emplace_back();
        member.node = NodeId(node);
        member.after = no_part(shape_);
        if (member.node == from.node) member.after = *read_part(body.ready().part(), shape_);
        if (member.node == NodeId(8)) complete(layout);
      }
      queries_.placed(placed_, write_layout(layout));
    }
    const auto good = queries_.on(from, message);
    EXPECT_TRUE(good.ok()) << good.error().message();
  }
  // The last member gets what no other has.
  void complete(Layout& layout) {
    sparse::NetworkPart& rest = layout.members.back().after;
    for (std::size_t shard = 0; shard < shape_.shards(); ++shard) rest.rows.add(shard);
    bool columns = false;
    for (const LayoutMember& member : layout.members) {
      if (member.node == layout.members.back().node) break;
      for (const std::size_t shard : shards_of(member.after)) rest.rows.drop(shard);
      columns = columns || columns_of(member.after, 0).end > 0;
    }
    if (!columns) columns_of(rest, 0) = {0, 16};
  }
  net::Message asked() {
    testing::do_work(queries_);
    const auto out = queries_.take_out();
    EXPECT_EQ(out.size(), 1U);
    return out.empty() ? net::Message() : out.front().message;
  }
  void ask() {
    const testing::OwnedRows rows{.begin = {0, 1}, .index = {2}, .value = {1}};
    queries_.ask({.rows = rows.view(), .labels = 3});
  }

  FleetShape shape_{.network = {.features = 4, .labels = 10, .hidden = 16}, .shard_shift = 3};
  sparse::NetworkPart part_;
  FleetQueries queries_{{.shape = shape_}};
  const net::PeerId peer_{NodeId(5), Incarnation(9)};
  Epoch placed_;
};

// Claim: before the first placement nobody is ready, whatever a member says. A member that is in the view
// already would else be asked in place of the others.
TEST_F(OneMember, IsNotReadyBeforeAPlacement) {
  for (const Epoch epoch : {Epoch(0), Epoch(1), Epoch(1ULL << 62)})
    EXPECT_FALSE(queries_.on({NodeId(6), Incarnation(10)}, ready(epoch, part_)).ok()) << epoch.value;
  EXPECT_FALSE(queries_.whole());
  say(peer_, ready(Epoch(1), part_));
  EXPECT_TRUE(queries_.whole());
  EXPECT_EQ(queries_.nodes(), std::set{peer_.node});
}

// Claim: no member is asked while a part is missing. A member that becomes ready again is asked again, under
// another number.
TEST_F(OneMember, WaitsForAllParts) {
  ask();
  EXPECT_TRUE(queries_.take_out().empty());
  sparse::NetworkPart half = part_;
  half.rows.drop(1);
  say(peer_, ready(Epoch(3), half));
  EXPECT_FALSE(queries_.whole());
  EXPECT_FALSE(queries_.take_work());
  EXPECT_TRUE(queries_.take_out().empty());
  say(peer_, ready(Epoch(4), part_));
  const net::Message first = asked();
  say(peer_, ready(Epoch(3), half));  // late
  EXPECT_TRUE(queries_.whole());
  say(peer_, ready(Epoch(5), part_));
  const net::Message second = asked();
  EXPECT_NE(first.body, second.body);
  say(peer_, answer_to(first, std::vector<std::byte>(64)));  // no longer expected
  testing::do_work(queries_);
  EXPECT_TRUE(queries_.take_out().empty());
  say(peer_, answer_to(second, std::vector<std::byte>(64)));
  say(peer_, answer_to(second, std::vector<std::byte>(64)));  // twice
  std::vector<Scored> list{{.id = 7, .score = 2}, {.id = 1, .score = 1}, {.id = 0, .score = 0}};
  const auto bytes = std::as_bytes(std::span(list));
  say(peer_, answer_to(asked(), {bytes.begin(), bytes.end()}));
  testing::do_work(queries_);
  const auto answer = queries_.take_answer();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((*answer)->net[0], list);
  EXPECT_FALSE(queries_.take_answer());
}

// Claim: neither a block nor an answer makes the owner of the queries compute. Questions and answers are
// there when Work is done, and there is one piece of it at a time.
TEST_F(OneMember, ComputesNothingItself) {
  say(peer_, ready(Epoch(4), part_));
  ask();
  auto work = queries_.take_work();
  ASSERT_TRUE(work);
  EXPECT_FALSE(queries_.take_work());
  EXPECT_TRUE(queries_.take_out().empty());
  work();
  EXPECT_TRUE(queries_.take_out().empty());
  queries_.worked();
  say(peer_, answer_to(asked(), std::vector<std::byte>(64)));
  EXPECT_TRUE(queries_.take_out().empty());
  std::vector<Scored> list{{.id = 7, .score = 2}, {.id = 1, .score = 1}, {.id = 0, .score = 0}};
  const auto bytes = std::as_bytes(std::span(list));
  say(peer_, answer_to(asked(), {bytes.begin(), bytes.end()}));
  EXPECT_FALSE(queries_.take_answer());
  work = queries_.take_work();
  ASSERT_TRUE(work);
  work();
  queries_.worked();
  const auto answer = queries_.take_answer();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((*answer)->net[0], list);
}

// Claim: a member may answer with as many bytes as its question asks for, and with little more.
TEST_F(OneMember, MayAnswerWhatItIsAskedFor) {
  say(peer_, ready(Epoch(4), part_));
  ask();
  for (const std::size_t asked_for : {16 * sizeof(float), 3 * sizeof(Scored)}) {
    testing::do_work(queries_);
    const auto out = queries_.take_out();
    ASSERT_EQ(out.size(), 1U);
    const net::Message answer = answer_to(out.front().message, std::vector<std::byte>(asked_for));
    EXPECT_GE(out.front().most_answer_bytes, answer.body.size() + asked_for);
    EXPECT_LE(out.front().most_answer_bytes, 256 + asked_for);
    say(peer_, answer);
  }
}

// Claim: a member that claims another part than the layout gives to it, or an epoch that is to come, breaks a
// rule. It takes nothing over. What it says of an earlier epoch is late.
TEST_F(OneMember, ClaimsNothingOfOthers) {
  const net::PeerId other{NodeId(6), Incarnation(10)};
  Layout layout;
  layout.members.resize(2);
  layout.members[0].node = peer_.node;
  layout.members[0].after = part_;
  layout.members[1].node = other.node;
  layout.members[1].after = no_part(shape_);
  queries_.placed(placed_ = Epoch(4), write_layout(layout));
  say(peer_, ready(Epoch(4), part_));
  EXPECT_TRUE(queries_.whole());
  EXPECT_FALSE(queries_.on(other, ready(Epoch(1ULL << 62), part_)).ok());
  EXPECT_FALSE(queries_.on(other, ready(Epoch(4), part_)).ok());
  EXPECT_FALSE(queries_.on({NodeId(7), Incarnation(11)}, ready(Epoch(4), part_)).ok());
  EXPECT_FALSE(queries_.on(other, {.channel = kQueryChannel, .body = "\xff", .payload = {}}).ok());
  say(other, ready(Epoch(3), part_));
  EXPECT_TRUE(queries_.whole());
  EXPECT_EQ(queries_.epoch(), Epoch(4));
  EXPECT_EQ(queries_.nodes(), std::set{peer_.node});
}

// Claim: the view may change while answers are taken. The round that they belong to is not asked again. The
// next one goes to the members that are there then.
TEST_F(OneMember, ChangesWhileItComputes) {
  say(peer_, ready(Epoch(4), part_));
  ask();
  say(peer_, answer_to(asked(), std::vector<std::byte>(64)));
  const auto work = queries_.take_work();
  const net::PeerId other{NodeId(6), Incarnation(2)};
  say(other, ready(Epoch(5), part_));
  EXPECT_FALSE(queries_.take_work());
  work();
  queries_.worked();
  testing::do_work(queries_);
  const auto out = queries_.take_out();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out.front().to, other);
  sparse_serving::Body body;
  ASSERT_TRUE(body.ParseFromString(out.front().message.body));
  EXPECT_EQ(body.question().layer(), 1U);
  EXPECT_EQ(body.question().epoch(), 5U);
}

// Claim: a block that is given up during its Work gets no answer. The next block is asked.
TEST_F(OneMember, GivesUpWhatItComputes) {
  say(peer_, ready(Epoch(4), part_));
  ask();
  say(peer_, answer_to(asked(), std::vector<std::byte>(64)));
  std::vector<Scored> list{{.id = 7, .score = 2}, {.id = 1, .score = 1}, {.id = 0, .score = 0}};
  const auto bytes = std::as_bytes(std::span(list));
  say(peer_, answer_to(asked(), {bytes.begin(), bytes.end()}));
  const auto work = queries_.take_work();
  ask();
  EXPECT_FALSE(queries_.take_work());
  work();
  queries_.worked();
  EXPECT_FALSE(queries_.take_answer());
  sparse_serving::Body body;
  ASSERT_TRUE(body.ParseFromString(asked().body));
  EXPECT_EQ(body.question().layer(), 0U);
}

// Claim: an answer that no member can have given ends the query, with an error that names the member. Answers
// of strangers are dropped.
TEST_F(OneMember, NamesWhoAnswersWhatCannotBe) {
  say(peer_, ready(Epoch(4), part_));
  ask();
  const net::Message first = asked();
  say({NodeId(6), Incarnation(9)}, answer_to(first, {}));
  say({NodeId(5), Incarnation(8)}, answer_to(first, {}));
  EXPECT_FALSE(queries_.take_answer());
  EXPECT_FALSE(queries_.on(peer_, answer_to(first, std::vector<std::byte>(63))).ok());
  auto answer = queries_.take_answer();
  ASSERT_TRUE(answer && !answer->ok());
  EXPECT_EQ(answer->error().where, "node 5");
  ask();
  say(peer_, answer_to(asked(), std::vector<std::byte>(64)));
  std::vector<Scored> list{{.id = 12, .score = 2}, {.id = 1, .score = 1}, {.id = 0, .score = 0}};
  const auto bytes = std::as_bytes(std::span(list));
  say(peer_, answer_to(asked(), {bytes.begin(), bytes.end()}));
  testing::do_work(queries_);
  answer = queries_.take_answer();
  ASSERT_TRUE(answer && !answer->ok());
  EXPECT_EQ(answer->error().where, "node 5");
}

// Claim: bytes that are no message of the channel, and a part that cannot be, are dropped, and break a rule.
TEST_F(OneMember, DropsWhatItCannotRead) {
  EXPECT_FALSE(queries_.on(peer_, {.channel = kQueryChannel, .body = "\xff\xff", .payload = {}}).ok());
  say(peer_, {.channel = kQueryChannel, .body = "", .payload = {}});
  sparse::NetworkPart other = part_;
  columns_of(other, 0) = {0, 160};
  EXPECT_FALSE(queries_.on(peer_, ready(Epoch(4), other)).ok());
  EXPECT_EQ(queries_.members(), 0U);
}

}  // namespace
}  // namespace gossamer::sparse_engine
