// SPDX-License-Identifier: Apache-2.0
//
// What a token's fingerprint is good for: the certificate authority of the run that somebody serves, before
// anything is trusted. With it, and only then, a stranger speaks gRPC to them, verified as usual
// (docs/protocols/admission.md, "Enrolling").
//
// Blocks, but for the look-up of a name never beyond the time-out. Thread rule: any thread. A program that
// uses this ignores SIGPIPE.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "host/api/endpoint.h"

namespace gossamer::host {

// Connects with TLS, verifies nothing, and takes the certificate with that `fingerprint` (certificates.h)
// from those that the server sends; PEM. `where` of each error is the endpoint, and `what` says how far it
// came:
//   cannot find the name | cannot connect | no TLS there | the server is of another run (kRefused).
[[nodiscard]] Result<std::string> fetch_authority(const Endpoint& from, const std::string& fingerprint,
                                                  Duration timeout);

}  // namespace gossamer::host
