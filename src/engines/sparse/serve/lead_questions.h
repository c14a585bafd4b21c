// SPDX-License-Identifier: Apache-2.0
//
// LeadQuestions: a lead's questions to a member about the part that it holds
// (docs/protocols/sparse-serving.md). The engine opens it with the part of an epoch. It tells the lead Ready,
// once for each epoch and each link with the lead, and keeps the newest question until the engine answers it.
//
//   questions.open(epoch, part, now);
//   questions.on(arrived);
//   if (auto question = questions.take()) ...            // Work: LeadQuestions::answer(answers, *question)
//   questions.give(message, now);
//   questions.close();                                   // the part is about to change
//
// Thread rule: one owner, the loop thread. answer() is for the thread that computes.
#pragma once

#include <gossamer/sparse_serving.pb.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "base/time.h"
#include "cluster/control/member_process.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/serve/part_answers.h"
#include "net/link/message.h"

namespace gossamer::sparse_engine {

using net::kQueryChannel;

class LeadQuestions {
 public:
  struct Question {
    sparse_serving::Question asked;
    Slices payload;
    std::uint64_t link = 0;  // over which it came
  };
  // The process outlives it.
  explicit LeadQuestions(cluster::MemberProcess& process) : process_(process) {}

  // The part that this epoch gave is in memory. Tells the lead. Requires a life.
  void open(Epoch epoch, const sparse::NetworkPart& part, Instant now);
  // Answers no question until it is opened again. A newer question stays.
  void close() { open_ = false; }
  // A life has begun: forgets everything.
  void begin_life();
  [[nodiscard]] bool is_open() const { return open_; }
  // The epoch of the last open(); 0 before the first one of a life.
  [[nodiscard]] Epoch epoch() const { return epoch_; }

  // Why nobody may say this on the channel of queries where members train; nothing: the lead does.
  [[nodiscard]] static std::optional<Error> objection(const net::Arrived& event);
  // Takes a question of the lead. The message is consumed elsewhere.
  void on(const net::Arrived& event);
  // The newest question about the part of the open epoch; null: there is none.
  [[nodiscard]] std::shared_ptr<const Question> take();
  // Sends an answer to the question that was taken last. It is dropped if the link over which the question
  // came is gone. Over the next one the lead asks again, and expects no other answer.
  void give(net::Message answer, Instant now);
  // To be called with every tick of the engine: the link with the lead may be new, and so may the lead.
  void tick(Instant now);

  // Computes the answer to a question. Errors are those of PartAnswers::answer().
  [[nodiscard]] static Result<net::Message> answer(PartAnswers& answers, const Question& question);

 private:
  [[nodiscard]] bool send(net::Message message, Instant now);
  // The number of the link with the lead; 0: there is none.
  [[nodiscard]] std::uint64_t link() const;

  cluster::MemberProcess& process_;
  bool open_ = false;
  Epoch epoch_;
  sparse_fleet::Part part_;
  std::uint64_t told_link_ = 0;               // over which the lead was told of the epoch; 0: over none
  std::shared_ptr<const Question> question_;  // the newest, if it is not taken
  std::uint64_t taken_over_ = 0;              // the link of the question that was taken last
};

}  // namespace gossamer::sparse_engine
