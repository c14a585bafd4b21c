// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/ask_messages.h"

#include <gossamer/ask.pb.h>

#include <utility>

#include "host/api/question.h"

namespace gossamer::host {

std::string to_bytes(const AskMessage& ask) {
  wire::Ask message;
  message.set_method(ask.method);
  message.set_body(ask.body);
  return message.SerializeAsString();
}

std::optional<AskMessage> read_ask(const std::string& bytes) {
  wire::Ask message;
  if (!message.ParseFromString(bytes) || !is_method(message.method())) return std::nullopt;
  return AskMessage{.method = message.method(), .body = message.body()};
}

std::string answer_bytes(const Result<std::string>& answer) {
  wire::AskAnswer message;
  if (answer.ok() && answer->size() <= kMaxAnswerBytes) {
    message.set_body(*answer);
  } else {
    *message.mutable_error() = to_message(answer.ok() ? answer_too_large(answer->size()) : answer.error());
  }
  return message.SerializeAsString();
}

Result<std::string> read_answer(const std::string& bytes, const std::string& where) {
  wire::AskAnswer message;
  const bool read = message.ParseFromString(bytes);
  if (read && message.has_body()) return message.body();
  if (read && message.has_error()) {
    if (auto error = read_error(message.error(), where)) return *std::move(error);
  }
  return Error{.kind = ErrorKind::kBadData,
               .where = where,
               .what = "the answer cannot be read",
               .expected = "one message",
               .fix = "look whether a gossamer of the same version runs there"};
}

wire::ErrorMessage to_message(Error error) {
  error = made_fit(std::move(error));
  wire::ErrorMessage message;
  message.set_kind(static_cast<std::uint32_t>(error.kind));
  message.set_where(error.where);
  message.set_what(error.what);
  message.set_got(error.got);
  message.set_expected(error.expected);
  message.set_fix(error.fix);
  return message;
}

std::optional<Error> read_error(const wire::ErrorMessage& message, const std::string& where) {
  if (message.kind() < static_cast<std::uint32_t>(ErrorKind::kFailed) ||
      message.kind() > static_cast<std::uint32_t>(ErrorKind::kRefused))
    return std::nullopt;
  return made_fit({.kind = static_cast<ErrorKind>(message.kind()),
                   .where = message.where().empty() ? where : message.where(),
                   .what = message.what(),
                   .got = message.got(),
                   .expected = message.expected(),
                   .fix = message.fix()});
}

}  // namespace gossamer::host
