// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/questions.h"

#include <fmt/format.h>
#include <grpc/support/time.h>

#include <string_view>
#include <utility>

#include "base/check.h"
#include "host/grpc/question_calls.h"
#include "host/grpc/status.h"
#include "host/grpc/stream.h"

namespace gossamer::host {
namespace {

class RefusedCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// What the asker's clock and the network may add to kMaxQuestionTime.
constexpr std::int64_t kDeadlineSlackNs = 1'000'000'000;

// Without a deadline a stranger could hold a place for ever; gRPC ends a call at its deadline on both sides.
bool has_deadline(const grpc::GenericCallbackServerContext& context) {
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  return gpr_time_cmp(left, gpr_time_from_nanos(kMaxQuestionTime.ns + kDeadlineSlackNs, GPR_TIMESPAN)) <= 0;
}

}  // namespace

grpc::ServerGenericBidiReactor* refuse_call(const grpc::Status& status) { return new RefusedCall(status); }

GrpcQuestions::GrpcQuestions(NetworkSink sink, QuestionNumbers& numbers)
    : sink_(std::move(sink)), numbers_(numbers) {}
GrpcQuestions::~GrpcQuestions() { CHECK(outgoing_.empty() && incoming_.empty()); }

QuestionId GrpcQuestions::ask(const OutgoingQuestion::Way& way, const std::string& to, Question question) {
  CHECK(is_method(question.method), question.method);
  CHECK(question.timeout > Duration{} && question.timeout <= kMaxQuestionTime, question.timeout.ns);
  std::shared_ptr<OutgoingQuestion> started;
  QuestionId id;
  const std::size_t bytes = question.body.size();
  {
    const std::lock_guard lock(mutex_);
    CHECK(!ending_);
    id = QuestionId{++numbers_};
    if (bytes <= kMaxQuestionBytes && outgoing_.size() < kMaxWaitingQuestions) {
      started = std::make_shared<OutgoingQuestion>(
          id, to, sink_,
          [this](QuestionId over, std::shared_ptr<void> remains) { asked_over(over, std::move(remains)); },
          way);
      outgoing_[id] = started;
    }
  }
  if (started != nullptr) {
    auto self = started;
    started->start(std::move(self), std::move(question));
  } else {
    if (way.reached) way.reached(true);
    sink_(Answered{id, bytes > kMaxQuestionBytes ? question_too_large(to, bytes) : too_busy(to)});
  }
  return id;
}

bool GrpcQuestions::is_question(const std::string& method) {
  const std::string_view service = kQuestionService;
  return method.starts_with(service) && is_method(std::string_view(method).substr(service.size()));
}

grpc::ServerGenericBidiReactor* GrpcQuestions::accept(grpc::GenericCallbackServerContext* context) {
  if (!has_deadline(*context)) {
    return refuse_call(to_status({.kind = ErrorKind::kBadData,
                                  .what = "the question has no deadline, or a late one",
                                  .expected = fmt::format("at most {} s", kMaxQuestionTime.seconds()),
                                  .fix = "set the call's deadline"}));
  }
  const std::string asker = certificate_name(context->auth_context().get());
  std::shared_ptr<IncomingQuestion> question;
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return refuse_call({grpc::StatusCode::UNAVAILABLE, "shutting down"});
    const auto of_asker = of_asker_.find(asker);
    const bool too_many = !asker.empty() && of_asker != of_asker_.end() && of_asker->second >= kMaxOfOneNode;
    if (too_many || incoming_.size() >= kMaxWaitingQuestions)
      return refuse_call(to_status(too_busy(""), StatusUse::kBusy));
    ++of_asker_[asker];
    const QuestionId id{++numbers_};
    question = std::make_shared<IncomingQuestion>(
        id, sink_, [this, asker](QuestionId over) { answered_over(over, asker); }, context);
    incoming_[id] = question;
  }
  question->start(question);
  return question.get();
}

void GrpcQuestions::answer(QuestionId question, Result<std::string> answer) {
  std::shared_ptr<IncomingQuestion> found;
  {
    const std::lock_guard lock(mutex_);
    const auto place = incoming_.find(question);
    if (place != incoming_.end()) found = place->second;
  }
  if (found != nullptr) found->answer(std::move(answer));
}

void GrpcQuestions::cancel() {
  std::vector<std::shared_ptr<OutgoingQuestion>> outgoing;
  std::vector<std::shared_ptr<IncomingQuestion>> incoming;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& [id, question] : outgoing_) outgoing.push_back(question);
    for (const auto& [id, one] : incoming_) incoming.push_back(one);
  }
  for (const auto& question : outgoing) question->cancel();
  for (const auto& question : incoming) question->cancel();
}

void GrpcQuestions::end() {
  {
    std::unique_lock lock(mutex_);
    all_over_.wait(lock, [this] { return outgoing_.empty() && incoming_.empty(); });
  }
  free_remains();
}

void GrpcQuestions::free_remains() {
  std::vector<std::shared_ptr<void>> remains;
  const std::lock_guard lock(mutex_);
  remains.swap(remains_);
}

void GrpcQuestions::asked_over(QuestionId question, std::shared_ptr<void> remains) {
  const std::lock_guard lock(mutex_);
  remains_.push_back(std::move(remains));
  outgoing_.erase(question);
  if (outgoing_.empty() && incoming_.empty()) all_over_.notify_all();
}

void GrpcQuestions::answered_over(QuestionId question, const std::string& asker) {
  const std::lock_guard lock(mutex_);
  incoming_.erase(question);
  const auto of_asker = of_asker_.find(asker);
  if (--of_asker->second == 0) of_asker_.erase(of_asker);
  if (outgoing_.empty() && incoming_.empty()) all_over_.notify_all();
}

}  // namespace gossamer::host
