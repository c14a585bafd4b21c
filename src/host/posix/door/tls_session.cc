// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>

#include <array>
#include <climits>

#include "base/check.h"

namespace gossamer::host {
namespace {

constexpr std::size_t kRecordBytes = std::size_t{16} << 10;
// The groups of both ends, which cost less than a millisecond. OpenSSL would also take ffdhe8192, with which
// a stranger's random bytes cost this end 137 ms (ADR 24).
constexpr const char* kGroups = "X25519:P-256";
// A client's handshake without a certificate: its hello, a second one if we want another group, and its end.
constexpr std::size_t kMostMessages = 3;

Error tls_error(const char* what) {
  return {
      .what = what, .got = openssl_words(), .fix = "look at the certificate, and at this machine's OpenSSL"};
}

Certificate read_certificate(const std::string& text) {
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return Certificate(bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

bool use_key(SSL_CTX* context, const std::string& text) {
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (bio == nullptr) return false;
  const std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

// The list of one protocol, as ALPN has it.
std::string protocol_list(std::string_view protocol) {
  return std::string(1, static_cast<char>(protocol.size())).append(protocol);
}

int select_ask(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
               unsigned offered_size, void*) {
  static const std::string ours = protocol_list(kAskProtocol);
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(ours.data()),
                                           static_cast<unsigned>(ours.size()), offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Counts a client's messages of TLS itself. After its handshake a client may ask for new keys again and
// again, at the cost of this thread. So the rest of what has come is dropped, and the session ends.
void count_message(int writes, int, int type, const void*, std::size_t, SSL* ssl, void* counted) {
  if (writes != 0 || type != SSL3_RT_HANDSHAKE) return;
  if (++*static_cast<std::size_t*>(counted) > kMostMessages) static_cast<void>(BIO_reset(SSL_get_rbio(ssl)));
}

}  // namespace

Result<TlsContext> door_context(const NetworkCredentials& credentials) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  const Certificate own = read_certificate(credentials.certificate);
  const Certificate authority = read_certificate(credentials.authority);
  // The authority is sent too: a stranger knows its fingerprint and must see it.
  const bool good = context != nullptr && own != nullptr && authority != nullptr &&
                    SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set1_groups_list(context.get(), kGroups) == 1 &&
                    SSL_CTX_use_certificate(context.get(), own.get()) == 1 &&
                    SSL_CTX_add1_chain_cert(context.get(), authority.get()) == 1 &&
                    use_key(context.get(), credentials.key) && SSL_CTX_set_num_tickets(context.get(), 0) == 1;
  if (!good) return tls_error("cannot serve TLS");
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_alpn_select_cb(context.get(), select_ask, nullptr);
  return context;
}

Result<TlsContext> stranger_context(const NetworkCredentials& credentials) {
  TlsContext context(SSL_CTX_new(TLS_client_method()));
  const std::string protocols = protocol_list(kAskProtocol);
  const bool good =
      context != nullptr && SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) == 1 &&
      SSL_CTX_set1_groups_list(context.get(), kGroups) == 1 &&
      SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                              static_cast<unsigned>(protocols.size())) == 0;
  if (!good) return tls_error("cannot start TLS here");
  if (credentials.proof == Proof::kNone) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
    return context;
  }
  const Certificate authority = read_certificate(credentials.authority);
  if (authority == nullptr ||
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get()) != 1)
    return tls_error("cannot read the run's authority");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

SslSession session_in_memory(SSL_CTX* context) {
  SslSession session(SSL_new(context));
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  CHECK(session != nullptr && in != nullptr && out != nullptr);
  SSL_set_bio(session.get(), in, out);  // the session owns both
  return session;
}

TlsSession::TlsSession(SSL_CTX* context) : ssl_(session_in_memory(context)) {}

TlsSession TlsSession::serve(SSL_CTX* context) {
  TlsSession session(context);
  SSL_set_accept_state(session.ssl_.get());
  session.messages_ = std::make_unique<std::size_t>(0);
  SSL_set_msg_callback(session.ssl_.get(), count_message);
  SSL_set_msg_callback_arg(session.ssl_.get(), session.messages_.get());
  return session;
}

TlsSession TlsSession::connect(SSL_CTX* context, const std::string& host) {
  TlsSession session(context);
  SSL_set_connect_state(session.ssl_.get());
  CHECK(SSL_set_tlsext_host_name(session.ssl_.get(), kCertificateHost) == 1);
  CHECK(SSL_set1_host(session.ssl_.get(), host.c_str()) == 1);
  session.shake();
  return session;
}

void TlsSession::fail() {
  state_ = State::kBroken;
  const long verified = SSL_get_verify_result(ssl_.get());
  fault_ = verified != X509_V_OK ? X509_verify_cert_error_string(verified) : openssl_words();
  ERR_clear_error();
}

void TlsSession::shake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    state_ = State::kOpen;
  } else if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) {
    fail();
  }
}

void TlsSession::read(std::string& said) {
  std::array<char, kRecordBytes> buffer{};
  for (;;) {
    ERR_clear_error();
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &got);
    if (result == 1) {
      said.append(buffer.data(), got);
      continue;
    }
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_WANT_READ) return;
    if (error != SSL_ERROR_ZERO_RETURN) return fail();
    state_ = State::kEnded;
    return;
  }
}

TlsSession::State TlsSession::take(std::string_view bytes, std::string& said) {
  CHECK(bytes.size() <= INT_MAX, bytes.size());
  if (!bytes.empty()) {
    const int written = BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    CHECK(written == static_cast<int>(bytes.size()), written, bytes.size());
  }
  if (state_ == State::kShaking) shake();
  if (state_ == State::kOpen) read(said);
  if (messages_ != nullptr && *messages_ > kMostMessages) {
    state_ = State::kBroken;
    fault_ = "messages of TLS behind the handshake";
  }
  return state_;
}

void TlsSession::say(std::string_view bytes) {
  CHECK(state_ == State::kOpen);
  ERR_clear_error();
  std::size_t written = 0;
  const bool good = bytes.empty() || SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) == 1;
  if (!good) fail();
}

void TlsSession::end() {
  ERR_clear_error();
  if (state_ == State::kOpen || state_ == State::kEnded) static_cast<void>(SSL_shutdown(ssl_.get()));
  ERR_clear_error();
}

std::string TlsSession::take_output() {
  BIO* const out = SSL_get_wbio(ssl_.get());
  char* data = nullptr;
  const auto size = BIO_get_mem_data(out, &data);
  std::string bytes(data, static_cast<std::size_t>(size));
  static_cast<void>(BIO_reset(out));
  return bytes;
}

}  // namespace gossamer::host
