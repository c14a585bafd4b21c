// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/hello_reader.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/tls1.h>

#include <string>

#include "base/check.h"

namespace gossamer::host {

// What OpenSSL calls while it reads a hello.
struct HelloCallbacks {
  static HelloReader& reader_of(SSL* ssl) { return *static_cast<HelloReader*>(SSL_get_app_data(ssl)); }

  // Whether `protocol` is in the list that the other end offers. OpenSSL has checked the list.
  static bool offers(std::string_view protocol, const unsigned char* list, unsigned size) {
    const std::string ours = std::string(1, static_cast<char>(protocol.size())).append(protocol);
    unsigned char* chosen = nullptr;
    unsigned char chosen_size = 0;
    return SSL_select_next_proto(&chosen, &chosen_size, reinterpret_cast<const unsigned char*>(ours.data()),
                                 static_cast<unsigned>(ours.size()), list, size) == OPENSSL_NPN_NEGOTIATED;
  }

  // Called once the hello is whole.
  static int on_hello(SSL* ssl, int* alert, void*) {
    HelloReader& reader = reader_of(ssl);
    reader.whole_ = true;
    const unsigned char* offer = nullptr;
    std::size_t size = 0;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &offer, &size) ==
        1)
      return SSL_CLIENT_HELLO_SUCCESS;
    reader.guest_ = HelloReader::Guest::kNoneOfUs;
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
  }

  // Called with the protocols that are offered. The alert ends OpenSSL's work.
  static int on_protocols(SSL* ssl, const unsigned char**, unsigned char*, const unsigned char* list,
                          unsigned size, void*) {
    using Guest = HelloReader::Guest;
    HelloReader& reader = reader_of(ssl);
    const Guest grpc = offers(kGrpcProtocol, list, size) ? Guest::kGrpc : Guest::kNoneOfUs;
    reader.guest_ = offers(kAskProtocol, list, size) ? Guest::kAsker : grpc;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
};

Result<TlsContext> look_context(const NetworkCredentials& credentials) {
  auto context = door_context(credentials);
  if (!context.ok()) return context;
  // gRPC's clients may have nothing newer.
  SSL_CTX_set_min_proto_version(context->get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context->get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_client_hello_cb(context->get(), HelloCallbacks::on_hello, nullptr);
  SSL_CTX_set_alpn_select_cb(context->get(), HelloCallbacks::on_protocols, nullptr);
  return context;
}

HelloReader::HelloReader(SSL_CTX* context) : ssl_(session_in_memory(context)) {
  SSL_set_accept_state(ssl_.get());
}

void HelloReader::feed(std::string_view bytes) {
  const int size = static_cast<int>(bytes.size());
  CHECK(size == 0 || BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), size) == size);
}

HelloReader::Guest HelloReader::look(std::string_view bytes) {
  CHECK(bytes.size() <= kMostBytes, bytes.size());
  if (guest_ != Guest::kUnknown || bytes.size() <= fed_) return guest_;
  SSL_set_app_data(ssl_.get(), this);  // the reader may have moved
  feed(bytes.substr(fed_));
  fed_ = bytes.size();
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  const bool waits = result != 1 && SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ;
  ERR_clear_error();
  if (guest_ != Guest::kUnknown) return guest_;
  // A hello that OpenSSL would answer with a question of its own, before it looks at protocols.
  if (waits && whole_) guest_ = Guest::kGrpc;
  if (!waits || (!whole_ && fed_ == kMostBytes)) guest_ = Guest::kNoneOfUs;
  return guest_;
}

}  // namespace gossamer::host
