// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/question_calls.h"

#include <grpc/support/time.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "host/grpc/status.h"
#include "host/grpc/stream.h"

namespace gossamer::host {
namespace {

grpc::ByteBuffer to_buffer(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

std::string to_text(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  CHECK(buffer.Dump(&slices).ok());
  std::string text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

}  // namespace

OutgoingQuestion::OutgoingQuestion(QuestionId id, std::string where, NetworkSink sink, Over over,
                                   const Way& way)
    : id_(id),
      where_(std::move(where)),
      sink_(std::move(sink)),
      over_(std::move(over)),
      reached_(way.reached),
      call_(std::make_unique<Call>(way.channel)) {}

void OutgoingQuestion::start(std::shared_ptr<OutgoingQuestion> self, Question question) {
  // gRPC orders its callbacks by locks of its own, which race detectors do not see; they see this one.
  const std::lock_guard lock(mutex_);
  self_ = std::move(self);
  method_ = std::move(question.method);
  timeout_ = question.timeout;
  call_->request = to_buffer(question.body);
  call_->context.set_deadline(gpr_time_from_nanos(timeout_.ns, GPR_TIMESPAN));
  call_->stub.PrepareUnaryCall(&call_->context, kQuestionService + method_, grpc::StubOptions(),
                               &call_->request, &call_->response, this);
  StartCall();
}

void OutgoingQuestion::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (call_ != nullptr) call_->context.TryCancel();
}

Result<std::string> OutgoingQuestion::outcome(const grpc::Status& status, const Call& call) {
  // A server may end a call well and send nothing.
  if (status.ok() && !call.response.Valid()) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = where_,
                 .what = "the answer is missing",
                 .expected = "one message",
                 .fix = "look whether a gossamer of the same version runs there"};
  }
  if (status.ok()) return to_text(call.response);
  if (!status.error_details().empty()) return to_error(status, where_);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return no_answer(where_, method_, timeout_);
  return to_error(status, where_);
}

void OutgoingQuestion::OnDone(const grpc::Status& status) {
  std::shared_ptr<OutgoingQuestion> keep;
  std::shared_ptr<Call> call;
  bool here = false;
  {
    const std::lock_guard lock(mutex_);
    keep = std::move(self_);
    call = std::move(call_);
    here = cancelled_;
  }
  Answered answered{id_, outcome(status, *call)};
  if (here && !status.ok()) answered.answer = Error{.where = where_, .what = "the program has ended here"};
  call->request.Clear();
  call->response.Clear();
  if (reached_) reached_(status.ok() || !status.error_details().empty());
  sink_(std::move(answered));
  over_(id_, std::move(call));
}

IncomingQuestion::IncomingQuestion(QuestionId id, NetworkSink sink, Over over,
                                   grpc::GenericCallbackServerContext* context)
    : id_(id), sink_(std::move(sink)), over_(std::move(over)), context_(context) {}

void IncomingQuestion::start(std::shared_ptr<IncomingQuestion> self) {
  const std::lock_guard lock(mutex_);
  self_ = std::move(self);
  StartRead(&request_);
}

bool IncomingQuestion::claim_finish() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(finished_, true);
}

void IncomingQuestion::OnReadDone(bool ok) {
  if (!ok) {
    Error nothing{.kind = ErrorKind::kBadData, .what = "no question", .expected = "one message"};
    return answer(std::move(nothing));
  }
  if (request_.Length() > kMaxQuestionBytes) return answer(question_too_large("", request_.Length()));
  Asked asked{.question = id_,
              .method = context_->method().substr(std::char_traits<char>::length(kQuestionService)),
              .peer = {certificate_name(context_->auth_context().get())},
              .from = context_->peer(),
              .body = to_text(request_)};
  request_.Clear();
  sink_(std::move(asked));
}

void IncomingQuestion::answer(Result<std::string> answer) {
  if (answer.ok() && answer->size() > kMaxAnswerBytes) answer = answer_too_large(answer->size());
  if (!claim_finish()) return;
  if (!answer.ok()) return Finish(to_status(answer.error()));
  response_ = to_buffer(*answer);
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

void IncomingQuestion::cancel() {
  const std::lock_guard lock(mutex_);
  if (!finished_) context_->TryCancel();  // OnCancel follows, and finishes
}

void IncomingQuestion::OnCancel() {
  if (claim_finish()) Finish(grpc::Status::CANCELLED);
}

void IncomingQuestion::OnDone() {
  std::shared_ptr<IncomingQuestion> keep;
  {
    const std::lock_guard lock(mutex_);
    keep = std::move(self_);
  }
  over_(id_);
}

}  // namespace gossamer::host
