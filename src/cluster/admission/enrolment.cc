// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/enrolment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/node_name.h"

namespace gossamer::cluster {
namespace {

std::string range_text(std::uint32_t least, std::uint32_t most) {
  return least == most ? fmt::format("version {}", least) : fmt::format("versions {} to {}", least, most);
}

Error bad(std::string what) {
  return {.kind = ErrorKind::kBadData,
          .what = std::move(what),
          .fix = "look whether both programs are of the same version"};
}

}  // namespace

Result<wire::EnrollRequest> check_enroll(const std::string& body, const EnrollRules& rules) {
  const RunIdentity& run = rules.run;
  wire::EnrollRequest request;
  if (!request.ParseFromString(body)) return bad("cannot read the request to enrol");
  const bool in_common = request.wire_min() <= request.wire_max() && request.wire_min() <= run.wire.most &&
                         request.wire_max() >= run.wire.least;
  if (!in_common) {
    return Error{.kind = ErrorKind::kRefused,
                 .where = "the run",
                 .what = "speaks no wire version that this program does",
                 .got = range_text(request.wire_min(), request.wire_max()),
                 .expected = range_text(run.wire.least, run.wire.most),
                 .fix = "use the coordinator's version of the program"};
  }
  const auto record = rules.tokens.check(request.token(), request.secret(), rules.now);
  if (!record.ok()) return record.error();
  if (auto left = has_use_left(*record, rules.used(record->id)); !left.ok()) return left.error();
  return request;
}

Result<std::string> admit(const wire::EnrollRequest& request, NodeId node, const RunIdentity& run,
                          const Signer& signer) {
  auto certificate = signer(request.request(), certificate_name(node));
  if (!certificate.ok()) return certificate.error();
  wire::EnrollAnswer answer;
  answer.set_node(node.value);
  answer.set_certificate(*std::move(certificate));
  answer.set_authority(run.authority);
  answer.set_run(run.run);
  answer.set_wire(std::min(request.wire_max(), run.wire.most));
  return answer.SerializeAsString();
}

std::string enroll_request(const EnrollProof& proof) {
  wire::EnrollRequest request;
  request.set_token(proof.token.id);
  request.set_secret(proof.token.secret);
  request.set_request(proof.request);
  request.set_wire_min(proof.wire.least);
  request.set_wire_max(proof.wire.most);
  request.set_program(proof.program);
  return request.SerializeAsString();
}

Result<Enrolled> read_enroll_answer(const std::string& body) {
  wire::EnrollAnswer answer;
  if (!answer.ParseFromString(body)) return bad("cannot read the answer to Enroll");
  if (answer.node() == 0 || answer.run().empty() || answer.certificate().empty() ||
      answer.authority().empty())
    return bad("the answer to Enroll lacks something");
  return Enrolled{.node = NodeId{answer.node()},
                  .run = answer.run(),
                  .certificate = answer.certificate(),
                  .authority = answer.authority(),
                  .wire = answer.wire()};
}

std::string renew_request(const RenewProof& proof) {
  wire::RenewRequest message;
  message.set_request(proof.request);
  message.set_certificate(proof.certificate);
  return message.SerializeAsString();
}

Result<RenewProof> read_renew_request(const std::string& body) {
  wire::RenewRequest message;
  if (!message.ParseFromString(body)) return bad("cannot read the request to renew a certificate");
  return RenewProof{.request = message.request(), .certificate = message.certificate()};
}

Result<std::string> renew(const std::string& body, NodeId node, const Signer& signer) {
  const auto proof = read_renew_request(body);
  if (!proof.ok()) return proof.error();
  auto certificate = signer(proof->request, certificate_name(node));
  if (!certificate.ok()) return certificate.error();
  wire::RenewAnswer answer;
  answer.set_certificate(*std::move(certificate));
  return answer.SerializeAsString();
}

Result<std::string> read_renew_answer(const std::string& body) {
  wire::RenewAnswer answer;
  if (!answer.ParseFromString(body) || answer.certificate().empty())
    return bad("cannot read the answer to Renew");
  return answer.certificate();
}

}  // namespace gossamer::cluster
