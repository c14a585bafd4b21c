// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/stranger_questions.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <iterator>
#include <utility>

#include "base/check.h"
#include "host/posix/blocked_signals.h"
#include "host/posix/door/ask_messages.h"
#include "host/posix/door/stranger_talk.h"

namespace gossamer::host {
namespace {

// What a method and the messages' own fields take beside the body.
constexpr std::size_t kAround = 64;

Error too_long(const Endpoint& to, std::size_t bytes) {
  Error error = question_too_large(to_string(to), bytes);
  error.expected = fmt::format("at most {} of a stranger", kMostAskBytes - kAround);
  return error;
}

}  // namespace

StrangerQuestions::StrangerQuestions(NetworkCredentials credentials, NetworkSink sink)
    : credentials_(std::move(credentials)), sink_(std::move(sink)), sign_(::eventfd(0, EFD_CLOEXEC)) {}

void StrangerQuestions::ask(QuestionId id, const Endpoint& to, Question question) {
  CHECK(is_method(question.method), question.method);
  CHECK(question.timeout > Duration{} && question.timeout <= kMaxQuestionTime, question.timeout.ns);
  clear();
  const std::size_t bytes = question.body.size();
  if (bytes > kMostAskBytes - kAround) return sink_(Answered{id, too_long(to, bytes)});
  std::unique_lock lock(mutex_);
  CHECK(!ending_);
  if (talks_.size() >= kMaxWaitingQuestions) {
    lock.unlock();
    return sink_(Answered{id, too_busy(to_string(to))});
  }
  const auto talk = talks_.emplace(talks_.end());
  const BlockedSignals blocked;
  talk->thread = std::thread([this, talk, id, to, question = std::move(question)] {
    Result<std::string> answer = ask_as_stranger(to, question, credentials_, sign_.get());
    {
      const std::lock_guard guard(mutex_);
      talk->over = true;
      if (ending_ && !answer.ok())
        answer = Error{.where = to_string(to), .what = "the program has ended here"};
    }
    sink_(Answered{id, std::move(answer)});
  });
}

// Joins the threads that are done, or will be at once.
void StrangerQuestions::clear() {
  std::list<Talk> over;
  {
    const std::lock_guard lock(mutex_);
    for (auto talk = talks_.begin(); talk != talks_.end();) {
      const auto next = std::next(talk);
      if (talk->over) over.splice(over.end(), talks_, talk);
      talk = next;
    }
  }
  for (Talk& talk : over) talk.thread.join();
}

void StrangerQuestions::end() {
  std::list<Talk> left;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    left.splice(left.end(), talks_);
  }
  const std::uint64_t one = 1;
  static_cast<void>(::write(sign_.get(), &one, sizeof one));
  for (Talk& talk : left) talk.thread.join();
}

}  // namespace gossamer::host
