// SPDX-License-Identifier: Apache-2.0
//
// What happens to questions when the simulated internet misbehaves. What both kinds of Network promise:
// tests/conformance.
#include "host/sim/questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "host/sim/network.h"

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;

class SimQuestionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    internet_.set_default_path({.delay = from_milliseconds(10)});
    asker_ = internet_.attach("a", {"node-1"}, [this](NetworkEvent event) {
      if (auto* const answered = std::get_if<Answered>(&event)) ends_.push_back({timeline_.now(), *answered});
    });
    server_ = internet_.attach("b", {"node-2"}, [this](NetworkEvent event) {
      auto* const asked = std::get_if<Asked>(&event);
      if (asked == nullptr) return;
      ++asked_;
      if (answers_) server_->answer(asked->question, std::string("yes"));
    });
    at_ = *server_->listen({"b", 0}, Lane::kControl);
  }

  void ask(Duration timeout = from_seconds(10)) {
    (void)asker_->ask(at_, {.method = "Enroll", .body = "x", .timeout = timeout});
  }
  void run(double seconds) { timeline_.run_until(timeline_.now() + from_seconds(seconds)); }

  struct End {
    Instant when;
    Answered answered;
  };
  Timeline timeline_{3};
  SimInternet internet_{timeline_, 3};
  std::unique_ptr<Network> asker_;
  std::unique_ptr<Network> server_;
  Endpoint at_;
  std::vector<End> ends_;
  int asked_ = 0;
  bool answers_ = true;
};

// A question costs four round trips: TCP, TLS, HTTP/2, and itself. A large answer also takes the time of the
// uplink's rate.
TEST_F(SimQuestionsTest, CostsFourRounds) {
  ask();
  run(1);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_TRUE(ends_[0].answered.answer.ok());
  EXPECT_NEAR((ends_[0].when - Instant{}).milliseconds(), 80, 1);
}

// Behind NAT, over a cut path and on a vanished machine nobody hears a question. The asker is told when an
// attempt to connect is given up, or at its time-out if that is sooner.
TEST_F(SimQuestionsTest, NobodyCanBeReached) {
  internet_.hide("b");
  ask();
  run(4.9);
  EXPECT_TRUE(ends_.empty());
  run(0.2);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_THAT(ends_[0].answered.answer.error().message(), HasSubstr("timed out"));
  internet_.cut("b", "a");
  ask(from_seconds(2));
  run(2.1);
  ASSERT_EQ(ends_.size(), 2U);
  EXPECT_THAT(ends_[1].answered.answer.error().message(), HasSubstr("silence for 2 s"));
  internet_.vanish("b");
  ask(from_seconds(2));
  run(30);
  EXPECT_EQ(ends_.size(), 3U);
  EXPECT_EQ(asked_, 0);
}

// A path that is cut while the answer is under way holds it back; healed, it arrives, once.
TEST_F(SimQuestionsTest, CutAndHealed) {
  ask();
  run(0.065);  // the connection stands, the question travels
  internet_.cut("b", "a");
  run(3);
  EXPECT_EQ(asked_, 1);
  EXPECT_TRUE(ends_.empty());
  internet_.heal("b", "a");
  run(1);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_TRUE(ends_[0].answered.answer.ok());
  run(60);
  EXPECT_EQ(ends_.size(), 1U);
}

// A paused asker hears the end of its question when it goes on, once. If both the answer and the time-out
// came meanwhile, the first of them counts.
TEST_F(SimQuestionsTest, PausedAsker) {
  ask(from_seconds(1));
  run(0.065);
  internet_.pause("a");
  run(5);
  EXPECT_TRUE(ends_.empty());
  internet_.resume("a");
  run(60);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_TRUE(ends_[0].answered.answer.ok());
}

// A paused server answers when it goes on: too late for one question, in time for another.
TEST_F(SimQuestionsTest, PausedServer) {
  ask(from_seconds(1));
  ask(from_seconds(9));
  run(0.025);
  internet_.pause("b");
  run(3);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_FALSE(ends_[0].answered.answer.ok());
  internet_.resume("b");
  run(60);
  ASSERT_EQ(ends_.size(), 2U);
  EXPECT_TRUE(ends_[1].answered.answer.ok());
}

// On a path that loses a third of everything questions are slow, and end once each, nearly all with an
// answer.
TEST_F(SimQuestionsTest, Loss) {
  internet_.set_default_path({.delay = from_milliseconds(10), .jitter = from_milliseconds(5), .loss = 0.3});
  for (int i = 0; i < 200; ++i) ask(from_seconds(30));
  run(100);
  ASSERT_EQ(ends_.size(), 200U);
  int good = 0;
  for (const End& end : ends_) good += end.answered.answer.ok() ? 1 : 0;
  EXPECT_GE(good, 190);
}

// A process that ends leaves no event behind, asked or asking, and its places are free again.
TEST_F(SimQuestionsTest, ProcessesEnd) {
  answers_ = false;
  for (std::size_t i = 0; i < kMaxWaitingQuestions; ++i) ask(kMaxQuestionTime);
  run(1);
  EXPECT_EQ(asked_, static_cast<int>(kMaxWaitingQuestions));
  asker_.reset();
  run(1);
  asker_ = internet_.attach("a", {"node-1"}, [this](NetworkEvent event) {
    if (auto* const answered = std::get_if<Answered>(&event)) ends_.push_back({timeline_.now(), *answered});
  });
  answers_ = true;
  ask();
  run(1);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_TRUE(ends_[0].answered.answer.ok());
  answers_ = false;
  ask();
  run(1);
  server_.reset();
  run(1);
  ASSERT_EQ(ends_.size(), 2U);
  EXPECT_FALSE(ends_[1].answered.answer.ok());
  run(100);
  EXPECT_EQ(ends_.size(), 2U);
}

}  // namespace
}  // namespace gossamer::host
