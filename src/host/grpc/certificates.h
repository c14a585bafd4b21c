// SPDX-License-Identifier: Apache-2.0
//
// A run's own certificate authority: a certificate signed by it makes its holder a node of the run (X.509,
// ECDSA over P-256, by OpenSSL). A node makes its key itself and sends a request; the key never leaves its
// machine.
//
// All texts are PEM. Thread rule: any thread, plain values.
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "host/grpc/network.h"

namespace gossamer::host {

struct KeyAndCertificate {
  std::string key;
  std::string certificate;
};

struct KeyAndRequest {
  std::string key;
  std::string request;
};

// Valid from a day before `now_seconds` (clocks differ) until `days` and `seconds` after it. Seconds since
// 1970-01-01 UTC.
struct Validity {
  double now_seconds = 0;
  int days = 365;
  std::int64_t seconds = 0;
};

// When a certificate was signed, and from when until when it holds, in seconds since 1970-01-01 UTC.
struct CertificateTime {
  double from = 0;
  double signed_at = 0;
  double until = 0;
};
// kBadData for what is no certificate.
[[nodiscard]] Result<CertificateTime> time_of(const std::string& certificate);

// A new authority. `name` becomes its common name.
[[nodiscard]] Result<KeyAndCertificate> make_authority(const std::string& name, const Validity& validity);

// A new key, and a request for a certificate for it.
[[nodiscard]] Result<KeyAndRequest> make_request();
// A request for another certificate for a key that there is already. kBadData for what is no key.
[[nodiscard]] Result<std::string> request_for(const std::string& key);

// Whether a request can be signed: it is readable, and signed by its own key. Else kBadData.
[[nodiscard]] Result<void> check_request(const std::string& request);

// A certificate for the key in `request`, under the common name `name` (letters, digits and '-') and the DNS
// names kCertificateHost and certificate_host(name). Names that the request itself gives are ignored. The
// certificate is good for both ends of a connection. An unreadable request is kBadData.
[[nodiscard]] Result<std::string> sign_request(const KeyAndCertificate& authority, const std::string& request,
                                               const std::string& name, const Validity& validity);

// Whether a node's certificate may have ended. It must have begun, and the authority must hold, in any case.
enum class Ended : std::uint8_t { kRefused, kAccepted };

// The common names in credentials. check_credentials() requires that the certificate is for the key and
// signed by the authority, and that both are valid at `now_seconds`. kRefused where one of them is not valid
// then, else kBadData that says what does not fit.
struct CredentialNames {
  std::string authority;
  std::string own;
};
[[nodiscard]] Result<CredentialNames> check_credentials(const NetworkCredentials& credentials,
                                                        double now_seconds, Ended ended = Ended::kRefused);

// A proof without a handshake: a request that the key of a certificate has signed. A process that repeats a
// request has no key by it. So a proof may give a new certificate for that key, and nothing else.
struct KeyProof {
  std::string authority;
  std::string certificate;  // that the authority has signed; it may have ended
  std::string request;
};
// The common name in the certificate. kRefused where the certificate or the authority is not valid at
// `now_seconds`, or the request is of another key. kFailed where the certificate has not begun: the clock may
// be set right. kBadData for what cannot be read.
[[nodiscard]] Result<std::string> check_key_proof(const KeyProof& proof, double now_seconds);

// `bytes` bytes that nobody can guess.
[[nodiscard]] Result<std::string> random_secret(std::size_t bytes);

// SHA-256, 64 hex digits; empty if OpenSSL cannot.
[[nodiscard]] std::string fingerprint_of(const X509* certificate);
// The SHA-256 of a certificate as 64 hex digits, which a join token pins. An unreadable certificate is
// kBadData.
[[nodiscard]] Result<std::string> fingerprint(const std::string& certificate);

}  // namespace gossamer::host
