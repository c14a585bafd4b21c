// SPDX-License-Identifier: Apache-2.0
//
// TlsSession is one end of a TLS connection without a socket: bytes of the other end go in, bytes for it come
// out. So its user decides when to read, how much, and for how long. OpenSSL does the work.
//
// Thread rule: a plain object of one thread.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "host/posix/door/credentials.h"
#include "host/posix/door/openssl.h"

namespace gossamer::host {

// The protocol that strangers speak with the door (ALPN).
inline constexpr std::string_view kAskProtocol = "gossamer-ask/1";
// gRPC's.
inline constexpr std::string_view kGrpcProtocol = "h2";

using TlsContext = std::unique_ptr<SSL_CTX, FreeBy<SSL_CTX_free>>;
using SslSession = std::unique_ptr<SSL, FreeBy<SSL_free>>;
// A session without a socket: its user carries the bytes. Requires a context that outlives it.
[[nodiscard]] SslSession session_in_memory(SSL_CTX* context);

// The door's end: it shows our certificate and the authority, asks for none, and speaks TLS 1.3 and
// kAskProtocol alone. Its groups are those that cost little. An error is OpenSSL's, for texts that are no
// certificate and its key.
[[nodiscard]] Result<TlsContext> door_context(const NetworkCredentials& credentials);
// A stranger's end. It verifies the other one's certificate against the authority, unless the proof is kNone.
[[nodiscard]] Result<TlsContext> stranger_context(const NetworkCredentials& credentials);

class TlsSession {
 public:
  enum class State : std::uint8_t { kShaking, kOpen, kEnded, kBroken };

  // Requires a context that outlives the session. The session ends with the first message of TLS itself that
  // comes behind the handshake.
  [[nodiscard]] static TlsSession serve(SSL_CTX* context);
  // `host` is the DNS name that the other end's certificate must have, where the context verifies it.
  [[nodiscard]] static TlsSession connect(SSL_CTX* context, const std::string& host);

  // Takes bytes of the other end; appends what they say to `said`, once hands are shaken. Output may follow.
  State take(std::string_view bytes, std::string& said);
  [[nodiscard]] State state() const { return state_; }
  // Requires kOpen.
  void say(std::string_view bytes);
  // Says that nothing follows.
  void end();
  // The bytes for the other end that have gathered.
  [[nodiscard]] std::string take_output();
  // Why the state is kBroken.
  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] const SSL* ssl() const { return ssl_.get(); }

 private:
  explicit TlsSession(SSL_CTX* context);
  void shake();
  void read(std::string& said);
  void fail();

  std::unique_ptr<std::size_t> messages_;  // of TLS itself, of a client; OpenSSL knows the number's address
  SslSession ssl_;
  State state_ = State::kShaking;
  std::string fault_;
};

}  // namespace gossamer::host
