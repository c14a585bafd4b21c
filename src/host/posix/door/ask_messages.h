// SPDX-License-Identifier: Apache-2.0
//
// Questions of strangers and their answers as bytes (proto/gossamer/ask.proto). Thread rule: plain functions.
#pragma once

#include <gossamer/error.pb.h>

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace gossamer::host {

// The longest message of a stranger. Enroll has some 2 kB.
inline constexpr std::size_t kMostAskBytes = std::size_t{64} << 10;
// The longest answer: a body of kMaxAnswerBytes, and what stands around it. A Status may be long.
inline constexpr std::size_t kMostAnswerBytes = (std::size_t{1} << 20) + 64;

struct AskMessage {
  std::string method;
  std::string body;
};
[[nodiscard]] std::string to_bytes(const AskMessage& ask);
// Nothing for bytes that are no question with the name of a method.
[[nodiscard]] std::optional<AskMessage> read_ask(const std::string& bytes);

// An answer with a body above kMaxAnswerBytes becomes the error that says so.
[[nodiscard]] std::string answer_bytes(const Result<std::string>& answer);
// What was answered. Whatever the other end sends, an error is fit to be shown (made_fit). `where` is taken
// for one that names no place. kBadData: the bytes are no answer.
[[nodiscard]] Result<std::string> read_answer(const std::string& bytes, const std::string& where);

// An Error that travels, cut to its bounds, and back. `where` as above. Nothing for a kind that there is not.
[[nodiscard]] wire::ErrorMessage to_message(Error error);
[[nodiscard]] std::optional<Error> read_error(const wire::ErrorMessage& message, const std::string& where);

}  // namespace gossamer::host
