// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/certificates.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <ctime>
#include <memory>
#include <span>
#include <utility>

#include "base/hex.h"
#include "host/grpc/network.h"
#include "host/posix/door/openssl.h"

namespace gossamer::host {
namespace {

constexpr std::time_t kDay = std::time_t{24} * 60 * 60;

using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using Request = std::unique_ptr<X509_REQ, FreeBy<X509_REQ_free>>;
using Store = std::unique_ptr<X509_STORE, FreeBy<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, FreeBy<X509_STORE_CTX_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeBy<X509_EXTENSION_free>>;

Error failure(const char* what, ErrorKind kind = ErrorKind::kFailed) {
  return {.kind = kind, .what = what, .got = openssl_words()};
}

std::string pem_of(EVP_PKEY* key) {
  return pem(
      [key](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

Bio reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}
// Texts may come from strangers. Without this, OpenSSL would ask the terminal for the password of one that
// says that it is encrypted, and wait.
int no_password(char*, int, int, void*) { return -1; }

Certificate read_certificate(const std::string& text) {
  return Certificate(PEM_read_bio_X509(reader(text).get(), nullptr, no_password, nullptr));
}
Key read_key(const std::string& text) {
  return Key(PEM_read_bio_PrivateKey(reader(text).get(), nullptr, no_password, nullptr));
}
Request read_request(const std::string& text) {
  return Request(PEM_read_bio_X509_REQ(reader(text).get(), nullptr, no_password, nullptr));
}

std::string common_name(const X509* certificate) {
  std::array<char, 256> text{};
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text.data(),
                                             static_cast<int>(text.size()));
  return size < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
}

Key make_key() { return Key(EVP_EC_gen("P-256")); }

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

Result<std::string> request_by(EVP_PKEY* key) {
  const Request request(X509_REQ_new());
  const bool good = request != nullptr && X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1 &&
                    X509_REQ_set_pubkey(request.get(), key) == 1 &&
                    X509_REQ_sign(request.get(), key, EVP_sha256()) > 0;
  if (!good) return failure("cannot make a certificate request");
  return pem([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request.get()); });
}

// A certificate with everything but extensions and the signature.
Certificate blank(const std::string& name, EVP_PKEY* key, const Validity& validity) {
  Certificate certificate(X509_new());
  std::array<unsigned char, 16> serial{};
  if (certificate == nullptr || RAND_bytes(serial.data(), static_cast<int>(serial.size())) != 1)
    return nullptr;
  serial[0] &= 0x7f;  // a serial number is positive
  const std::unique_ptr<BIGNUM, FreeBy<BN_free>> number(
      BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr));
  const auto now = static_cast<std::time_t>(validity.now_seconds);
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const auto* const text = reinterpret_cast<const unsigned char*>(name.data());
  const bool good =
      number != nullptr && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get())) != nullptr &&
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), now - kDay) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), now + validity.days * kDay + validity.seconds) !=
          nullptr &&
      X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, const_cast<unsigned char*>(text),
                                 static_cast<int>(name.size()), -1, 0) == 1 &&
      X509_set_pubkey(certificate.get(), key) == 1;
  return good ? std::move(certificate) : nullptr;
}

// For OpenSSL: goes on where a certificate has ended that signs no other, and nowhere else.
int accept_ended(int good, X509_STORE_CTX* context) {
  const bool ended = good != 1 && X509_STORE_CTX_get_error_depth(context) == 0 &&
                     X509_STORE_CTX_get_error(context) == X509_V_ERR_CERT_HAS_EXPIRED;
  if (!ended) return good;
  X509_STORE_CTX_set_error(context, X509_V_OK);
  return 1;
}

// Whether the authority has signed the certificate, and both hold at that time. kRefused where one of them
// does not hold then, else kBadData.
struct Verified {
  X509* authority;
  X509* certificate;
  double now_seconds;
  Ended ended;
};
Result<void> verify(const Verified& these) {
  const Store store(X509_STORE_new());
  const StoreContext context(X509_STORE_CTX_new());
  const bool ready = store != nullptr && context != nullptr &&
                     X509_STORE_add_cert(store.get(), these.authority) == 1 &&
                     X509_STORE_CTX_init(context.get(), store.get(), these.certificate, nullptr) == 1;
  if (!ready) return failure("cannot check the certificate");
  X509_STORE_CTX_set_time(context.get(), 0, static_cast<std::time_t>(these.now_seconds));
  // The authority's own certificate has depth 0 where it is the one to check. Its end counts.
  const bool is_authority = X509_cmp(these.authority, these.certificate) == 0;
  if (these.ended == Ended::kAccepted && !is_authority)
    X509_STORE_CTX_set_verify_cb(context.get(), accept_ended);
  if (X509_verify_cert(context.get()) == 1) return {};
  ERR_clear_error();
  const int error = X509_STORE_CTX_get_error(context.get());
  const bool outdated = error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID;
  return Error{.kind = outdated ? ErrorKind::kRefused : ErrorKind::kBadData,
               .what = "the certificate does not hold",
               .got = X509_verify_cert_error_string(error)};
}

}  // namespace

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return {};
  return to_hex(std::as_bytes(std::span(digest).first(size)));
}

Result<KeyAndCertificate> make_authority(const std::string& name, const Validity& validity) {
  const Key key = make_key();
  if (key == nullptr) return failure("cannot make a key for the certificate authority");
  const Certificate certificate = blank(name, key.get(), validity);
  X509* const raw = certificate.get();
  const bool good = raw != nullptr && X509_set_issuer_name(raw, X509_get_subject_name(raw)) == 1 &&
                    add_extension(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    add_extension(raw, raw, NID_subject_key_identifier, "hash") &&
                    X509_sign(raw, key.get(), EVP_sha256()) > 0;
  if (!good) return failure("cannot make a certificate authority");
  return KeyAndCertificate{.key = pem_of(key.get()), .certificate = pem_of(raw)};
}

Result<KeyAndRequest> make_request() {
  const Key key = make_key();
  auto request = key == nullptr ? failure("cannot make a key") : request_by(key.get());
  if (!request.ok()) return request.error();
  return KeyAndRequest{.key = pem_of(key.get()), .request = *std::move(request)};
}

Result<std::string> request_for(const std::string& key) {
  const Key read = read_key(key);
  return read == nullptr ? failure("cannot read the key", ErrorKind::kBadData) : request_by(read.get());
}

Result<CertificateTime> time_of(const std::string& certificate) {
  const Certificate read = read_certificate(certificate);
  std::tm from{};
  std::tm until{};
  const bool good = read != nullptr && ASN1_TIME_to_tm(X509_get0_notBefore(read.get()), &from) == 1 &&
                    ASN1_TIME_to_tm(X509_get0_notAfter(read.get()), &until) == 1;
  if (!good) return failure("cannot read the certificate", ErrorKind::kBadData);
  return CertificateTime{.from = static_cast<double>(timegm(&from)),
                         .signed_at = static_cast<double>(timegm(&from) + kDay),
                         .until = static_cast<double>(timegm(&until))};
}

Result<void> check_request(const std::string& request) {
  const Request asked = read_request(request);
  const Key key(asked == nullptr ? nullptr : X509_REQ_get_pubkey(asked.get()));
  // The signature proves that the asker holds the key.
  if (key != nullptr && X509_REQ_verify(asked.get(), key.get()) == 1) return {};
  return failure("cannot use the certificate request", ErrorKind::kBadData);
}

Result<std::string> sign_request(const KeyAndCertificate& authority, const std::string& request,
                                 const std::string& name, const Validity& validity) {
  if (auto good = check_request(request); !good.ok()) return good.error();
  const Request asked = read_request(request);
  const Key asked_key(X509_REQ_get_pubkey(asked.get()));
  const Key key = read_key(authority.key);
  const Certificate issuer = read_certificate(authority.certificate);
  if (key == nullptr || issuer == nullptr) return failure("cannot read the certificate authority");
  const Certificate certificate = blank(name, asked_key.get(), validity);
  X509* const raw = certificate.get();
  const bool good = raw != nullptr && X509_set_issuer_name(raw, X509_get_subject_name(issuer.get())) == 1 &&
                    add_extension(raw, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(raw, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
                    add_extension(raw, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth") &&
                    add_extension(raw, issuer.get(), NID_subject_alt_name,
                                  fmt::format("DNS:{},DNS:{}", kCertificateHost, certificate_host(name))) &&
                    X509_sign(raw, key.get(), EVP_sha256()) > 0;
  if (!good) return failure("cannot sign a certificate");
  return pem_of(raw);
}

Result<CredentialNames> check_credentials(const NetworkCredentials& credentials, double now_seconds,
                                          Ended ended) {
  const auto refuse = [](std::string what, std::string got) {
    return Error{.kind = ErrorKind::kBadData, .what = std::move(what), .got = std::move(got)};
  };
  const Certificate authority = read_certificate(credentials.authority);
  const Certificate own = read_certificate(credentials.certificate);
  const Key key = read_key(credentials.key);
  if (authority == nullptr) return refuse("cannot read the authority's certificate", openssl_words());
  if (own == nullptr) return refuse("cannot read the certificate", openssl_words());
  if (key == nullptr) return refuse("cannot read the key", openssl_words());
  if (X509_check_private_key(own.get(), key.get()) != 1)
    return refuse("the certificate is for another key", openssl_words());
  const auto holds = verify(
      {.authority = authority.get(), .certificate = own.get(), .now_seconds = now_seconds, .ended = ended});
  if (!holds.ok()) return holds.error();
  return CredentialNames{.authority = common_name(authority.get()), .own = common_name(own.get())};
}

Result<std::string> check_key_proof(const KeyProof& proof, double now_seconds) {
  const Certificate authority = read_certificate(proof.authority);
  const Certificate shown = read_certificate(proof.certificate);
  const Request request = read_request(proof.request);
  if (authority == nullptr) return failure("cannot read the certificate authority");
  if (shown == nullptr) return failure("cannot read the certificate", ErrorKind::kBadData);
  if (request == nullptr) return failure("cannot use the certificate request", ErrorKind::kBadData);
  const auto holds = verify({.authority = authority.get(),
                             .certificate = shown.get(),
                             .now_seconds = now_seconds,
                             .ended = Ended::kAccepted});
  if (!holds.ok()) {
    Error error = holds.error();
    if (error.kind == ErrorKind::kFailed) return error;
    const bool outdated = error.kind == ErrorKind::kRefused;
    auto now = static_cast<std::time_t>(now_seconds);
    const bool begun = X509_cmp_time(X509_get0_notBefore(shown.get()), &now) < 0;
    error.kind = outdated && !begun ? ErrorKind::kFailed : ErrorKind::kRefused;  // it can be read
    return error;
  }
  // The certificate's key, and not the one that the request names, must have made the signature.
  EVP_PKEY* const key = X509_get0_pubkey(shown.get());
  const bool proven = key != nullptr && X509_REQ_verify(request.get(), key) == 1 &&
                      EVP_PKEY_eq(key, X509_REQ_get0_pubkey(request.get())) == 1;
  if (proven) return common_name(shown.get());
  ERR_clear_error();
  return Error{.kind = ErrorKind::kRefused,
               .what = "the certificate request is not signed by the key of the certificate",
               .expected = "a request by the node itself"};
}

Result<std::string> random_secret(std::size_t bytes) {
  std::string secret(bytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()), static_cast<int>(bytes)) != 1)
    return failure("cannot get random bytes");
  return secret;
}

Result<std::string> fingerprint(const std::string& certificate) {
  const Certificate read = read_certificate(certificate);
  std::string text = read == nullptr ? "" : fingerprint_of(read.get());
  if (text.empty()) return failure("cannot read the certificate", ErrorKind::kBadData);
  return text;
}

}  // namespace gossamer::host
