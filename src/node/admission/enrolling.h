// SPDX-License-Identifier: Apache-2.0
//
// Enrolling turns a token into a membership (docs/protocols/admission.md, "Enrolling"). It
// blocks for a handful of round trips.
//
// Thread rule: one thread. A network of its own lives while it runs. A program
// that uses this ignores SIGPIPE.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cluster/admission/enrolment.h"
#include "node/admission/credentials.h"

namespace gossamer::node {

// The wire versions that this program speaks.
[[nodiscard]] cluster::WireRange wire_range();

struct EnrollOptions {
  cluster::Token token;
  cluster::WireRange wire;
  std::string program;                  // for people: name and version
  Duration timeout = from_seconds(20);  // for each of the two connections
  double now_seconds = 0;               // since 1970-01-01 UTC
  // A coordinator that does not lead now is asked again so often, after this pause: its store may be slow.
  int asks_again = 10;
  Duration pause = from_seconds(1);
};

// Makes a new key, which the run of the token certifies. The membership is checked but not yet kept.
// kRefused (another run, the token is not accepted, versions) means that trying again does not help.
// After other errors it may help.
[[nodiscard]] Result<Membership> enroll(const EnrollOptions& options);

// Asks one question and waits for its end. Without a certificate in the credentials it asks as a stranger.
struct AskOptions {
  host::Endpoint at;
  host::NetworkCredentials credentials;
  host::Question question;
};
[[nodiscard]] Result<std::string> ask_once(const AskOptions& options);

// The run's authority as a signer for cluster::admit().
[[nodiscard]] cluster::Signer signer_of(host::KeyAndCertificate authority, const host::Validity& validity);

}  // namespace gossamer::node
