// SPDX-License-Identifier: Apache-2.0
#include "node/admission/returning.h"

#include <optional>
#include <utility>

#include "base/node_name.h"
#include "base/printable.h"
#include "cluster/admission/enrolment.h"
#include "cluster/control/view.h"
#include "host/grpc/certificates.h"
#include "node/admission/enrolling.h"

namespace gossamer::node {
namespace {

constexpr const char* kNeedsToken =
    "join again with a token: on the coordinator's machine: gossamer token create DIR";

Error refused(std::string what, std::string got, std::string expected) {
  return {.kind = ErrorKind::kRefused,
          .what = std::move(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = kNeedsToken};
}

}  // namespace

Result<ReturnQuestion> return_question(const Membership& membership, Duration timeout) {
  const host::NetworkCredentials& own = membership.credentials;
  const auto request = host::request_for(own.key);
  if (!request.ok()) return request.error();
  return ReturnQuestion{
      .as_stranger = {.authority = own.authority, .certificate = {}, .key = {}},
      .question = {.method = cluster::kRenewMethod,
                   .body = cluster::renew_request({.request = *request, .certificate = own.certificate}),
                   .timeout = timeout,
                   .to = certificate_name(cluster::kCoordinatorNode)}};
}

Result<Membership> with_renewed(const Membership& before, const std::string& answer, double now_seconds) {
  auto certificate = cluster::read_renew_answer(answer);
  if (!certificate.ok()) return certificate.error();
  host::NetworkCredentials credentials = before.credentials;
  credentials.certificate = *std::move(certificate);
  auto renewed = membership_of(std::move(credentials), now_seconds);
  if (!renewed.ok() || renewed->node == before.node) return renewed;
  return Error{.kind = ErrorKind::kBadData,
               .what = "the new certificate is of another node",
               .got = certificate_name(renewed->node),
               .expected = certificate_name(before.node)};
}

Result<Membership> come_back(const Membership& membership, const ReturnOptions& options) {
  auto asked = return_question(membership, options.timeout);
  if (!asked.ok()) return asked.error();
  const auto answer = ask_once({.at = options.at,
                                .credentials = std::move(asked->as_stranger),
                                .question = std::move(asked->question)});
  if (!answer.ok()) return answer.error();
  auto renewed = with_renewed(membership, *answer, options.now_seconds);
  if (renewed.ok()) return renewed;
  Error error = renewed.error();
  error.where = host::to_string(options.at);
  if (error.kind == ErrorKind::kRefused) {  // by this machine's clock, not by the run
    error.kind = ErrorKind::kFailed;
    error.fix = "look at the clocks of both machines";
  }
  return error;
}

Result<NodeId> check_return(const std::string& body, const ReturnRules& rules) {
  const auto proof = cluster::read_renew_request(body);
  if (!proof.ok()) return proof.error();
  if (proof->certificate.empty()) {
    return refused("this question needs a certificate of the run", "none",
                   "the one of a node that was here before");
  }
  const auto name = host::check_key_proof(
      {.authority = rules.authority, .certificate = proof->certificate, .request = proof->request},
      rules.now_seconds);
  if (!name.ok()) {
    Error error = name.error();
    if (error.kind == ErrorKind::kRefused || error.kind == ErrorKind::kFailed)
      error.fix = std::string("look at the clocks of both machines, or ") + kNeedsToken;
    return error;
  }
  const auto node = certified_node(*name);
  if (!node || *node == cluster::kCoordinatorNode)
    return refused("only a node's certificate is renewed", printable(*name), "node-N");
  if (rules.expelled(*node)) return cluster::expelled_error(*node);
  if (!rules.knows(*node))
    return refused("the run does not know this node", *name, "a number that the run has given");
  return *node;
}

}  // namespace gossamer::node
