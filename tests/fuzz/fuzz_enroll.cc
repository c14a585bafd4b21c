// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a request to enrol, as one to renew a certificate and as their answers, before a book with one
// good token. No stranger without its secret gets in. Errors are refusals or bad data. The good stranger
// still gets in afterwards.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "cluster/admission/enrolment.h"
#include "host/sim/disk.h"

namespace {

using namespace gossamer;

constexpr std::int64_t kNow = 1'800'000'000;

const cluster::Token& good_token() {
  static const cluster::Token token{.at = {"host", 1},
                                    .id = std::string(16, 'a'),
                                    .secret = "the secret of one good token ...",
                                    .authority = std::string(64, 'f')};
  return token;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  host::SimDisk disk{{}};
  cluster::TokenBook book(disk, "tokens");
  CHECK(book.add(cluster::record_of(good_token(), kNow, kNow + 60, "")).ok());
  const cluster::RunIdentity run{.run = "run", .authority = "authority", .wire = {.least = 1, .most = 2}};
  const auto signer = [](const std::string& request, const std::string& name) {
    return Result<std::string>(name + request);
  };
  const cluster::EnrollRules rules{
      .run = run, .tokens = book, .now = kNow, .used = [](const std::string&) { return 0; }};
  const auto request = cluster::check_enroll(bytes, rules);
  if (request.ok()) {
    CHECK(request->token() == good_token().id && request->secret() == good_token().secret);
    const auto answer = cluster::admit(*request, NodeId{7}, run, signer);
    CHECK(answer.ok());
    const auto read = cluster::read_enroll_answer(*answer);
    CHECK(read.ok());
    CHECK(read->node == NodeId{7} && read->wire >= run.wire.least && read->wire <= run.wire.most);
  } else {
    CHECK(request.error().kind == ErrorKind::kRefused || request.error().kind == ErrorKind::kBadData);
  }
  const auto answer = cluster::read_enroll_answer(bytes);
  if (answer.ok()) CHECK(answer->node.value != 0 && !answer->certificate.empty());
  const auto renewal = cluster::read_renew_request(bytes);
  if (renewal.ok()) {
    const auto again = cluster::read_renew_request(cluster::renew_request(*renewal));
    CHECK(again.ok());
    CHECK(again->request == renewal->request && again->certificate == renewal->certificate);
    const auto renewed = cluster::renew(bytes, NodeId{7}, signer);
    CHECK(renewed.ok());
    CHECK(*cluster::read_renew_answer(*renewed) == "node-7" + renewal->request);
  } else {
    CHECK(renewal.error().kind == ErrorKind::kBadData);
  }
  const std::string proof =
      cluster::enroll_request({.token = good_token(), .request = "r", .wire = run.wire, .program = "p"});
  CHECK(cluster::check_enroll(proof, rules).ok());
  return 0;
}
