// SPDX-License-Identifier: Apache-2.0
//
// AskSession is the door's talk with one stranger: TLS, one question, one answer. It has no socket. All that
// a stranger sends before its question is whole has a bound. So neither memory nor time of the door's thread
// goes to one of them.
//
// Thread rule: a plain object of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "host/posix/door/ask_messages.h"
#include "host/posix/door/frame_reader.h"
#include "host/posix/door/tls_session.h"

namespace gossamer::host {

class AskSession {
 public:
  enum class Step : std::uint8_t {
    kMore,   // more bytes are needed
    kAsked,  // question() is there
    kOver,   // the other end is gone, or breaks a rule: close the connection
  };
  // What a stranger may send in all: its question, and for TLS as much again.
  static constexpr std::size_t kMostBytes = 2 * kMostAskBytes;

  // `context` is door_context(), and outlives the session.
  explicit AskSession(SSL_CTX* context) : tls_(TlsSession::serve(context)) {}

  // Takes what the stranger has sent. Output may follow. Requires that the last step was kMore.
  Step take(std::string_view bytes);
  // Requires kAsked.
  [[nodiscard]] const AskMessage& question() const { return question_; }
  // The last word: the answer is in the output. Requires kAsked.
  void answer(const Result<std::string>& answer);
  [[nodiscard]] std::string take_output() { return tls_.take_output(); }

 private:
  TlsSession tls_;
  std::size_t taken_ = 0;
  FrameReader frame_{kMostAskBytes};
  AskMessage question_;
};

}  // namespace gossamer::host
