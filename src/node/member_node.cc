// SPDX-License-Identifier: Apache-2.0
#include "node/member_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/node_name.h"
#include "cluster/admission/enrolment.h"
#include "cluster/admission/token.h"
#include "cluster/admission/token_book.h"
#include "host/grpc/certificates.h"
#include "host/grpc/network.h"
#include "host/posix/route.h"
#include "node/admission/enrolling.h"
#include "node/admission/random_text.h"
#include "node/admission/returning.h"
#include "node/cluster_status.h"
#include "node/configured_engine.h"
#include "node/places.h"
#include "node/questions.h"

namespace gossamer::node {
namespace {

constexpr Duration kDrainTime{120'000'000'000};
constexpr Duration kLookTime{5'000'000'000};
constexpr Duration kLookForAddress{2'000'000'000};

}  // namespace

MemberNode::MemberNode(const run::NodeHost& host, MemberOptions options)
    : host_(host),
      options_(std::move(options)),
      log_(host, options_.directory.path, options_.report.log),
      loop_(host.clock),
      started_(host.clock.wall_seconds()) {}

MemberNode::~MemberNode() {
  renewing_.as_stranger.reset();
  network_.reset();
}

Result<std::unique_ptr<MemberNode>> MemberNode::start(const run::NodeHost& host, MemberOptions options,
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
  renewing_.when = Renewal(membership_.credentials.certificate);
  log_.name(membership_.run, membership_.node);
  return keep_address(host_.disk, directory, {.coordinator = options_.coordinator, .others = others_});
}

Result<void> MemberNode::resume(const std::optional<cluster::Token>& token) {
  const std::string& directory = options_.directory.path;
  auto kept = load_membership(host_.disk, directory, host_.clock.wall_seconds());
  bool ended = false;
  if (!kept.ok()) {
    auto late = ended_membership(host_.disk, directory, host_.clock.wall_seconds());
    if (!late) return kept.error();
    kept = *std::move(late);
    ended = true;
  }
  if ((*kept).node == cluster::kCoordinatorNode) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = directory,
                 .what = "this is a coordinator's directory",
                 .expected = "a directory of this node's own",
                 .fix = "give --dir another directory, or leave it out"};
  }
  const std::string& authority = (*kept).credentials.authority;
  if (token) {
    if (auto same = is_of_run(authority, *token); !same.ok()) return same;
  }
  // The file is only a hint. Without it, there is the coordinator that the user named.
  if (const auto before = load_address(host_.disk, directory); before.ok()) {
    others_ = before->others;
    others_.push_back(before->coordinator);
  }
  const bool old = std::erase(others_, options_.coordinator) != 0;
  const auto served = expect_run(options_.coordinator, authority, kLookTime);
  if (!served.ok()) {
    // An old address of the run may belong to something else by now. A wrong new one is a user's mistake.
    const bool elsewhere = old && !others_.empty();
    if (served.error().kind == ErrorKind::kRefused && !elsewhere) return served.error();
    log_.remark(LogLevel::kWarning, {}, fmt::format("{}; trying on", served.error().message()));
  }
  membership_ = std::move(*kept);
  return ended ? return_with(token) : Result<void>();
}

std::vector<host::Endpoint> MemberNode::coordinators() const {
  std::vector<host::Endpoint> all{options_.coordinator};
  all.insert(all.end(), others_.begin(), others_.end());
  return all;
}

// The certificate of this node has ended, and a coordinator gives it another one. Where none answers, the
// node starts all the same, and asks on.
Result<void> MemberNode::return_with(const std::optional<cluster::Token>& token) {
  for (const host::Endpoint& at : coordinators()) {
    auto renewed =
        come_back(membership_, {.at = at, .timeout = kLookTime, .now_seconds = host_.clock.wall_seconds()});
    if (renewed.ok()) {
      log_.remark(LogLevel::kInfo, {}, "the certificate had ended, and is renewed");
      membership_ = *std::move(renewed);
      return keep_membership(host_.disk, options_.directory.path, membership_);
    }
    if (renewed.error().kind == ErrorKind::kRefused) return enroll_anew(token, renewed.error());
    log_.remark(LogLevel::kWarning, {},
                fmt::format("the certificate has ended, and is not renewed yet: {}; trying on",
                            renewed.error().message()));
  }
  return {};
}

Result<void> MemberNode::is_of_run(const std::string& authority, const cluster::Token& token) {
  const auto fingerprint = host::fingerprint(authority);
  if (!fingerprint.ok()) return fingerprint.error();
  if (token.authority == *fingerprint) return {};
  return Error{.kind = ErrorKind::kRefused,
               .where = options_.directory.path,
               .what = "this node is of another run than the token",
               .got = "credentials of a run with the authority " + *fingerprint,
               .expected = "credentials of the token's run, or none",
               .fix = "give --dir another directory"};
}

// The certificate of this node has ended, and the run gives it no other. With a token of its run it becomes
// another node.
Result<void> MemberNode::enroll_anew(const std::optional<cluster::Token>& token, const Error& over) {
  if (!token) return over;
  log_.remark(LogLevel::kInfo, {}, over.what + "; joins as another node");
  return enroll_with(token);
}

// Asks over a connection of its own with the present certificate, or as a stranger once that has ended. The
// coordinators are asked in turn, as one may stand by.
void MemberNode::renew_in_time() {
  const auto kept = renewing_.unkept.keep(host_.disk, options_.directory.path, membership_, loop_.now());
  if (!kept.ok()) log_.remark(LogLevel::kWarning, epoch(), kept.error().message());
  const double now = host_.clock.wall_seconds();
  if (renewing_.asked || !renewing_.when.due(now)) return;
  const std::vector<host::Endpoint> all = coordinators();
  const host::Endpoint& to = all[renewing_.coordinator++ % all.size()];
  const bool ended = renewing_.when.ended(now);
  renewing_.when.attempt(now);
  const auto asked = ended ? ask_to_return(to) : ask_to_renew(to);
  if (!asked.ok()) log_.remark(LogLevel::kWarning, epoch(), asked.error().message());
}

Result<void> MemberNode::ask_to_renew(const host::Endpoint& at) {
  const auto request = host::request_for(membership_.credentials.key);
  if (!request.ok()) return request.error();
  renewing_.asked_as_stranger = false;
  renewing_.asked = network_->ask(at, {.method = cluster::kRenewMethod,
                                       .body = cluster::renew_request({.request = *request}),
                                       .timeout = kLookTime,
                                       .to = certificate_name(cluster::kCoordinatorNode)});
  return {};
}

Result<void> MemberNode::ask_to_return(const host::Endpoint& at) {
  auto asked = return_question(membership_, kLookTime);
  if (!asked.ok()) return asked.error();
  if (renewing_.as_stranger == nullptr) {
    renewing_.as_stranger =
        host::make_grpc_network(std::move(asked->as_stranger), [this](host::NetworkEvent event) {
          const host::EventSource source = host::source_of(event);
          loop_.post(source, [this, event = std::move(event)] {
            if (const auto* const answered = std::get_if<host::Answered>(&event))
              on_renewed(answered->answer);
          });
        });
  }
  renewing_.asked_as_stranger = true;
  renewing_.asked = renewing_.as_stranger->ask(at, std::move(asked->question));
  return {};
}

void MemberNode::on_renewed(const Result<std::string>& answer) {
  renewing_.asked.reset();
  const auto taken = answer.ok() ? take_renewed(*answer) : Result<void>(answer.error());
  if (taken.ok()) {
    renewing_.why_not_yet.clear();
    return log("renewed", "its certificate");
  }
  const Error& why = taken.error();
  const bool ended = renewing_.when.ended(host_.clock.wall_seconds());
  const std::string text =
      fmt::format("the certificate is not renewed yet, and {} {}: {}", ended ? "ended at" : "holds until",
                  cluster::utc_text(static_cast<std::int64_t>(renewing_.when.until())), why.message());
  if (std::exchange(renewing_.why_not_yet, text) != text) log_.remark(LogLevel::kWarning, epoch(), text);
  // Without a certificate it cannot begin a life. One that it has goes on as long as its connections do.
  const bool refused = !answer.ok() && why.kind == ErrorKind::kRefused;
  if (refused && renewing_.asked_as_stranger && process_->member() == nullptr) failure_ = why;
}

Result<void> MemberNode::take_renewed(const std::string& answer) {
  auto renewed = with_renewed(membership_, answer, host_.clock.wall_seconds());
  if (!renewed.ok()) return renewed.error();
  if (auto shown = network_->renew(renewed->credentials); !shown.ok()) return shown;
  membership_ = *std::move(renewed);
  renewing_.when = Renewal(membership_.credentials.certificate);
  renewing_.unkept.renewed(loop_.now());
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
                          .wire = wire_range(),
                          .program = options_.program,
                          .now_seconds = host_.clock.wall_seconds()});
  if (!enrolled.ok()) return enrolled.error();
  // Saved by a node of another number: the run would take it for a lie of this one.
  const auto aside = FileDelivery::set_aside(host_.disk, MemberSupply::deliveries(directory));
  if (!aside.ok()) return aside.error();
  if (*aside) {
    log_.remark(
        LogLevel::kWarning, {},
        fmt::format("joins as another node; what was saved here before is in {}, and not brought", **aside));
  }
  if (auto kept = keep_membership(host_.disk, directory, *enrolled); !kept.ok()) return kept;
  membership_ = std::move(*enrolled);
  return {};
}

// Opens the ports at which others reach this node under `advertise`.
Result<membership::Listening> MemberNode::open_ports(const std::string& advertise) {
  host::Endpoint control_at = options_.listen;
  if (options_.towards && !is_wildcard(control_at.host)) control_at.host = advertise;
  auto open = ports_.find(control_at.host);
  if (open == ports_.end()) {
    const auto bulk_at = bulk_endpoint(control_at);
    if (!bulk_at.ok()) return bulk_at.error();
    const auto control = network_->listen(control_at, host::Lane::kControl);
    if (!control.ok()) return control.error();
    const auto bulk = network_->listen(*bulk_at, host::Lane::kBulk);
    if (!bulk.ok()) return bulk.error();
    open = ports_.emplace(control_at.host, Ports{.control = control->port, .bulk = bulk->port}).first;
  }
  return cluster::listening_of({.node = membership_.node,
                                .control = {advertise, open->second.control},
                                .bulk = {advertise, open->second.bulk}});
}

// Where others reach this node now. An interface may have gone since the last life, or have another address.
membership::Listening MemberNode::where_now() {
  const auto route = host::route_to(*options_.towards);
  if (!route.ok() || route->own == advertised_) return listening_;
  auto listening = open_ports(route->own);
  if (!listening.ok()) {
    log_.remark(LogLevel::kWarning, {}, listening.error().message());
    return listening_;
  }
  log_.remark(LogLevel::kInfo, {}, fmt::format("others come to {} now, before {}", route->own, advertised_));
  advertised_ = route->own;
  return listening_ = *std::move(listening);
}

// Begins anew when this machine has another address. Others would go to where
// nothing is, or to another machine.
void MemberNode::look_for_address(Instant now) {
  next_look_ = now + kLookForAddress;
  if (drain_deadline_ || host::has_address(advertised_)) return;
  const auto route = host::route_to(*options_.towards);
  if (!route.ok() || route->own == advertised_) return;  // there is no other address yet
  process_->begin_anew(
      {.what = "this machine has another address", .got = route->own, .expected = advertised_}, now);
}

Result<void> MemberNode::listen(const MakeEngine& make_engine) {
  network_ = host::make_grpc_network(membership_.credentials, [this](host::NetworkEvent event) {
    const host::EventSource source = host::source_of(event);
    loop_.post(source, [this, event = std::move(event)]() mutable { on_network(std::move(event)); });
  });
  cluster::MemberProcess::Options process;
  if (!options_.advertise.empty()) {
    auto listening = open_ports(options_.advertise);
    if (!listening.ok()) return listening.error();
    advertised_ = options_.advertise;
    process.listening = listening_ = *std::move(listening);
  }
  if (options_.towards) process.look_up = [this] { return where_now(); };
  process.machine = host::network_stack();
  process.run = membership_.run;
  process.name = options_.name;
  process.coordinators = coordinators();
  process.memory_bytes = options_.memory_bytes;
  process.cores = options_.cores;
  process.program = options_.program;
  process.seed = random_seed();
  process.told = [this] { return engine_->told(); };
  process.work_time = [this] { return worker_ == nullptr ? Duration{} : worker_->cpu(); };
  process.watch_links = [this](const net::LinkEvent& event) { log_.link(event, epoch()); };
  process_ = std::make_unique<cluster::MemberProcess>(std::move(process), *network_, loop_.now());
  aside_ = std::make_unique<AsideThread>(loop_);
  engine_ = make_engine(*process_, membership_.node,
                        [this](auto work, auto then) { aside_->give(std::move(work), std::move(then)); });
  worker_ = std::make_unique<WorkThread>(loop_, *engine_);
  if (!options_.report.metrics) return {};
  auto metrics = MetricsEndpoint::listen(*options_.report.metrics);
  if (!metrics.ok()) return metrics.error();
  metrics_ = std::move(*metrics);
  log_.remark(LogLevel::kInfo, {},
              fmt::format("metrics at http://{}/metrics", host::to_string(metrics_->at())));
  return {};
}

void MemberNode::on_network(host::NetworkEvent event) {
  const auto* const answered = std::get_if<host::Answered>(&event);
  const bool here = answered != nullptr && !renewing_.asked_as_stranger;
  if (here && renewing_.asked == answered->question) return on_renewed(answered->answer);
  process_->on(std::move(event), loop_.now());
}

Epoch MemberNode::epoch() const {
  const bool lives = process_ != nullptr && process_->member() != nullptr;
  return lives ? process_->member()->view().epoch() : Epoch();
}

void MemberNode::log(const std::string& kind, const std::string& text) {
  log_.event({.kind = kind, .peer = {membership_.node, incarnation_}, .epoch = epoch(), .text = text});
}

void MemberNode::tell(const cluster::ProcessEvent& event) {
  if (const auto* const begun = std::get_if<cluster::LifeBegun>(&event)) {
    incarnation_ = begun->self.incarnation;
    why_not_yet_.clear();
    log("begun", fmt::format("incarnation {} of {}", incarnation_.value, options_.name));
    keep_coordinators(begun->coordinators);
    if (!configuration_) configuration_ = begun->configuration;
    if (*configuration_ == begun->configuration) return;
    begins_anew_ = true;
    log_.remark(LogLevel::kInfo, epoch(), "the run has begun anew; joining again");
  } else if (const auto* const ended = std::get_if<cluster::LifeEnded>(&event)) {
    const std::string why = ended->error ? ended->error->message() : "left the run";
    log(ended->again ? "fenced" : "ended", ended->again ? why + "; joining again" : why);
    if (!ended->again) failure_ = ended->error;
  } else if (const auto* const failed = std::get_if<cluster::BeginFailed>(&event)) {
    const std::string why = failed->error.message();
    if (std::exchange(why_not_yet_, why) != why) log_.remark(LogLevel::kWarning, {}, why + "; trying on");
  } else if (const auto* const said = std::get_if<cluster::MemberEvent>(&event)) {
    tell(*said);
  }
}

void MemberNode::tell(const cluster::MemberEvent& event) {
  if (const auto* const changed = std::get_if<cluster::ViewChanged>(&event)) {
    log(changed->freeze ? "freezing" : "view", "");
  } else if (std::holds_alternative<cluster::ViewInstalled>(event)) {
    const auto* const member = process_->member();
    if (member == nullptr) return;  // the life ended in the same batch
    log("installed", fmt::format("{} members, {} things", member->view().members().size(),
                                 member->installed().holdings_size()));
  } else if (const auto* const stop = std::get_if<cluster::StopRequested>(&event)) {
    log("stopping", stop->reason);
  }
}

// Keeps the addresses of all coordinators. A standby may be the only one left when this node starts again.
void MemberNode::keep_coordinators(const std::vector<host::Endpoint>& coordinators) {
  std::vector<host::Endpoint> others = coordinators;
  std::erase(others, options_.coordinator);
  if (others == others_) return;
  others_ = std::move(others);
  const auto kept = keep_address(host_.disk, options_.directory.path,
                                 {.coordinator = options_.coordinator, .others = others_});
  if (!kept.ok()) log_.remark(LogLevel::kWarning, epoch(), kept.error().message());
}

void MemberNode::show_metrics() {
  const MetricsOwner owner{.run = membership_.run,
                           .program = options_.program,
                           .node = membership_.node,
                           .started = started_,
                           .events = &log_.counts()};
  metrics_->show(member_metrics(owner, *process_, engine_->counters()), loop_.now());
}

std::optional<Instant> MemberNode::work(const host::PosixSignals& signals) {
  const Instant now = loop_.now();
  if (options_.towards && next_look_ <= now) look_for_address(now);
  renew_in_time();
  process_->tick(now);
  engine_->tick(now);
  if (signals.stop_requested() && !drain_deadline_) {
    drain_deadline_ = now + kDrainTime;
    if (process_->member() != nullptr) {
      log_.remark(LogLevel::kInfo, epoch(),
                  "leaving: gives its part away first; Ctrl-C twice more ends it at once");
    }
    engine_->drain("it was told to stop", now);
  }
  for (auto events = process_->take_events(); !events.empty(); events = process_->take_events()) {
    for (const cluster::ProcessEvent& event : events) {
      tell(event);
      if (begins_anew_) return std::nullopt;
      engine_->on(event, now);
    }
  }
  if (drain_deadline_ && process_->member() != nullptr) leave_in_time(now);
  worker_->take();
  for (const std::string& text : engine_->take_remarks()) log_.remark(LogLevel::kInfo, epoch(), text);
  const auto awaits = [this] {
    const cluster::Member* const member = process_->member();
    return member == nullptr || member->at_rest() ? std::nullopt : engine_->awaits();
  };
  log_.awaits(awaits, epoch(), now);
  if (metrics_ != nullptr && metrics_->due() <= now) show_metrics();
  std::optional<Instant> wake = process_->next_wakeup();
  wake = sooner(wake, engine_->next_wakeup());
  if (!renewing_.asked) wake = sooner(wake, now + renewing_.when.look_again_in(host_.clock.wall_seconds()));
  if (metrics_ != nullptr) wake = sooner(wake, metrics_->due());
  if (options_.towards) wake = sooner(wake, next_look_);
  return wake;
}

Leaving leaving_now(const LeavingMember& member) {
  const bool by_itself = member.nobody_leads && member.in_view;
  const bool with_others = member.late && member.others && (member.all_drain || member.at_rest);
  if (!member.saves && (by_itself || with_others)) return Leaving::kSaves;
  const bool stays = member.brings && (member.saves || !member.in_view);
  return member.late && !stays ? Leaving::kLeaves : Leaving::kWaits;
}

void MemberNode::leave_in_time(Instant now) {
  const auto& members = process_->member()->view().members();
  const std::optional<Instant> moved = engine_->moved();
  const bool nobody_leads = now + (kDrainTime - kUnledAfter) >= *drain_deadline_ && is_unled(*process_, now);
  const LeavingMember self{
      .late = *drain_deadline_ <= now,
      .saves = saves_,
      .in_view = members.contains(membership_.node),
      .nobody_leads = nobody_leads,
      .others = !members.empty(),
      .all_drain = std::ranges::all_of(
          members, [](const auto& one) { return one.second.state() == membership::DRAINING; }),
      .at_rest = process_->member()->at_rest(),
      .brings = moved && now - *moved < kDrainTime};
  const Leaving what = leaving_now(self);
  if (what == Leaving::kWaits) return;
  drain_deadline_ = now + kDrainTime;
  if (what == Leaving::kSaves) {
    saves_ = true;
    if (self.nobody_leads && self.in_view)
      log_.remark(LogLevel::kInfo, epoch(),
                  "no coordinator: it saves its part here, and brings it when it is back");
    engine_->on(cluster::MemberEvent(cluster::StopRequested{"it was told to stop"}), now);
  } else {
    process_->member()->leave_now("it was told to stop, and nobody took its part over in time", now);
  }
}

Result<void> MemberNode::run(const host::PosixSignals& signals) {
  loop_.run([&] { return work(signals); },
            [this] {
              // While it leaves, there may be no coordinator left that could give it a new life.
              const bool given_up = (drain_deadline_ || failure_) && process_->member() == nullptr;
              return process_->done() || given_up || begins_anew_;
            });
  if (log_.first_error())
    log_.remark(LogLevel::kWarning, epoch(), "events were lost: " + log_.first_error()->message());
  if (begins_anew_) return {};
  if (failure_) return *failure_;
  if (engine_->failure()) return *engine_->failure();
  return {};
}

}  // namespace gossamer::node
