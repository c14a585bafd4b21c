// SPDX-License-Identifier: Apache-2.0
//
// Every promise of host/api/network.h about questions, on the real network with and without TLS and on the
// simulated one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "networks.h"

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;

class QuestionsConformance : public NetworkTest {
 protected:
  // Waits until `process` was asked `count` questions in all, and gives the last of them.
  Asked asked(Recorder& process, std::size_t count = 1) {
    EXPECT_TRUE(world_->run_until([&] { return process.all<Asked>().size() >= count; }));
    const auto all = process.all<Asked>();
    return all.empty() ? Asked{} : all.back();
  }
  // Waits until `process` has heard the end of `count` of its questions, and gives the last of them.
  Answered answered(Recorder& process, std::size_t count = 1) {
    EXPECT_TRUE(world_->run_until([&] { return process.all<Answered>().size() >= count; }));
    const auto all = process.all<Answered>();
    return all.empty() ? Answered{{}, Error{.what = "no answer"}} : all.back();
  }
  // How the other end is named in errors.
  static std::string named(const Endpoint& at) { return to_string(at); }
};

// A question arrives with method, body, asker and address, and its answer comes back, whatever their sizes.
TEST_P(QuestionsConformance, Answered) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint at = listen(b);
  std::size_t count = 0;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{70'000}, kMaxAnswerBytes}) {
    ++count;
    const std::string body(std::min(size, kMaxQuestionBytes), 'q');
    const QuestionId id = a.network->ask(at, {.method = "Enroll", .body = body});
    const Asked question = asked(b, count);
    EXPECT_EQ(question.method, "Enroll");
    EXPECT_TRUE(question.body == body) << size;
    EXPECT_FALSE(question.from.empty());
    EXPECT_EQ(question.peer.certificate, GetParam() == NetworkKind::kPlain ? "" : "a");
    const std::string reply(size, 'r');
    b.network->answer(question.question, reply);
    const host::Answered end = answered(a, count);
    EXPECT_EQ(end.question, id);
    ASSERT_TRUE(end.answer.ok());
    EXPECT_TRUE(*end.answer == reply) << size;
  }
}

// An error arrives as it was answered, with kind and five parts, also if they are long. It names the
// answerer, unless it names something itself. A second answer to the same question is lost.
TEST_P(QuestionsConformance, RefusedWithFiveParts) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint at = listen(b);
  std::size_t count = 0;
  for (const ErrorKind kind :
       {ErrorKind::kFailed, ErrorKind::kUsage, ErrorKind::kBadData, ErrorKind::kRefused}) {
    for (const std::size_t more : {std::size_t{0}, 2 * kMaxErrorPartBytes}) {
      ++count;
      (void)a.network->ask(at, {.method = "Enroll"});
      Error error{.kind = kind, .where = "token 1", .what = "w", .got = "g\n", .expected = "e", .fix = "f"};
      for (std::string* part : {&error.what, &error.got, &error.expected, &error.fix})
        part->append(more, '%');
      const Asked question = asked(b, count);
      b.network->answer(question.question, error);
      b.network->answer(question.question, std::string("second thoughts"));
      const auto end = answered(a, count);
      ASSERT_FALSE(end.answer.ok());
      EXPECT_EQ(end.answer.error().kind, kind);
      EXPECT_EQ(end.answer.error().message(), made_fit(error).message());
    }
  }
  (void)a.network->ask(at, {.method = "Enroll"});
  b.network->answer(asked(b, count + 1).question, Error{.what = "no"});
  EXPECT_EQ(answered(a, count + 1).answer.error().where, named(at));
}

// A server's user that does not know a method by name says so. The name arrives as it was asked.
TEST_P(QuestionsConformance, UnknownMethod) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  (void)a.network->ask(listen(b), {.method = "Nonsense"});
  const Asked question = asked(b);
  EXPECT_EQ(question.method, "Nonsense");
  b.network->answer(question.question, Error{.what = "no such question: Nonsense"});
  EXPECT_EQ(answered(a).answer.error().what, "no such question: Nonsense");
}

// An asker is told, by the address it used, that nobody listens there, or only for bulk.
TEST_P(QuestionsConformance, NobodyListens) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint bulk = listen(b, Lane::kBulk);
  Endpoint free = bulk;
  free.port = 1;
  std::size_t count = 0;
  for (const Endpoint& at : {free, bulk}) {
    const QuestionId id = a.network->ask(at, {.method = "Enroll"});
    const auto end = answered(a, ++count);
    EXPECT_EQ(end.question, id);
    ASSERT_FALSE(end.answer.ok());
    EXPECT_EQ(end.answer.error().kind, ErrorKind::kFailed);
    EXPECT_EQ(end.answer.error().where, named(at));
  }
  EXPECT_TRUE(b.all<Asked>().empty());
}

// A question that nobody answers ends with its time-out, once; a late answer is lost without harm.
TEST_P(QuestionsConformance, TimesOut) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint at = listen(b);
  (void)a.network->ask(at, {.method = "Enroll", .body = "", .timeout = from_milliseconds(700)});
  const Asked question = asked(b);
  const auto end = answered(a);
  ASSERT_FALSE(end.answer.ok());
  EXPECT_EQ(end.answer.error().where, named(at));
  EXPECT_THAT(end.answer.error().message(), HasSubstr("no answer to Enroll"));
  b.network->answer(question.question, std::string("late"));
  // Another question shows that time has passed.
  (void)a.network->ask(at, {.method = "Enroll"});
  b.network->answer(asked(b, 2).question, std::string("in time"));
  EXPECT_EQ(*answered(a, 2).answer, "in time");
  EXPECT_EQ(a.all<host::Answered>().size(), 2U);
}

// A server that ends before it has answered leaves an error at once.
TEST_P(QuestionsConformance, ServerEnds) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Instant start = world_->now();
  (void)a.network->ask(listen(b), {.method = "Enroll", .body = "", .timeout = from_seconds(50)});
  (void)asked(b);
  b.network.reset();
  ASSERT_FALSE(answered(a).answer.ok());
  EXPECT_LT((world_->now() - start).seconds(), 40);
  EXPECT_EQ(a.all<host::Answered>().size(), 1U);
}

// An asker that ends before the answer does no harm, and the server has its place again.
TEST_P(QuestionsConformance, AskerEnds) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  Recorder& c = start("c");
  const Endpoint at = listen(b);
  (void)a.network->ask(at, {.method = "Enroll"});
  const Asked question = asked(b);
  a.network.reset();
  (void)c.network->ask(at, {.method = "Enroll"});
  const Asked other = asked(b, 2);
  b.network->answer(question.question, std::string("too late"));
  b.network->answer(other.question, std::string("fine"));
  EXPECT_EQ(*answered(c).answer, "fine");
}

// A body that is too large is not sent, in either direction. The asker is told its size.
TEST_P(QuestionsConformance, TooLarge) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint at = listen(b);
  (void)a.network->ask(at, {.method = "Enroll", .body = std::string(kMaxQuestionBytes + 1, 'x')});
  const Error question = answered(a).answer.error();
  EXPECT_THAT(question.message(), HasSubstr("the question is too large: got 65537 bytes"));
  EXPECT_EQ(question.where, named(at));
  (void)a.network->ask(at, {.method = "Enroll"});
  b.network->answer(asked(b).question, std::string(kMaxAnswerBytes + 1, 'x'));
  EXPECT_THAT(answered(a, 2).answer.error().message(),
              HasSubstr("the answer is too large: got 1048577 bytes"));
}

// Two askers ask a server a little more than it may hold. It takes as many as it may hold, and tells the
// others that it is busy. Each question ends once. Later the server takes new ones. With TLS the askers ask
// 40: the door gives a handshake 5 s, and 200 at once take longer on a machine whose other tests come first.
TEST_P(QuestionsConformance, ManyAtOnce) {
  const std::size_t half = GetParam() == NetworkKind::kTls ? 20 : kMaxWaitingQuestions / 2 + 20;
  const std::size_t held = std::min(2 * half, kMaxWaitingQuestions);
  Recorder& a = start("a");
  Recorder& b = start("b");
  Recorder& server = start("server");
  const Endpoint at = listen(server);
  std::map<Recorder*, std::set<QuestionId>> open;
  for (std::size_t i = 0; i < half; ++i) {
    for (Recorder* process : {&a, &b}) {
      const QuestionId id =
          process->network->ask(at, {.method = "Enroll", .body = process->name, .timeout = kMaxQuestionTime});
      EXPECT_TRUE(open[process].insert(id).second);
    }
  }
  const auto over = [&] { return a.events.size() + b.events.size(); };
  ASSERT_TRUE(world_->run_until([&] { return over() == 2 * half - held && server.events.size() == held; }));
  for (const Asked& question : server.all<Asked>())
    server.network->answer(question.question, "to " + question.body);
  ASSERT_TRUE(world_->run_until([&] { return over() == 2 * half; }));
  std::size_t good = 0;
  for (auto& [process, questions] : open) {
    for (const auto& end : process->all<host::Answered>()) {
      EXPECT_EQ(questions.erase(end.question), 1U);
      if (end.answer.ok()) {
        ++good;
        EXPECT_EQ(*end.answer, "to " + process->name);
      } else {
        EXPECT_THAT(end.answer.error().what, HasSubstr("busy"));
      }
    }
    EXPECT_TRUE(questions.empty());
  }
  EXPECT_EQ(good, held);
  (void)a.network->ask(at, {.method = "Enroll"});
  server.network->answer(asked(server, held + 1).question, std::string("again"));
  EXPECT_EQ(*answered(a, half + 1).answer, "again");
}

// A process has no more open questions than its bound. It learns at once that a further one is too many, as
// the others are not yet answered.
TEST_P(QuestionsConformance, AskerIsBounded) {
  if (GetParam() == NetworkKind::kTls) return;  // a thousand handshakes show nothing new
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint at = listen(b);
  for (std::size_t i = 0; i < kMaxWaitingQuestions + 5; ++i)
    (void)a.network->ask(at, {.method = "Enroll", .body = "", .timeout = kMaxQuestionTime});
  ASSERT_TRUE(
      world_->run_until([&] { return b.events.size() == kMaxWaitingQuestions && a.events.size() == 5; }));
  for (const auto& end : a.all<host::Answered>()) EXPECT_THAT(end.answer.error().what, HasSubstr("busy"));
}

// Links and questions share a port and do not disturb each other.
TEST_P(QuestionsConformance, BesideConnections) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint at = listen(b);
  const ConnectionPair pair = join(a, b, at);
  (void)a.network->ask(at, {.method = "Enroll"});
  const Asked question = asked(b);
  a.network->send(pair.opener, {Slice::of(std::string("frame"))});
  ASSERT_TRUE(world_->run_until([&] { return b.all<Received>().size() == 1; }));
  b.network->answer(question.question, std::string("yes"));
  EXPECT_EQ(*answered(a).answer, "yes");
  EXPECT_EQ(b.all<Accepted>().size(), 1U);
  EXPECT_TRUE(a.all<Closed>().empty());
}

INSTANTIATE_TEST_SUITE_P(Networks, QuestionsConformance,
                         ::testing::Values(NetworkKind::kPlain, NetworkKind::kTls, NetworkKind::kSim),
                         [](const auto& test) { return name(test.param); });

class NodesQuestions : public QuestionsConformance {};

// Claim: a node has at most so many questions open at another. Further ones are told that it is busy, and a
// question of another node is taken.
TEST_P(NodesQuestions, OneNodeKeepsNoOtherOut) {
  constexpr std::size_t kTooMany = 5;
  Recorder& a = start("a");
  Recorder& b = start("b");
  Recorder& server = start("server");
  const Endpoint at = listen(server);
  for (std::size_t i = 0; i < kMaxOfOneNode + kTooMany; ++i)
    (void)a.network->ask(at, {.method = "Enroll", .body = "", .timeout = kMaxQuestionTime});
  ASSERT_TRUE(world_->run_until(
      [&] { return server.events.size() == kMaxOfOneNode && a.events.size() == kTooMany; }));
  for (const auto& end : a.all<host::Answered>()) EXPECT_THAT(end.answer.error().what, HasSubstr("busy"));
  (void)b.network->ask(at, {.method = "Enroll"});
  server.network->answer(asked(server, kMaxOfOneNode + 1).question, std::string("to b"));
  EXPECT_EQ(*answered(b).answer, "to b");
  // A question that is answered makes room for another one of the same node.
  server.network->answer(server.all<Asked>()[0].question, std::string("to a"));
  EXPECT_EQ(*answered(a, kTooMany + 1).answer, "to a");
  // There is room once the server knows that the answer has left, and `a` may have it sooner.
  const auto taken = [&] { return server.all<Asked>().size() == kMaxOfOneNode + 2; };
  for (std::size_t tries = 1; !taken(); ++tries) {
    (void)a.network->ask(at, {.method = "Enroll"});
    ASSERT_TRUE(
        world_->run_until([&] { return taken() || a.all<host::Answered>().size() == kTooMany + 1 + tries; }));
  }
  EXPECT_EQ(asked(server, kMaxOfOneNode + 2).peer.certificate, "a");
}

INSTANTIATE_TEST_SUITE_P(Tls, NodesQuestions, ::testing::Values(NetworkKind::kTls),
                         [](const auto& test) { return name(test.param); });

class StrangersConformance : public QuestionsConformance {};

// A stranger may ask in a run with certificates, and is nameless. Its own connection is refused on both
// lanes, and the other side never learns of it.
TEST_P(StrangersConformance, MayOnlyAsk) {
  Recorder& ours = start("ours");
  const Endpoint control = listen(ours);
  const Endpoint bulk = listen(ours, Lane::kBulk);
  Recorder& stranger = start("stranger", NetworkWorld::kStranger);
  (void)stranger.network->ask(control, {.method = "Enroll"});
  const Asked question = asked(ours);
  EXPECT_EQ(question.peer.certificate, "");
  ours.network->answer(question.question, std::string("welcome"));
  EXPECT_EQ(*answered(stranger).answer, "welcome");
  (void)stranger.network->connect(control, Lane::kControl);
  ASSERT_TRUE(world_->run_until([&] { return stranger.all<Closed>().size() == 1; }));
  EXPECT_EQ(stranger.all<Closed>()[0].reason.kind, ErrorKind::kRefused);
  EXPECT_THAT(stranger.all<Closed>()[0].reason.what, HasSubstr("needs a certificate of the run"));
  (void)stranger.network->connect(bulk, Lane::kBulk);
  ASSERT_TRUE(world_->run_until([&] { return stranger.all<Closed>().size() == 2; }));
  EXPECT_TRUE(stranger.all<Opened>().empty());
  EXPECT_TRUE(ours.all<Accepted>().empty());
}
// A process whose certificate has another name than the one that was asked for gets nothing to read. Nor does
// it by a connection that was kept for its own name.
TEST_P(StrangersConformance, MeantForAnother) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint at = listen(b);
  std::size_t ends = 0;
  std::size_t read = 0;
  for (const auto how : {Question::Asked::kOnce, Question::Asked::kAgain, Question::Asked::kAgain}) {
    (void)a.network->ask(at, {.method = "Enroll", .body = "secret", .to = "c", .asked = how});
    const auto end = answered(a, ++ends);
    ASSERT_FALSE(end.answer.ok());
    EXPECT_EQ(end.answer.error().where, named(at));
    EXPECT_EQ(b.all<Asked>().size(), read);
    (void)a.network->ask(at, {.method = "Enroll", .body = "secret", .to = "b", .asked = how});
    b.network->answer(asked(b, ++read).question, std::string("hello"));
    EXPECT_EQ(*answered(a, ++ends).answer, "hello");
  }
}

INSTANTIATE_TEST_SUITE_P(Certified, StrangersConformance,
                         ::testing::Values(NetworkKind::kTls, NetworkKind::kSim),
                         [](const auto& test) { return name(test.param); });

// Only with TLS and certificates of the real network.
class ForeignQuestions : public QuestionsConformance {};

// A process with a certificate of another authority may neither ask nor be asked.
TEST_P(ForeignQuestions, AreNotHeard) {
  Recorder& ours = start("ours", 0);
  Recorder& foreign = start("foreign", 1);
  Recorder& stranger = start("stranger", NetworkWorld::kStranger);
  (void)foreign.network->ask(listen(ours), {.method = "Enroll"});
  EXPECT_FALSE(answered(foreign).answer.ok());
  const Endpoint at = listen(foreign);
  (void)ours.network->ask(at, {.method = "Enroll"});
  EXPECT_FALSE(answered(ours).answer.ok());
  (void)stranger.network->ask(at, {.method = "Enroll"});
  EXPECT_FALSE(answered(stranger).answer.ok());
  EXPECT_TRUE(ours.all<Asked>().empty());
  EXPECT_TRUE(foreign.all<Asked>().empty());
}

// Waiting questions of strangers on one host keep out further strangers there, and no node.
TEST_P(ForeignQuestions, StrangersKeepNobodyOut) {
  Recorder& server = start("server", 0);
  Recorder& stranger = start("stranger", NetworkWorld::kStranger);
  const Endpoint at = listen(server);
  constexpr std::size_t kMore = 3;
  for (std::size_t i = 0; i < kMaxFromOneHost + kMore; ++i)
    (void)stranger.network->ask(at, {.method = "Enroll", .body = "", .timeout = kMaxQuestionTime});
  ASSERT_TRUE(world_->run_until(
      [&] { return server.all<Asked>().size() == kMaxFromOneHost && stranger.events.size() == kMore; }));
  for (const auto& end : stranger.all<host::Answered>())
    EXPECT_THAT(end.answer.error().what, HasSubstr("busy"));
  Recorder& node = start("node", 0);
  (void)node.network->ask(at, {.method = "Status"});
  const Asked question = asked(server, kMaxFromOneHost + 1);
  EXPECT_NE(question.peer.certificate, "");
  server.network->answer(question.question, std::string("well"));
  EXPECT_EQ(*answered(node).answer, "well");
  // Once they are answered, there is room again.
  for (const Asked& one : server.all<Asked>()) server.network->answer(one.question, std::string("later"));
  ASSERT_TRUE(world_->run_until([&] { return stranger.events.size() == kMaxFromOneHost + kMore; }));
  (void)stranger.network->ask(at, {.method = "Enroll"});
  EXPECT_EQ(asked(server, kMaxFromOneHost + 2).peer.certificate, "");
}
INSTANTIATE_TEST_SUITE_P(Tls, ForeignQuestions, ::testing::Values(NetworkKind::kTls),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace gossamer::host
