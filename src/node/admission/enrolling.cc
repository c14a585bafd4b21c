// SPDX-License-Identifier: Apache-2.0
#include "node/admission/enrolling.h"

#include <memory>
#include <utility>
#include <variant>

#include "base/node_name.h"
#include "cluster/control/view.h"
#include "host/grpc/authority_fetch.h"
#include "host/posix/mailbox.h"
#include "net/link/frame.h"

namespace gossamer::node {

Result<std::string> ask_once(const AskOptions& options) {
  host::Mailbox<host::Answered> mailbox;
  const auto network = host::make_grpc_network(options.credentials, [&mailbox](host::NetworkEvent event) {
    if (auto* const answered = std::get_if<host::Answered>(&event)) mailbox.push(std::move(*answered));
  });
  static_cast<void>(network->ask(options.at, options.question));
  // Every question ends. This loop only looks again.
  for (;;) {
    auto answers = mailbox.wait(options.question.timeout);
    if (!answers.empty()) return std::move(answers.front().answer);
  }
}

namespace {

// The answer of a coordinator that leads, if it does so in time.
Result<std::string> ask_leader(const AskOptions& question, const EnrollOptions& options) {
  host::Mailbox<int> nothing_comes;
  auto answer = ask_once(question);
  for (int i = 0; i < options.asks_again && !answer.ok() && answer.error().what == cluster::kLeadsNotNow;
       ++i) {
    static_cast<void>(nothing_comes.wait(options.pause));
    answer = ask_once(question);
  }
  return answer;
}

}  // namespace

cluster::WireRange wire_range() { return {.least = net::kWireMin, .most = net::kWireMax}; }

Result<Membership> enroll(const EnrollOptions& options) {
  const cluster::Token& token = options.token;
  auto authority = host::fetch_authority(token.at, token.authority, options.timeout);
  if (!authority.ok()) return authority.error();
  auto own = host::make_request();
  if (!own.ok()) return own.error();
  const std::string request = cluster::enroll_request(
      {.token = token, .request = own->request, .wire = options.wire, .program = options.program});
  const auto answer = ask_leader({.at = token.at,
                                  .credentials = {.authority = *authority, .certificate = {}, .key = {}},
                                  .question = {.method = cluster::kEnrollMethod,
                                               .body = request,
                                               .timeout = options.timeout,
                                               .to = certificate_name(cluster::kCoordinatorNode)}},
                                 options);
  if (!answer.ok()) return answer.error();
  const auto bad = [&token](Error error) {
    error.where = to_string(token.at);
    return error;
  };
  auto enrolled = cluster::read_enroll_answer(*answer);
  if (!enrolled.ok()) return bad(enrolled.error());
  // The authority is the pinned one, whatever the answer says.
  auto membership = membership_of(
      {.authority = *authority, .certificate = enrolled->certificate, .key = own->key}, options.now_seconds);
  if (!membership.ok()) return bad(membership.error());
  if (membership->node != enrolled->node || membership->run != enrolled->run) {
    return bad({.kind = ErrorKind::kBadData,
                .what = "the certificate is not what the answer says",
                .got = certificate_name(membership->node) + " of run " + membership->run,
                .expected = certificate_name(enrolled->node) + " of run " + enrolled->run});
  }
  return membership;
}

cluster::Signer signer_of(host::KeyAndCertificate authority, const host::Validity& validity) {
  return [authority = std::move(authority), validity](const std::string& request, const std::string& name) {
    return host::sign_request(authority, request, name, validity);
  };
}

}  // namespace gossamer::node
