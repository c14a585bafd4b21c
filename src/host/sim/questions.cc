// SPDX-License-Identifier: Apache-2.0
#include "host/sim/questions.h"

#include "base/check.h"
#include "host/sim/network.h"

namespace gossamer::host {

QuestionId SimQuestions::ask(const Endpoint& to, Question question) {
  CHECK(is_method(question.method), question.method);
  CHECK(question.timeout > Duration{} && question.timeout <= kMaxQuestionTime, question.timeout.ns);
  const QuestionId id = ++last_;
  const std::string where = to_string(to);
  const std::size_t bytes = question.body.size();
  if (bytes > kMaxQuestionBytes || outgoing_.size() >= kMaxWaitingQuestions) {
    outgoing_[id] = {.connection = {}, .where = where};
    end_after({}, id, bytes > kMaxQuestionBytes ? question_too_large(where, bytes) : too_busy(where));
    return id;
  }
  end_after(question.timeout, id, no_answer(where, question.method, question.timeout));
  auto connection = std::make_shared<SimConnection>();
  connection->question = std::move(question);
  outgoing_[id] = {.connection = network_.open(to, connection), .where = where};
  by_connection_[outgoing_[id].connection] = id;
  return id;
}

void SimQuestions::end_after(Duration time, QuestionId question, const Error& error) {
  internet_.timeline_.after(time, [this, alive = sink_, &machine = network_.machine_, question, error] {
    SimInternet::hand_over(machine, [this, alive, question, error] {
      if (!alive.expired()) end(question, error);
    });
  });
}

void SimQuestions::end(QuestionId question, Result<std::string> answer) {
  const auto found = outgoing_.find(question);
  if (found == outgoing_.end()) return;
  const ConnectionId connection = found->second.connection;
  outgoing_.erase(found);
  by_connection_.erase(connection);
  network_.close(connection);
  if (const auto user = sink_.lock()) (*user)(Answered{question, std::move(answer)});
}

void SimQuestions::answer(QuestionId question, Result<std::string> answer) {
  const auto found = incoming_.find(question);
  if (found == incoming_.end()) return;
  const ConnectionId connection = found->second.connection;
  incoming_.erase(found);
  if (answer.ok() && answer->size() > kMaxAnswerBytes) answer = answer_too_large(answer->size());
  if (!answer.ok()) answer = made_fit(answer.error());
  std::string frame = answer.ok() ? *answer : answer.error().message();
  network_.connections_.at(connection).connection->answer = std::move(answer);
  network_.send(connection, {Slice::of(std::move(frame))});
}

void SimQuestions::on(NetworkEvent event) {
  if (const auto* opened = std::get_if<Opened>(&event)) on_event(*opened);
  if (auto* accepted = std::get_if<Accepted>(&event)) on_event(std::move(*accepted));
  if (const auto* received = std::get_if<Received>(&event)) on_event(*received);
  if (const auto* closed = std::get_if<Closed>(&event)) on_event(*closed);
}

void SimQuestions::on_event(const Opened& event) {
  if (!by_connection_.contains(event.connection)) return;
  const auto& connection = network_.connections_.at(event.connection).connection;
  network_.send(event.connection, {Slice::of(connection->question->body)});
}

void SimQuestions::on_event(Accepted event) {
  const QuestionId id = ++last_;
  incoming_[id] = {
      .connection = event.connection, .peer = std::move(event.peer), .from = std::move(event.from)};
  by_connection_[event.connection] = id;
}

void SimQuestions::on_event(const Received& event) {
  const auto of = by_connection_.find(event.connection);
  if (of == by_connection_.end()) return;
  network_.consumed(event.connection, total_bytes(event.frame));
  const QuestionId id = of->second;
  const auto connection = network_.connections_.at(event.connection).connection;
  if (const auto ours = outgoing_.find(id); ours != outgoing_.end()) {
    Result<std::string> result = *connection->answer;
    if (!result.ok() && result.error().where.empty()) {
      Error named = result.error();
      named.where = ours->second.where;
      result = std::move(named);
    }
    return end(id, std::move(result));
  }
  const auto asked = incoming_.find(id);
  if (asked == incoming_.end()) return;
  if (incoming_.size() > kMaxWaitingQuestions) return answer(id, too_busy(""));
  const std::string& own = network_.name_.certificate;
  const std::string& meant = connection->question->to;
  if (!meant.empty() && !own.empty() && meant != own)
    return answer(id, Error{.what = "the certificate there is another's", .got = own, .expected = meant});
  if (const auto user = sink_.lock()) {
    (*user)(Asked{.question = id,
                  .method = connection->question->method,
                  .peer = asked->second.peer,
                  .from = asked->second.from,
                  .body = connection->question->body});
  }
}

void SimQuestions::on_event(const Closed& event) {
  const auto of = by_connection_.find(event.connection);
  if (of == by_connection_.end()) return;
  const QuestionId id = of->second;
  by_connection_.erase(of);
  incoming_.erase(id);
  const auto ours = outgoing_.find(id);
  if (ours == outgoing_.end()) return;
  Error reason = event.reason;
  reason.where = ours->second.where;
  end(id, std::move(reason));
}

}  // namespace gossamer::host
