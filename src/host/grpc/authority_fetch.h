// SPDX-License-Identifier: Apache-2.0
//
// What a stranger learns of a server before anything is trusted: the certificates that it sends. The one with
// a token's fingerprint is the certificate authority of the run that is served there; with it, and only then,
// a stranger speaks gRPC to them, verified as usual (docs/protocols/admission.md, "Enrolling").
//
// Blocks, but for the look-up of a name never beyond the time-out. Thread rule: any thread. A program that
// uses this ignores SIGPIPE.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "host/api/endpoint.h"

namespace gossamer::host {

// As the server sent it: nothing of it is proven.
struct ServedCertificate {
  std::string pem;
  std::string fingerprint;  // certificates.h
  double valid_from = 0;    // seconds since 1970-01-01 UTC; the clock of this machine has no part in it
  double valid_until = 0;   // the last one
};

// What failed: the name is not found, nobody answers at the port, whoever answers speaks no TLS. All kFailed,
// and `where` is the endpoint.
enum class ContactStep : std::uint8_t { kName, kPort, kTls };
struct ContactFailure {
  ContactStep step = ContactStep::kName;
  Error error;
};
// The server's own first; at least one.
using ServedCertificates = std::vector<ServedCertificate>;

// Connects with TLS and verifies nothing.
[[nodiscard]] std::variant<ServedCertificates, ContactFailure> fetch_certificates(const Endpoint& from,
                                                                                  Duration timeout);

// The one with that fingerprint among those served at `from`; PEM. kRefused: the server is of another run.
[[nodiscard]] Result<std::string> authority_among(const ServedCertificates& served,
                                                  const std::string& fingerprint, const Endpoint& from);

// Both in turn.
[[nodiscard]] Result<std::string> fetch_authority(const Endpoint& from, const std::string& fingerprint,
                                                  Duration timeout);

}  // namespace gossamer::host
