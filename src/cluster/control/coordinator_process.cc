// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/coordinator_process.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"
#include "cluster/control/control_message.h"
#include "net/link/channels.h"

namespace gossamer::cluster {
namespace {

// The node that asks. 0 if the run has no certificates; nothing for the coordinator's own certificate and for
// an invalid one.
std::optional<NodeId> asking_node(const std::string& certificate) {
  if (certificate.empty()) return NodeId(0);
  const std::optional<NodeId> node = certified_node(certificate);
  return node == kCoordinatorNode ? std::nullopt : node;
}

}  // namespace

StoreAnswer carry_out(host::Store& store, const StoreCall& call) {
  if (const auto* const campaign = std::get_if<Campaign>(&call)) return store.campaign(campaign->candidate);
  if (std::holds_alternative<Load>(call)) return store.load();
  if (const auto* const commit = std::get_if<Commit>(&call)) return store.commit(commit->changes);
  if (std::holds_alternative<Keep>(call)) return store.keep();
  return store.resign();
}

CoordinatorProcess::CoordinatorProcess(Options options, host::Network& network, Workload& workload,
                                       Instant now)
    : options_(std::move(options)), network_(network), workload_(workload), next_campaign_(now) {}

void CoordinatorProcess::flush(net::LinkEvents& events, Instant now) {
  for (net::LinkEvent& event : events) {
    if (options_.watch_links) options_.watch_links(event);
    auto* const arrived = std::get_if<net::Arrived>(&event);
    const bool for_others = arrived != nullptr && arrived->message.channel != kControlChannel;
    if (for_others && !coordinator_->lives(arrived->from)) {
      reach(
          ControlProbe::kFormerLife);  // or one that no coordinator gave; its link ends after the next write
      links_->consumed(arrived->receipt, now);
    } else if (for_others && options_.others) {
      options_.others(std::move(*arrived));
    } else {
      coordinator_->on(event, now);
    }
  }
}

void CoordinatorProcess::on_asked(const host::Asked& asked, Instant now) {
  const auto answer = [this, question = asked.question](Result<std::string> result) {
    network_.answer(question, std::move(result));
  };
  if (coordinator_ == nullptr) {
    reach(ControlProbe::kAskedOnStandby);
    return answer(Error{.what = "this coordinator stands by; another one leads",
                        .got = asked.method,
                        .fix = "ask the others"});
  }
  const std::optional<NodeId> node = asking_node(asked.peer.certificate);
  if (node && coordinator_->expelled(*node)) return answer(expelled_error(*node));
  if (asked.method == "Lead") return coordinator_->lead(asked.body, answer);
  if (asked.method != "Begin") return answer(Error{.what = "unknown question", .got = asked.method});
  if (!node || (options_.certificates && node->value == 0)) {
    return answer(Error{.kind = ErrorKind::kRefused,
                        .what = "the asker has no certificate of a node",
                        .got = asked.peer.certificate.empty() ? "none" : asked.peer.certificate,
                        .expected = "node-N",
                        .fix = "join with a token of this run"});
  }
  coordinator_->begin(*node, asked.body, answer, now);
}

void CoordinatorProcess::on(host::NetworkEvent event, Instant now) {
  if (const auto* const asked = std::get_if<host::Asked>(&event)) return on_asked(*asked, now);
  if (links_ == nullptr) {
    // A process that stands by closes connections, and members look elsewhere.
    if (const auto* const accepted = std::get_if<host::Accepted>(&event))
      network_.close(accepted->connection);
    return;
  }
  net::LinkEvents events;
  links_->on(std::move(event), now, events);
  flush(events, now);
}

void CoordinatorProcess::tick(Instant now) {
  if (const auto ends = lead_ends(); ends && *ends <= now) stop_leading(Stage::kResigning, now);
  resign_if_alone(now);
  if (coordinator_ == nullptr) return;
  net::LinkEvents events;
  links_->tick(now, events);
  flush(events, now);
  coordinator_->tick(now);
}

std::optional<Instant> CoordinatorProcess::next_wakeup() const {
  if (failure_) return std::nullopt;
  std::optional<Instant> wake = lead_ends();
  if (!under_way_) wake = sooner(wake, next_store_work());
  if (coordinator_ != nullptr) {
    wake = sooner(wake, coordinator_->next_wakeup());
    wake = sooner(wake, links_->next_wakeup());
  }
  return wake;
}

// When the lead ends by itself. A process that cannot tell the store that it is alive must expect that
// another leads. Members would then hear two.
std::optional<Instant> CoordinatorProcess::lead_ends() const {
  if (stage_ != Stage::kLeading || !options_.lead_time) return std::nullopt;
  if (!options_.coordinator.guarded(Defect::kOldGeneration)) return std::nullopt;
  return proven_ + *options_.lead_time;
}

// A leader that is cut off from most members still reaches its store. Another one may reach the members.
void CoordinatorProcess::resign_if_alone(Instant now) {
  if (coordinator_ == nullptr || !options_.lead_time || options_.coordinator.coordinators.size() < 2) return;
  if (!options_.coordinator.guarded(Defect::kNeverResigns)) return;
  if (coordinator_->phase() == CoordinatorPhase::kStopping) return;  // they know, and leave by themselves
  const Hearing hearing = coordinator_->hears_elsewhere(now);
  if (2 * hearing.heard >= hearing.all) alone_for_ = kAloneFor;
  if (!hearing.misses_most_since) return;
  // Those that are heard come to rest first. Then it is known whether they need the others.
  const bool waits = hearing.heard > 0 && coordinator_->awaits_rest(now);
  const Duration stays = waits ? alone_for_ + options_.coordinator.freeze_time : alone_for_;
  if (now - *hearing.misses_most_since < stays) return;
  reach(ControlProbe::kResigned);
  // Members that are gone for good are fenced after the patience, and then it need not resign.
  alone_for_.ns = std::min(2 * alone_for_.ns, options_.coordinator.patience.ns + kAloneFor.ns);
  stop_leading(Stage::kResigning, now);
  next_campaign_ = now + Duration{2 * options_.lead_time->ns};
}

Instant CoordinatorProcess::next_store_work() const {
  if (stage_ == Stage::kStandby) return next_campaign_;
  const bool idle = stage_ == Stage::kLeading && !coordinator_->waits_for_store();
  return idle ? std::max(next_keep_, not_before_) : not_before_;
}

std::optional<StoreCall> CoordinatorProcess::next_call(Instant now) {
  if (under_way_ || failure_) return std::nullopt;
  switch (stage_) {
    case Stage::kStandby:
      if (next_campaign_ <= now) under_way_ = Campaign{options_.candidate};
      break;
    case Stage::kLoading:
      if (not_before_ <= now) under_way_ = Load{};
      break;
    case Stage::kResigning: under_way_ = Resign{}; break;
    case Stage::kBeginning:
      if (not_before_ <= now) under_way_ = Commit{first_changes_};
      break;
    case Stage::kLeading:
      if (not_before_ > now) break;
      if (next_keep_ <= now) {
        under_way_ = Keep{};
      } else if (auto changes = coordinator_->next_commit()) {
        under_way_ = Commit{std::move(*changes)};
      }
      break;
  }
  if (under_way_) call_began_ = now;
  return under_way_;
}

void CoordinatorProcess::answered(StoreAnswer answer, Instant now) {
  CHECK(under_way_.has_value());
  if (const auto* const campaign = std::get_if<CampaignAnswer>(&answer)) {
    under_way_.reset();
    on_campaign(*campaign, now);
  } else if (const auto* const load = std::get_if<LoadAnswer>(&answer)) {
    under_way_.reset();
    on_load(*load, now);
  } else {
    on_done(std::get<Result<void>>(answer), now);
  }
}

void CoordinatorProcess::on_campaign(const CampaignAnswer& answer, Instant now) {
  next_campaign_ = now + kCampaignEvery;
  campaigned_ = true;
  if (!answer.ok()) {
    // A damaged or foreign store will not mend itself, but an unreachable one may.
    if (answer.error().kind != ErrorKind::kFailed) failure_ = answer.error();
    return;
  }
  if (!answer->has_value()) return;
  generation_ = **answer;
  next_keep_ = now + options_.keep_every;
  not_before_ = now;
  proven_ = call_began_;
  stage_ = Stage::kLoading;
}

void CoordinatorProcess::on_load(const LoadAnswer& answer, Instant now) {
  if (!answer.ok()) {
    reach(ControlProbe::kLoadFailed);
    if (answer.error().kind == ErrorKind::kBadData) failure_ = answer.error();
    if (answer.error().kind == ErrorKind::kRefused) stop_leading(Stage::kStandby, now);
    not_before_ = now + kRepeatAfter;
    return;
  }
  auto records = read_records(*answer);
  if (!records.ok()) {
    failure_ = records.error();
    return;
  }
  if (options_.led_before && records->lead.run().empty()) {
    failure_ = Error{.kind = ErrorKind::kUsage,
                     .what = "the store holds nothing, and this run was led before",
                     .got = "a store without entries",
                     .expected = "the store of run " + options_.coordinator.run,
                     .fix = "name the run's store; without it the run is lost, and another must be started"};
    return;
  }
  auto changes = begin_lead(*records, {.run = options_.coordinator.run,
                                       .batch = options_.coordinator.batch,
                                       .tracks = options_.coordinator.tracks});
  if (!changes.ok()) {
    failure_ = changes.error();
    return;
  }
  records_ = std::move(*records);
  first_changes_ = std::move(*changes);
  stage_ = Stage::kBeginning;
}

void CoordinatorProcess::on_done(const Result<void>& answer, Instant now) {
  const StoreCall call = *std::exchange(under_way_, std::nullopt);
  const bool commit = std::holds_alternative<Commit>(call);
  if (stage_ == Stage::kResigning) {
    // After Resign this handle does not lead, whatever became of the call.
    if (std::holds_alternative<Resign>(call)) stage_ = Stage::kStandby;
    return;
  }
  const bool replaced = !answer.ok() && answer.error().kind == ErrorKind::kRefused;
  const bool goes_on = replaced && !options_.coordinator.guarded(Defect::kOldGeneration);
  if (replaced) reach(ControlProbe::kGuardRefused);
  if (replaced && !goes_on) return stop_leading(Stage::kStandby, now);
  if (answer.ok() && stage_ != Stage::kStandby) proven_ = call_began_;
  if (!answer.ok() && answer.error().kind == ErrorKind::kBadData) failure_ = answer.error();
  if (stage_ == Stage::kBeginning) {
    if (answer.ok()) return start_leading(now);
    reach(ControlProbe::kFirstCommitRepeated);
    not_before_ = now + kRepeatAfter;
  } else if (stage_ == Stage::kLeading && commit && (answer.ok() || goes_on)) {
    coordinator_->committed(now);
  } else if (stage_ == Stage::kLeading && commit) {
    coordinator_->commit_failed();
    not_before_ = now + kRepeatAfter;
  } else if (std::holds_alternative<Keep>(call)) {
    next_keep_ = answer.ok() ? now + options_.keep_every : now;
    if (!answer.ok()) not_before_ = now + Duration{kRepeatAfter.ns / 5};
  }
}

void CoordinatorProcess::start_leading(Instant now) {
  stage_ = Stage::kLeading;
  links_ = std::make_unique<net::Links>(
      network_,
      net::Links::Options{.run = options_.coordinator.run,
                          .self = {kCoordinatorNode, Incarnation(records_.lead.incarnation())},
                          .program = options_.program,
                          .seed = options_.seed,
                          .channels = options_.others ? net::channel_rules() : net::rules_of_membership(),
                          .coordinator = kCoordinatorNode,
                          .relays = true,
                          .probes = options_.link_probes,
                          .silence = silence_by(options_.coordinator.defect)});
  Coordinator::Options options = options_.coordinator;
  options.generation = generation_;
  coordinator_ =
      std::make_unique<Coordinator>(std::move(options), std::exchange(records_, {}), workload_, *links_, now);
}

void CoordinatorProcess::stop_leading(Stage next, Instant now) {
  stage_ = next;
  next_campaign_ = now + kCampaignEvery;
  coordinator_.reset();
  if (links_ != nullptr) links_->abandon();
  links_.reset();
}

}  // namespace gossamer::cluster
