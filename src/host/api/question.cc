// SPDX-License-Identifier: Apache-2.0
#include "host/api/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::host {
namespace {

constexpr std::size_t kMaxMethod = 32;

// Other machines' texts end up on terminals.
void make_fit(std::string& part) {
  if (part.size() > kMaxErrorPartBytes) part.resize(kMaxErrorPartBytes);
  std::ranges::replace_if(
      part, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
}

}  // namespace

bool is_method(std::string_view name) {
  return !name.empty() && name.size() <= kMaxMethod &&
         std::ranges::all_of(name, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
}

Error question_too_large(std::string where, std::size_t bytes) {
  return {.where = std::move(where),
          .what = "the question is too large",
          .got = fmt::format("{} bytes", bytes),
          .expected = fmt::format("at most {}", kMaxQuestionBytes)};
}

Error answer_too_large(std::size_t bytes) {
  return {.what = "the answer is too large",
          .got = fmt::format("{} bytes", bytes),
          .expected = fmt::format("at most {}", kMaxAnswerBytes)};
}

Error too_busy(std::string where) {
  return {.where = std::move(where),
          .what = "busy: too many questions wait for their answers",
          .expected = fmt::format("at most {}", kMaxWaitingQuestions),
          .fix = "try again later"};
}

Error no_answer(std::string where, const std::string& method, Duration timeout) {
  return {.where = std::move(where),
          .what = fmt::format("no answer to {}", method),
          .got = fmt::format("silence for {} s", timeout.seconds()),
          .fix = "look whether the program there runs and the network lets it through, then try again"};
}

Error made_fit(Error error) {
  for (std::string* part : {&error.where, &error.what, &error.got, &error.expected, &error.fix})
    make_fit(*part);
  return error;
}

}  // namespace gossamer::host
