// SPDX-License-Identifier: Apache-2.0
//
// HelloReader looks at the first bytes of a connection and says which protocol the connection is for. OpenSSL
// reads them; nothing is answered, and nothing is decided but the protocol that the other end offers (ALPN).
// The bytes stay in the socket, for the one that goes on with them.
//
// Thread rule: a plain object of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "host/posix/door/tls_session.h"

namespace gossamer::host {

class HelloReader {
 public:
  enum class Guest : std::uint8_t {
    kUnknown,   // more bytes are needed
    kAsker,     // it offers kAskProtocol
    kGrpc,      // it offers kGrpcProtocol, and not the other
    kNoneOfUs,  // no TLS, a broken hello, or no protocol of ours
  };
  // The bytes of a hello that is looked at: one TLS record and its head.
  static constexpr std::size_t kMostBytes = (std::size_t{16} << 10) + 5;

  // `context` is look_context(), and outlives the reader.
  explicit HelloReader(SSL_CTX* context);

  // `bytes`: all that has come since the connection began, at most kMostBytes.
  Guest look(std::string_view bytes);

 private:
  friend struct HelloCallbacks;
  void feed(std::string_view bytes);

  SslSession ssl_;
  std::size_t fed_ = 0;
  bool whole_ = false;  // OpenSSL has the hello
  Guest guest_ = Guest::kUnknown;
};

// For HelloReader: the certificate is there because OpenSSL chooses a protocol only once it could answer.
[[nodiscard]] Result<TlsContext> look_context(const NetworkCredentials& credentials);

}  // namespace gossamer::host
