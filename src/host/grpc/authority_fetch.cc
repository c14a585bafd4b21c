// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/authority_fetch.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "host/grpc/certificates.h"
#include "host/posix/door/contact.h"
#include "host/posix/door/openssl.h"
#include "host/posix/door/stranger_talk.h"
#include "host/system/addresses.h"

namespace gossamer::host {
namespace {

// 0 for a time that cannot be read.
double seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<double>(timegm(&parts)) : 0;
}

ServedCertificates served_in(const SSL* session) {
  ServedCertificates served;
  const STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(session);
  for (int i = 0; i < sk_X509_num(chain); ++i) {  // a null chain has -1
    X509* const certificate = sk_X509_value(chain, i);
    served.push_back({.pem = pem_of(certificate),
                      .fingerprint = fingerprint_of(certificate),
                      .valid_from = seconds_of(X509_get0_notBefore(certificate)),
                      .valid_until = seconds_of(X509_get0_notAfter(certificate))});
  }
  return served;
}

// The fingerprint is the proof; there is nothing to verify against yet.
const NetworkCredentials& no_proof() {
  static const NetworkCredentials none{.authority = {}, .certificate = {}, .key = {}, .proof = Proof::kNone};
  return none;
}

Result<ServedCertificates> take_certificates(const Endpoint& from, Descriptor socket,
                                             const Deadline& deadline) {
  const auto context = stranger_context(no_proof());
  if (!context.ok()) return context.error();
  StrangerTalk talk(context->get(), std::move(socket), {.at = from});
  if (auto shaken = talk.shake_hands(deadline); !shaken.ok()) return shaken.error();
  ServedCertificates served = served_in(talk.ssl());
  if (!served.empty()) return served;
  return Error{.where = to_string(from),
               .what = "no TLS there",
               .got = "a server without a certificate",
               .fix = "look whether host and port are the coordinator's, and whether the run uses TLS"};
}

}  // namespace

std::variant<ServedCertificates, ContactFailure> fetch_certificates(const Endpoint& from, Duration timeout) {
  const Deadline deadline(timeout);
  const Result<Addresses> addresses = addresses_of(from, AddressUse::kReach);
  if (!addresses.ok()) return ContactFailure{ContactStep::kName, addresses.error()};
  Result<Descriptor> socket = connect_to(from, *addresses, deadline);
  if (!socket.ok()) return ContactFailure{ContactStep::kPort, socket.error()};
  const Result<ServedCertificates> served = take_certificates(from, *std::move(socket), deadline);
  if (!served.ok()) return ContactFailure{ContactStep::kTls, served.error()};
  return *served;
}

Result<std::string> authority_among(const ServedCertificates& served, const std::string& fingerprint,
                                    const Endpoint& from) {
  const auto found = std::ranges::find(served, fingerprint, &ServedCertificate::fingerprint);
  if (found != served.end()) return found->pem;
  return Error{.kind = ErrorKind::kRefused,
               .where = to_string(from),
               .what = "the server is of another run",
               .got = "an authority with the fingerprint " + served.back().fingerprint,
               .expected = fingerprint,
               .fix = "use a token of the run that is served there, or the address of the token's run"};
}

Result<std::string> fetch_authority(const Endpoint& from, const std::string& fingerprint, Duration timeout) {
  const auto served = fetch_certificates(from, timeout);
  if (const auto* const failure = std::get_if<ContactFailure>(&served)) return failure->error;
  return authority_among(std::get<ServedCertificates>(served), fingerprint, from);
}

}  // namespace gossamer::host
