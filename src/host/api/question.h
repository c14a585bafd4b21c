// SPDX-License-Identifier: Apache-2.0
//
// Questions: one message to the process that listens for control at an endpoint, one answer back
// (docs/protocols/admission.md). They serve what needs no link: enrolling, status, stop. A question is asked
// once; its asker gets one Answered.
//
// Thread rule: plain values and functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"

namespace gossamer::host {

// Names a question for the life of the Network that asked it or was asked; never used twice.
using QuestionId = StrongId<struct QuestionIdTag>;

inline constexpr std::size_t kMaxQuestionBytes = std::size_t{64} << 10;  // there
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20;     // and back
inline constexpr std::size_t kMaxWaitingQuestions = 1024;  // of one Network: asked, and to be answered, each
// Limit on questions of one node that wait for an answer. One node keeps no other from being answered.
inline constexpr std::size_t kMaxOfOneNode = 128;
// Limits on questions of strangers that wait for an answer: in all, and from one host. A process with few
// descriptors has fewer.
inline constexpr std::size_t kMaxStrangersQuestions = 768;
inline constexpr std::size_t kMaxFromOneHost = 256;
inline constexpr Duration kMaxQuestionTime{60'000'000'000};
inline constexpr std::size_t kMaxErrorPartBytes = 800;  // of an error that is an answer; more is cut off

struct Question {
  std::string method = {};              // 1..32 letters of ASCII, such as "Enroll"
  std::string body = {};                // a protobuf message; opaque here
  Duration timeout = from_seconds(10);  // in (0, kMaxQuestionTime]
  // The common name in the certificate that the answerer must hold, where the run has certificates. Empty:
  // any node of the run.
  std::string to = {};
  // kAgain: more questions to the same endpoint follow, and one connection serves them for as long as it
  // works.
  enum class Asked { kOnce, kAgain } asked = Asked::kOnce;
};

[[nodiscard]] bool is_method(std::string_view name);

// Errors that both kinds of Network answer with. `where` is the other end.
[[nodiscard]] Error question_too_large(std::string where, std::size_t bytes);
[[nodiscard]] Error answer_too_large(std::size_t bytes);
[[nodiscard]] Error too_busy(std::string where);
[[nodiscard]] Error no_answer(std::string where, const std::string& method, Duration timeout);

// The error made fit to travel: its parts are cut to kMaxErrorPartBytes, and control characters are replaced.
[[nodiscard]] Error made_fit(Error error);

}  // namespace gossamer::host
