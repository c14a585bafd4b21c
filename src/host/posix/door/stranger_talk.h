// SPDX-License-Identifier: Apache-2.0
//
// A stranger's side of the door: one TLS connection, on which at most one question is asked. It blocks.
// Thread rule: a plain object of one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "host/api/endpoint.h"
#include "host/api/question.h"
#include "host/posix/door/contact.h"
#include "host/posix/door/credentials.h"
#include "host/posix/door/tls_session.h"

namespace gossamer::host {

class StrangerTalk {
 public:
  // Over a connected socket. `host` is the DNS name that the certificate must have, where it is verified.
  struct Other {
    Endpoint at;
    std::string host = kCertificateHost;
  };
  // `context` is stranger_context(), and outlives the talk.
  StrangerTalk(SSL_CTX* context, Descriptor socket, Other other);

  // Shakes hands. The error is kFailed at the endpoint: "no TLS there".
  [[nodiscard]] Result<void> shake_hands(const Deadline& deadline);
  // Asks, and waits for the answer. Requires shaken hands. Nothing: no answer came in time.
  [[nodiscard]] std::optional<Result<std::string>> ask(const std::string& method, const std::string& body,
                                                       const Deadline& deadline);
  [[nodiscard]] const SSL* ssl() const { return tls_.ssl(); }

 private:
  enum class Turn : std::uint8_t { kGoOn, kLate, kClosed };
  // Sends what is there, and takes what comes next.
  Turn take_turn(const Deadline& deadline);
  [[nodiscard]] bool send_all(const Deadline& deadline);

  const Other other_;
  Descriptor socket_;
  TlsSession tls_;
  std::string said_;
};

// One question from its beginning to its end: looks the name up, connects, and asks. Without an answer in
// time the error is no_answer(). `sign` as for Deadline.
[[nodiscard]] Result<std::string> ask_as_stranger(const Endpoint& to, const Question& question,
                                                  const NetworkCredentials& credentials, int sign);

}  // namespace gossamer::host
