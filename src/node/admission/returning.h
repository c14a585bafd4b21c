// SPDX-License-Identifier: Apache-2.0
//
// Returning: how a node gets another certificate once its own has ended (docs/protocols/admission.md, "After
// its end"). It asks Renew as a stranger. Its proof is the ended certificate, with a request that the key of
// this certificate has signed. Both ends of the question are here.
//
// Times are seconds since 1970-01-01 UTC, by the clock of the process that calls. Thread rule: one thread.
// A program that uses this ignores SIGPIPE.
#pragma once

#include <functional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "host/api/endpoint.h"
#include "host/api/network.h"
#include "node/admission/credentials.h"

namespace gossamer::node {

// The question, for the run's coordinators alone, and the credentials of a stranger that asks it. kBadData
// for a key that is none.
struct ReturnQuestion {
  host::NetworkCredentials as_stranger;
  host::Question question;
};
[[nodiscard]] Result<ReturnQuestion> return_question(const Membership& membership, Duration timeout);

// The membership with the certificate that an answer to Renew has, of either way to ask. It is for the same
// node, run and key, and holds now. kBadData for an answer that is not so, and kRefused for a certificate
// that does not hold by this machine's clock.
[[nodiscard]] Result<Membership> with_renewed(const Membership& before, const std::string& answer,
                                              double now_seconds);

// Asks one coordinator, and blocks for `timeout` at most. The new membership is not kept yet. kRefused: the
// run's coordinator says no, and would say it again.
struct ReturnOptions {
  host::Endpoint at;
  Duration timeout = from_seconds(5);
  double now_seconds = 0;
};
[[nodiscard]] Result<Membership> come_back(const Membership& membership, const ReturnOptions& options);

// What the coordinator knows. `authority` is PEM.
struct ReturnRules {
  const std::string& authority;
  double now_seconds = 0;
  std::function<bool(NodeId)> knows;     // whether the run has given this number
  std::function<bool(NodeId)> expelled;  // from the run
};
// The coordinator's half: the node that the body of Renew proves. Its certificate may have ended at any time
// since it was signed; the authority's own end bounds that. kRefused: the proof does not hold, or the run
// does not have the node. kBadData: the body cannot be read.
[[nodiscard]] Result<NodeId> check_return(const std::string& body, const ReturnRules& rules);

}  // namespace gossamer::node
