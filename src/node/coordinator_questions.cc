// SPDX-License-Identifier: Apache-2.0
//
// The part of CoordinatorNode that answers questions of strangers, users and other coordinators.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/node_name.h"
#include "base/printable.h"
#include "cluster/admission/enrolment.h"
#include "host/grpc/certificates.h"
#include "node/admission/enrolling.h"
#include "node/admission/returning.h"
#include "node/cluster_status.h"
#include "node/coordinator_node.h"
#include "node/questions.h"
#include "node/shared_tokens.h"

namespace gossamer::node {
namespace {

constexpr std::size_t kMostEarly = 1024;
constexpr std::size_t kMostEarlyBytes = std::size_t{4} << 20;

// Whether a question needs no certificate: its answer is public, or it carries a proof of its own.
bool is_for_strangers(const std::string& method) {
  return method == kClockMethod || method == kStatusMethod || method == cluster::kEnrollMethod ||
         method == cluster::kRenewMethod;
}

}  // namespace

// Keeps a question for later. Members ask as soon as they see the port, and the
// store may take a moment longer.
void CoordinatorNode::ask_again_later(const host::Asked& asked) {
  std::size_t bytes = asked.body.size();
  for (const host::Asked& one : early_) bytes += one.body.size();
  const bool room = early_.size() < kMostEarly && bytes <= kMostEarlyBytes;
  if (!room || store_fails_) {
    return network_->answer(
        asked.question,
        Error{.what = "the coordinator cannot begin yet",
              .got = store_fails_ ? "its store fails: " + store_fails_->second : "too many questions at once",
              .fix = "try again in a moment"});
  }
  early_.push_back(asked);
}

void CoordinatorNode::answer_early_questions() {
  if (process_->beginning() && !store_fails_) return;
  for (const host::Asked& asked : std::exchange(early_, {})) on_asked(asked);
}

void CoordinatorNode::on_asked(const host::Asked& asked) {
  if (asked.peer.certificate.empty() && !is_for_strangers(asked.method)) {
    return network_->answer(asked.question, Error{.kind = ErrorKind::kRefused,
                                                  .what = "this question needs a certificate of the run",
                                                  .got = asked.method,
                                                  .fix = "join with a token of this run"});
  }
  if (asked.method == kClockMethod)
    return network_->answer(asked.question, clock_answer(host_.clock.wall_seconds()));
  if (process_->beginning()) return ask_again_later(asked);
  const bool ours = asked.method == cluster::kEnrollMethod || asked.method == kStatusMethod ||
                    asked.method == kStopMethod || asked.method == kTokensMethod ||
                    asked.method == kExpelMethod || asked.method == cluster::kRenewMethod;
  if (!ours) return process_->on(asked, loop_.now());
  if (process_->coordinator() == nullptr) return on_standby(asked);
  const auto node = certified_node(asked.peer.certificate);
  if (node && process_->coordinator()->expelled(*node))
    return network_->answer(asked.question, cluster::expelled_error(*node));
  share_tokens_once();
  if (asked.method == cluster::kEnrollMethod) return on_enroll(asked);
  if (asked.method == kStatusMethod) return on_status(asked);
  if (asked.method == kTokensMethod) return on_tokens(asked);
  if (asked.method == kExpelMethod) return on_expel(asked);
  if (asked.method == cluster::kRenewMethod) return on_renew(asked);
  on_stop(asked);
}

void CoordinatorNode::on_standby(const host::Asked& asked) {
  std::string others;
  for (const host::Endpoint& other : options_.standbys)
    others += (others.empty() ? "" : ", ") + host::to_string(other);
  network_->answer(asked.question, Error{.what = std::string(cluster::kLeadsNotNow),
                                         .fix = others.empty() ? "try again in a moment"
                                                               : "try again in a moment, or ask " + others});
}

void CoordinatorNode::on_enroll(const host::Asked& asked) {
  if (auto known = knows_tokens(); !known.ok()) return network_->answer(asked.question, known.error());
  const cluster::RunIdentity identity{
      .run = credentials_.own.run, .authority = credentials_.authority.certificate, .wire = wire_range()};
  const auto now = static_cast<std::int64_t>(host_.clock.wall_seconds());
  const auto request = cluster::check_enroll(
      asked.body, {.run = identity, .tokens = tokens_, .now = now, .used = [this](const std::string& token) {
                     return process_->coordinator()->admitted().let_in_by(token);
                   }});
  // A number is a row in the store for ever, so it is given for nothing that cannot be signed.
  const auto good = request.ok() ? host::check_request(request->request()) : Result<void>(request.error());
  if (!good.ok()) {
    log_.refusal(asked.from, good.error(), epoch(), loop_.now());
    return network_->answer(asked.question, good.error());
  }
  process_->coordinator()->give_node(
      request->token(), now, [this, identity, request = *request, question = asked.question](NodeId node) {
        const auto signer = signer_of(credentials_.authority, validity());
        const auto admitted = cluster::admit(request, node, identity, signer);
        log(admitted.ok() ? "enrolled" : "enrol_refused", {node, {}},
            admitted.ok() ? "with token " + request.token() : admitted.error().message());
        network_->answer(question, admitted);
      });
}

Result<void> CoordinatorNode::may_see(const host::Asked& asked) {
  if (!asked.peer.certificate.empty()) return {};
  if (auto known = knows_tokens(); !known.ok()) return known;
  const auto proof = read_status_question(asked.body);
  if (!proof.ok()) return proof.error();
  const auto now = static_cast<std::int64_t>(host_.clock.wall_seconds());
  const auto record = tokens_.check(proof->id, proof->secret, now);
  return record.ok() ? Result<void>() : record.error();
}

void CoordinatorNode::on_status(const host::Asked& asked) {
  if (auto allowed = may_see(asked); !allowed.ok()) return network_->answer(asked.question, allowed.error());
  StatusFacts facts{.run = credentials_.own.run,
                    .program = options_.program,
                    .time = host_.clock.wall_seconds(),
                    .alarms = {},
                    .steps = options_.steps,
                    .steps_per_second = rate_.steps_per_second()};
  if (store_fails_) facts.alarms.push_back("the store fails: " + store_fails_->second);
  if (log_.first_error()) facts.alarms.push_back("events are lost: " + log_.first_error()->message());
  network_->answer(asked.question, status_json(*process_->coordinator(), facts, loop_.now()));
}

void CoordinatorNode::on_stop(const host::Asked& asked) {
  if (asked.peer.certificate != certificate_name(cluster::kCoordinatorNode)) {
    return network_->answer(asked.question, Error{.kind = ErrorKind::kRefused,
                                                  .what = "only the run's own directory may stop it",
                                                  .got = asked.peer.certificate,
                                                  .fix = "run 'gossamer stop' on the coordinator's machine"});
  }
  process_->coordinator()->stop(
      "somebody ran 'gossamer stop'", loop_.now(),
      [this, question = asked.question] { network_->answer(question, std::string()); });
}

// The name is that of the certificate which the asker has shown, whatever its request says. A stranger has
// shown none, and sends one that has ended.
Result<NodeId> CoordinatorNode::renewing_node(const host::Asked& asked) const {
  const cluster::Coordinator& coordinator = *process_->coordinator();
  if (asked.peer.certificate.empty()) {
    return check_return(asked.body,
                        {.authority = credentials_.authority.certificate,
                         .now_seconds = host_.clock.wall_seconds(),
                         .knows = [&coordinator](NodeId node) { return coordinator.knows(node); },
                         .expelled = [&coordinator](NodeId node) { return coordinator.expelled(node); }});
  }
  const auto node = certified_node(asked.peer.certificate);
  if (node && *node != cluster::kCoordinatorNode) return *node;
  return Error{.kind = ErrorKind::kRefused,
               .what = "only a node's certificate is renewed",
               .got = asked.peer.certificate,
               .expected = "node-N"};
}

void CoordinatorNode::on_renew(const host::Asked& asked) {
  const bool stranger = asked.peer.certificate.empty();
  const auto node = renewing_node(asked);
  if (!node.ok()) {
    if (stranger) log_.refusal(asked.from, node.error(), epoch(), loop_.now());
    return network_->answer(asked.question, node.error());
  }
  const Duration apart = RenewalRate::apart(static_cast<double>(options_.certificate_seconds),
                                            stranger ? host::Ended::kAccepted : host::Ended::kRefused);
  if (!credentials_.of_members.take(*node, apart, loop_.now())) {
    return network_->answer(asked.question, Error{.where = certificate_name(*node),
                                                  .what = "this node has just renewed its certificate",
                                                  .fix = "ask again later"});
  }
  auto renewed = cluster::renew(asked.body, *node, signer_of(credentials_.authority, validity()));
  if (renewed.ok())
    log("renewed", {*node, {}}, stranger ? "its certificate, which had ended" : "its certificate");
  network_->answer(asked.question, std::move(renewed));
}

// The nodes that a wish means. Numbers that no node has are refused: a later node would get one.
Result<std::vector<NodeId>> CoordinatorNode::meant(const ExpelWish& wish) const {
  const cluster::Coordinator& coordinator = *process_->coordinator();
  const auto refused = [](std::string what, std::string got) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "node expel",
                 .what = std::move(what),
                 .got = std::move(got),
                 .expected = "what 'gossamer status' or 'gossamer token list' shows"};
  };
  for (const NodeId node : wish.nodes) {
    if (!coordinator.knows(node)) return refused("no node has this number", fmt::format("{}", node.value));
  }
  if (wish.token.empty()) return wish.nodes;
  std::vector<NodeId> nodes = coordinator.admitted().nodes_of(wish.token);
  if (nodes.empty()) return refused("no token of this id has let in a node", printable(wish.token));
  return nodes;
}

// The token goes with its nodes: with it, an expelled machine would come back as another node.
void CoordinatorNode::on_expel(const host::Asked& asked) {
  if (asked.peer.certificate != certificate_name(cluster::kCoordinatorNode)) {
    return network_->answer(asked.question,
                            Error{.kind = ErrorKind::kRefused,
                                  .what = "only the run's own directory may expel nodes",
                                  .got = asked.peer.certificate,
                                  .fix = "run 'gossamer node expel' on the coordinator's machine"});
  }
  const auto wish = read_expel_question(asked.body);
  const auto nodes = wish.ok() ? meant(*wish) : Result<std::vector<NodeId>>(wish.error());
  if (!nodes.ok()) return network_->answer(asked.question, nodes.error());
  cluster::Coordinator& coordinator = *process_->coordinator();
  ExpelOutcome outcome{.nodes = *nodes, .tokens = {}};
  std::set<std::string> tokens;
  for (const NodeId node : *nodes) tokens.insert(coordinator.admitted().token_of(node));
  const auto now = static_cast<std::int64_t>(host_.clock.wall_seconds());
  for (const std::string& token : tokens) {
    const auto revoked = tokens_.revoke(token, now);
    const auto why = revoked.ok() ? std::nullopt : std::optional(revoked.error().kind);
    // A record that is gone or damaged lets nobody in. The store of several coordinators may have a good one.
    if (why == ErrorKind::kUsage || (why == ErrorKind::kBadData && !own_.shared)) continue;
    if (!revoked.ok()) return network_->answer(asked.question, revoked.error());
    if (own_.shared) coordinator.keep_token(token, cluster::to_text(*revoked));
    outcome.tokens.push_back(token);
  }
  coordinator.expel(*nodes, loop_.now(), [this, question = asked.question, outcome] {
    network_->answer(question, expel_answer(outcome));
  });
}

void CoordinatorNode::on_tokens(const host::Asked& asked) {
  if (asked.peer.certificate != certificate_name(cluster::kCoordinatorNode) || !own_.shared) {
    return network_->answer(asked.question,
                            Error{.kind = ErrorKind::kRefused,
                                  .what = "tokens are told to other coordinators of this store alone",
                                  .got = asked.peer.certificate});
  }
  answer_tokens(tokens_, *process_->coordinator(), asked.body,
                static_cast<std::int64_t>(host_.clock.wall_seconds()),
                [this, question = asked.question](Result<std::string> answer) {
                  network_->answer(question, std::move(answer));
                });
}

// Shares tokens once in each lead, before a stranger is answered, and also when no question
// comes, so that the store has them.
void CoordinatorNode::share_tokens_once() {
  if (!own_.shared) return;
  const TokenShare::Lead lead{.generation = process_->generation(),
                              .wall_seconds = static_cast<std::int64_t>(host_.clock.wall_seconds()),
                              .now = loop_.now()};
  for (const Error& error : token_share_.share(tokens_, *process_->coordinator(), lead))
    remark(LogLevel::kWarning, error.message());
}

Result<void> CoordinatorNode::knows_tokens() const {
  return own_.shared ? token_share_.shared(process_->generation()) : Result<void>();
}

}  // namespace gossamer::node
