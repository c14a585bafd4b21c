// SPDX-License-Identifier: Apache-2.0
//
// The first contact of a stranger with a server: it fetches the certificates that the server sends, before
// anything is trusted. The one with a token's fingerprint is the certificate authority of the run that is
// served there. Only with that one does a stranger ask the server a question, verified as usual
// (docs/protocols/admission.md, "Enrolling").
//
// Blocks; except in the look-up of a name, never beyond the time-out. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "host/api/endpoint.h"

namespace gossamer::host {

// A certificate as the server sent it: nothing of it is proven.
struct ServedCertificate {
  std::string pem;
  std::string fingerprint;  // certificates.h
  double valid_from = 0;    // seconds since 1970-01-01 UTC; the clock of this machine has no part in it
  double valid_until = 0;   // the last second
};

// The step that failed: the name is not found, nobody answers at the port, or the answerer speaks no TLS. All
// are kFailed, and `where` is the endpoint.
enum class ContactStep : std::uint8_t { kName, kPort, kTls };
struct ContactFailure {
  ContactStep step = ContactStep::kName;
  Error error;
};
// At least one certificate, the server's own first.
using ServedCertificates = std::vector<ServedCertificate>;

// Connects with TLS and verifies nothing; gives the certificates that came.
[[nodiscard]] std::variant<ServedCertificates, ContactFailure> fetch_certificates(const Endpoint& from,
                                                                                  Duration timeout);

// The certificate with that fingerprint among those served at `from`, as PEM. kRefused: the server belongs to
// another run.
[[nodiscard]] Result<std::string> authority_among(const ServedCertificates& served,
                                                  const std::string& fingerprint, const Endpoint& from);

// fetch_certificates(), then authority_among().
[[nodiscard]] Result<std::string> fetch_authority(const Endpoint& from, const std::string& fingerprint,
                                                  Duration timeout);

}  // namespace gossamer::host
