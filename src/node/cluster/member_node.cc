// SPDX-License-Identifier: Apache-2.0
#include "node/cluster/member_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/admission/token.h"
#include "host/grpc/certificates.h"
#include "host/grpc/network.h"
#include "net/wire/frame.h"
#include "node/cluster/cluster_status.h"
#include "node/cluster/enrolling.h"
#include "node/cluster/places.h"
#include "node/cluster/questions.h"
#include "node/cluster/random_text.h"

namespace gossamer::node {
namespace {

constexpr Duration kDrainTime{120'000'000'000};
constexpr Duration kLookTime{5'000'000'000};

}  // namespace

MemberNode::MemberNode(const NodeHost& host, MemberOptions options)
    : host_(host),
      options_(std::move(options)),
      log_(host.disk, host.clock, {.metrics = {}, .events = options_.directory.path + "/events.jsonl"}),
      loop_(host.clock) {}

MemberNode::~MemberNode() { network_.reset(); }

Result<std::unique_ptr<MemberNode>> MemberNode::start(const NodeHost& host, MemberOptions options,
                                                      const MakeEngine& make_engine) {
  std::unique_ptr<MemberNode> node(new MemberNode(host, std::move(options)));
  if (auto prepared = node->prepare(); !prepared.ok()) return prepared.error();
  if (auto listens = node->listen(make_engine); !listens.ok()) return listens.error();
  return node;
}

Result<void> MemberNode::prepare() {
  const std::string& directory = options_.directory.path;
  std::optional<cluster::Token> token;
  if (options_.token) {
    auto decoded = cluster::decode_token(*options_.token);
    if (!decoded.ok()) {
      Error error = decoded.error();
      error.where = "--token";
      return error;
    }
    token = std::move(*decoded);
    token->at = options_.coordinator;
  }
  const auto known = has_membership(host_.disk, directory);
  if (!known.ok()) return known.error();
  auto become = *known ? resume(token) : enroll_with(token);
  if (!become.ok()) return become;
  return keep_address(host_.disk, directory, {.coordinator = options_.coordinator});
}

Result<void> MemberNode::resume(const std::optional<cluster::Token>& token) {
  const std::string& directory = options_.directory.path;
  auto kept = load_membership(host_.disk, directory, host_.clock.wall_seconds());
  if (!kept.ok()) return kept.error();
  const std::string& authority = (*kept).credentials.authority;
  const auto fingerprint = host::fingerprint(authority);
  if (!fingerprint.ok()) return fingerprint.error();
  if (token && token->authority != *fingerprint) {
    return Error{.kind = ErrorKind::kRefused,
                 .where = directory,
                 .what = "this node is of another run than the token",
                 .got = "credentials of run " + (*kept).run,
                 .expected = "credentials of the token's run, or none",
                 .fix = "give --dir another directory"};
  }
  const auto served = expect_run(options_.coordinator, authority, kLookTime);
  if (!served.ok() && served.error().kind == ErrorKind::kRefused) return served;
  if (!served.ok()) host_.say(fmt::format("{}; trying on", served.error().message()));
  membership_ = std::move(*kept);
  return {};
}

Result<void> MemberNode::enroll_with(const std::optional<cluster::Token>& token) {
  const std::string& directory = options_.directory.path;
  if (!token) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--token",
                 .what = "this machine is not a node of the run yet",
                 .got = "no token, and no credentials in " + directory,
                 .expected = "the token that the coordinator printed",
                 .fix = "on the coordinator's machine: gossamer token create DIR"};
  }
  auto enrolled = enroll({.token = *token,
                          .wire = {net::kWireMin, net::kWireMax},
                          .program = options_.program,
                          .now_seconds = host_.clock.wall_seconds()});
  if (!enrolled.ok()) return enrolled.error();
  if (auto kept = keep_membership(host_.disk, directory, *enrolled); !kept.ok()) return kept;
  membership_ = std::move(*enrolled);
  return {};
}

Result<void> MemberNode::listen(const MakeEngine& make_engine) {
  network_ = host::make_grpc_network(membership_.credentials, [this](host::NetworkEvent event) {
    loop_.post([this, event = std::move(event)]() mutable { on_network(std::move(event)); });
  });
  cluster::MemberProcess::Options process;
  if (!options_.advertise.empty()) {
    const auto control = network_->listen(options_.listen, host::Lane::kControl);
    if (!control.ok()) return control.error();
    host::Endpoint bulk_at = options_.listen;
    if (bulk_at.port != 0) ++bulk_at.port;
    const auto bulk = network_->listen(bulk_at, host::Lane::kBulk);
    if (!bulk.ok()) return bulk.error();
    process.listening = cluster::listening_of({.node = membership_.node,
                                               .control = {options_.advertise, control->port},
                                               .bulk = {options_.advertise, bulk->port}});
  }
  process.run = membership_.run;
  process.name = options_.name;
  process.coordinators = {options_.coordinator};
  process.memory_bytes = options_.memory_bytes;
  process.cores = options_.cores;
  process.program = options_.program;
  process.seed = random_seed();
  process_ = std::make_unique<cluster::MemberProcess>(std::move(process), *network_, loop_.now());
  engine_ = make_engine(*process_);
  return {};
}

void MemberNode::on_network(host::NetworkEvent event) { process_->on(std::move(event), loop_.now()); }

void MemberNode::log(const std::string& kind, const std::string& text) {
  cluster::Member* const member = process_->member();
  log_.event(kind, {{"run", membership_.run},
                    {"epoch", member == nullptr ? 0 : member->view().epoch().value},
                    {"node", membership_.node.value},
                    {"incarnation", incarnation_.value},
                    {"text", text}});
}

void MemberNode::tell(const cluster::ProcessEvent& event) {
  if (const auto* const begun = std::get_if<cluster::LifeBegun>(&event)) {
    incarnation_ = begun->self.incarnation;
    log("begun", options_.name);
    host_.say(fmt::format("node {}, incarnation {}, of run {}", begun->self.node.value, incarnation_.value,
                          membership_.run));
  } else if (const auto* const ended = std::get_if<cluster::LifeEnded>(&event)) {
    log(ended->again ? "fenced" : "ended", ended->error ? ended->error->message() : "left the run");
    if (ended->again) {
      host_.say(printable(fmt::format("{}; joining again", ended->error->message())));
    } else if (ended->error) {
      failure_ = ended->error;
    } else {
      host_.say("left the run");
    }
  } else if (const auto* const said = std::get_if<cluster::MemberEvent>(&event)) {
    tell(*said);
  }
}

void MemberNode::tell(const cluster::MemberEvent& event) {
  if (const auto* const changed = std::get_if<cluster::ViewChanged>(&event)) {
    log(changed->freeze ? "freezing" : "view", "");
  } else if (std::holds_alternative<cluster::ViewInstalled>(event)) {
    const auto* const member = process_->member();
    std::string text = "installed";
    if (member != nullptr) {
      text = fmt::format("{} members, {} things", member->view().members().size(),
                         member->installed().holdings_size());
    }
    log("installed", text);
    host_.say(text);
  } else if (const auto* const stop = std::get_if<cluster::StopRequested>(&event)) {
    log("stopping", stop->reason);
    host_.say(printable("the run ends: " + stop->reason));
  }
}

std::optional<Instant> MemberNode::work(const host::PosixSignals& signals) {
  const Instant now = loop_.now();
  process_->tick(now);
  engine_->tick(now);
  if (signals.stop_requested() && !drain_deadline_) {
    drain_deadline_ = now + kDrainTime;
    host_.say("leaving: gives its part away first; Ctrl-C twice more ends it at once");
    engine_->drain("it was told to stop", now);
  }
  for (auto events = process_->take_events(); !events.empty(); events = process_->take_events()) {
    for (const cluster::ProcessEvent& event : events) {
      tell(event);
      engine_->on(event, now);
    }
  }
  std::optional<Instant> wake = process_->next_wakeup();
  const auto other = engine_->next_wakeup();
  if (other && (!wake || *other < *wake)) wake = other;
  return wake;
}

Result<void> MemberNode::run(const host::PosixSignals& signals) {
  loop_.run([&] { return work(signals); },
            [this] {
              // While it leaves, there may be nobody left who could give it a new life.
              const bool given_up =
                  drain_deadline_ && (*drain_deadline_ <= loop_.now() || process_->member() == nullptr);
              return process_->done() || given_up;
            });
  if (failure_) return *failure_;
  return {};
}

}  // namespace gossamer::node
