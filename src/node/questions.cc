// SPDX-License-Identifier: Apache-2.0
#include "node/questions.h"

#include <gossamer/admission.pb.h>

#include <utility>
#include <variant>

#include "base/hex.h"
#include "base/node_name.h"
#include "cluster/admission/token_book.h"
#include "cluster/control/view.h"
#include "host/grpc/authority_fetch.h"
#include "host/grpc/certificates.h"
#include "node/admission/credentials.h"
#include "node/admission/enrolling.h"
#include "node/admission/random_text.h"
#include "node/places.h"

namespace gossamer::node {
namespace {

Result<AskOptions> prepared(const run::NodeHost& host, const host::Endpoint& at, const Asker& asker,
                            const char* method) {
  AskOptions options;
  options.at = at;
  options.question = {.method = method,
                      .body = {},
                      .timeout = asker.timeout,
                      .to = certificate_name(cluster::kCoordinatorNode)};
  if (!asker.token) {
    auto own = load_membership(host.disk, asker.directory, host.clock.wall_seconds());
    if (!own.ok()) return own.error();
    if (auto same = expect_run(at, own->credentials.authority, asker.timeout); !same.ok())
      return same.error();
    options.credentials = std::move(own->credentials);
    return options;
  }
  const auto token = cluster::decode_token(*asker.token);
  if (!token.ok()) return token.error();
  auto authority = host::fetch_authority(at, token->authority, asker.timeout);
  if (!authority.ok()) return authority.error();
  options.credentials.authority = std::move(*authority);
  wire::StatusRequest request;
  request.set_token(token->id);
  request.set_secret(token->secret);
  options.question.body = request.SerializeAsString();
  return options;
}

Error unreadable(std::string where, const char* method) {
  return {.kind = ErrorKind::kBadData,
          .where = std::move(where),
          .what = std::string("cannot read the question or the answer ") + method,
          .expected = "a message of docs/protocols/admission.md",
          .fix = "run the same version of gossamer on both sides"};
}

}  // namespace

Result<void> expect_run(const host::Endpoint& at, const std::string& authority, Duration timeout) {
  const auto fingerprint = host::fingerprint(authority);
  if (!fingerprint.ok()) return fingerprint.error();
  const auto served = host::fetch_authority(at, *fingerprint, timeout);
  return served.ok() ? Result<void>() : served.error();
}

Result<void> expect_answer(const host::Endpoint& at, Duration timeout) {
  const auto served = host::fetch_certificates(at, timeout);
  if (const auto* const failure = std::get_if<host::ContactFailure>(&served)) return failure->error;
  return {};
}

Result<std::string> make_token(const run::NodeHost& host, const std::string& directory,
                               const NewToken& wanted) {
  const auto certificate = load_authority(host.disk, directory);
  if (!certificate.ok()) return certificate.error();
  const auto authority = host::fingerprint(*certificate);
  if (!authority.ok()) return authority.error();
  const cluster::Token token{.at = wanted.at,
                             .id = to_hex(random_bytes(cluster::kTokenIdBytes)),
                             .secret = random_bytes(cluster::kSecretBytes),
                             .authority = *authority};
  const auto now = static_cast<std::int64_t>(host.clock.wall_seconds());
  cluster::TokenBook book(host.disk, directory + "/tokens");
  cluster::TokenRecord record = cluster::record_of(token, now, now + wanted.seconds, wanted.note);
  record.uses = wanted.uses;
  if (auto kept = book.add(record); !kept.ok()) return kept.error();
  return cluster::encode_token(token);
}

Result<std::string> ask_status(const run::NodeHost& host, const host::Endpoint& at, const Asker& asker) {
  const auto options = prepared(host, at, asker, kStatusMethod);
  if (!options.ok()) return options.error();
  return ask_once(*options);
}

Result<void> ask_stop(const run::NodeHost& host, const host::Endpoint& at, const Asker& asker) {
  const auto options = prepared(host, at, asker, kStopMethod);
  if (!options.ok()) return options.error();
  const auto answer = ask_once(*options);
  return answer.ok() ? Result<void>() : answer.error();
}

Result<ExpelOutcome> ask_expel(const run::NodeHost& host, const std::string& directory,
                               const ExpelWish& wish) {
  const auto address = load_address(host.disk, directory);
  if (!address.ok()) return address.error();
  wire::ExpelRequest request;
  for (const NodeId node : wish.nodes) request.add_nodes(node.value);
  request.set_token(wish.token);
  std::vector<host::Endpoint> coordinators{address->coordinator};
  coordinators.insert(coordinators.end(), address->others.begin(), address->others.end());
  std::optional<Error> why;
  for (const host::Endpoint& at : coordinators) {
    auto options = prepared(host, at, {.token = std::nullopt, .directory = directory}, kExpelMethod);
    if (!options.ok()) {
      why = options.error();
      continue;
    }
    options->question.body = request.SerializeAsString();
    const auto answer = ask_once(*options);
    wire::ExpelAnswer told;
    if (answer.ok() && told.ParseFromString(*answer)) {
      ExpelOutcome outcome;
      for (const std::uint64_t node : told.nodes()) outcome.nodes.emplace_back(node);
      for (const std::string& token : told.tokens()) outcome.tokens.push_back(token);
      return outcome;
    }
    why = answer.ok() ? unreadable(host::to_string(at), kExpelMethod) : answer.error();
    if (why->kind != ErrorKind::kFailed) return *why;  // another coordinator would say the same
  }
  return *why;
}

Result<ExpelWish> read_expel_question(const std::string& body) {
  wire::ExpelRequest request;
  if (!request.ParseFromString(body)) return unreadable({}, kExpelMethod);
  ExpelWish wish{.token = request.token()};
  for (const std::uint64_t node : request.nodes()) wish.nodes.emplace_back(node);
  return wish;
}

std::string expel_answer(const ExpelOutcome& outcome) {
  wire::ExpelAnswer answer;
  for (const NodeId node : outcome.nodes) answer.add_nodes(node.value);
  for (const std::string& token : outcome.tokens) answer.add_tokens(token);
  return answer.SerializeAsString();
}

Result<double> ask_clock(const host::Endpoint& at, const std::string& certificate, Duration timeout) {
  const auto answer = ask_once(
      {.at = at,
       .credentials = {.authority = certificate, .certificate = {}, .key = {}, .proof = host::Proof::kNone},
       .question = {.method = kClockMethod, .body = {}, .timeout = timeout}});
  if (!answer.ok()) return answer.error();
  wire::ClockAnswer clock;
  if (!clock.ParseFromString(*answer) || clock.milliseconds() <= 0) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = host::to_string(at),
                 .what = "cannot read the answer to Clock",
                 .expected = "a message of docs/protocols/admission.md"};
  }
  return static_cast<double>(clock.milliseconds()) / 1000;
}

std::string clock_answer(double now_seconds) {
  wire::ClockAnswer clock;
  clock.set_milliseconds(static_cast<std::int64_t>(now_seconds * 1000));
  return clock.SerializeAsString();
}

Result<StatusProof> read_status_question(const std::string& body) {
  wire::StatusRequest request;
  if (!request.ParseFromString(body)) {
    return Error{.kind = ErrorKind::kBadData,
                 .what = "cannot read the question Status",
                 .expected = "a message of docs/protocols/admission.md",
                 .fix = "run the same version of gossamer on both sides"};
  }
  return StatusProof{.id = request.token(), .secret = request.secret()};
}

}  // namespace gossamer::node
