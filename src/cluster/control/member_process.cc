// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/member_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"
#include "base/printable.h"
#include "cluster/control/control_message.h"

namespace gossamer::cluster {

namespace {

Result<membership::BeginAnswer> read_begun(const Result<std::string>& answer) {
  if (!answer.ok()) return answer.error();
  membership::BeginAnswer begun;
  const bool read = begun.ParseFromString(*answer);
  const bool good =
      read && (begun.has_stop() ||
               (begun.node() > kCoordinatorNode.value && begun.incarnation() != 0 &&
                begun.lead().incarnation() != 0 && begun.beat_ms() != 0 && begun.beat_ms() <= 60'000));
  if (good) return begun;
  return Error{.kind = ErrorKind::kBadData,
               .what = "cannot read the coordinator's answer to Begin",
               .got = fmt::format("{} bytes", answer->size()),
               .expected = "a message of docs/protocols/membership.md",
               .fix = "look whether a coordinator of this run listens there, of the same version"};
}

}  // namespace

MemberProcess::MemberProcess(Options options, host::Network& network, Instant now)
    : options_(std::move(options)),
      network_(network),
      rng_(options_.seed, Purpose::kBackoff, 0, 1),
      listening_(options_.listening),
      coordinators_(options_.coordinators),
      next_begin_(now) {
  CHECK(!coordinators_.empty());
}

void MemberProcess::ask_begin(Instant now) {
  next_begin_.reset();
  if (!tried_until_) tried_until_ = now;
  membership::BeginAsk ask;
  ask.set_run(options_.run);
  ask.set_name(options_.name);
  if (options_.look_up) listening_ = options_.look_up();
  *ask.mutable_listening() = listening_;
  ask.set_machine(options_.machine);
  ask.set_memory_bytes(options_.memory_bytes);
  ask.set_cores(options_.cores);
  ask.set_program(options_.program);
  const host::Endpoint& to = coordinators_[next_coordinator_++ % coordinators_.size()];
  begin_ = network_.ask(to, {.method = "Begin",
                             .body = ask.SerializeAsString(),
                             .timeout = kBeginTime,
                             .to = certificate_name(kCoordinatorNode)});
}

// Goes on asking unless the run's own coordinator refused. Another process may listen by now at a
// coordinator's address and say anything.
void MemberProcess::not_begun(const Error& why, Instant now) {
  tried_ = tried_ + std::min(now - *tried_until_, kTryAtMost);
  tried_until_ = now;
  if (why.kind == ErrorKind::kRefused || tried_ >= options_.patience) return finish({.error = why});
  events_.emplace_back(BeginFailed{why});
  // A random wait, as many nodes may have lost the same coordinator.
  next_begin_ =
      now +
      Duration{static_cast<std::int64_t>(static_cast<double>(kBeginEvery.ns) * (0.5 + 0.5 * rng_.uniform()))};
}

void MemberProcess::on_begun(const Result<std::string>& answer, Instant now) {
  begin_.reset();
  const auto read = read_begun(answer);
  if (!read.ok()) return not_begun(read.error(), now);
  const membership::BeginAnswer& begun = *read;
  if (begun.has_stop()) return run_ended(begun.stop());
  had_life_ = true;
  life_began_ = now;
  const net::PeerId self{NodeId(begun.node()), Incarnation(begun.incarnation())};
  links_ =
      std::make_unique<net::Links>(network_, net::Links::Options{.run = options_.run,
                                                                 .self = self,
                                                                 .program = options_.program,
                                                                 .seed = options_.seed,
                                                                 .channels = net::channel_rules(),
                                                                 .coordinator = kCoordinatorNode,
                                                                 .probes = options_.link_probes,
                                                                 .silence = silence_by(options_.defect)});
  member_ = std::make_unique<Member>(
      Member::Options{.run = options_.run,
                      .self = self,
                      .lead = begun.lead(),
                      .beat_every = from_milliseconds(begun.beat_ms()),
                      .patience = options_.patience,
                      .listening = listening_,
                      .machine = options_.machine,
                      .seed = options_.seed + self.incarnation.value,
                      .defect = options_.defect,
                      .probes = options_.probes,
                      .falsify = options_.falsify,
                      .work_time = options_.work_time,
                      .told = options_.told},
      *links_,
      [this](const host::Endpoint& control, std::string bytes) {
        leads_.insert(network_.ask(control, {.method = "Lead",
                                             .body = std::move(bytes),
                                             .timeout = kLeadTime,
                                             .to = certificate_name(kCoordinatorNode),
                                             .asked = host::Question::Asked::kAgain}));
      },
      now);
  learn_coordinators(begun.lead());
  events_.emplace_back(
      LifeBegun{.self = self, .configuration = begun.configuration(), .coordinators = coordinators_});
}

// Adds the coordinators in `lead`. The one in the options may be gone for ever when the next life begins.
void MemberProcess::learn_coordinators(const membership::LeadAnswer& lead) {
  coordinators_ = options_.coordinators;
  for (const membership::Address& address : lead.coordinators()) {
    host::Endpoint at{.host = address.host(), .port = static_cast<std::uint16_t>(address.port())};
    const bool known = std::find(coordinators_.begin(), coordinators_.end(), at) != coordinators_.end();
    if (!known) coordinators_.push_back(std::move(at));
  }
}

void MemberProcess::gather(net::LinkEvents& events, Instant now) {
  for (net::LinkEvent& event : events) {
    // Several events of the network may come before take_events(). A life tells nothing after its end.
    if (member_->ended()) return;
    auto* const arrived = std::get_if<net::Arrived>(&event);
    const bool engines = arrived != nullptr && arrived->message.channel != kControlChannel;
    // It came together with the word that fences its sender.
    if (engines && member_->view().fenced().contains(arrived->from.incarnation)) continue;
    if (options_.watch_links) options_.watch_links(event);
    member_->on(event, now);
    if (engines) events_.emplace_back(std::move(*arrived));
    for (MemberEvent& one : member_->take_events()) events_.emplace_back(std::move(one));
  }
}

void MemberProcess::on(host::NetworkEvent event, Instant now) {
  now_ = now;
  if (done_) return;
  if (const auto* const answered = std::get_if<host::Answered>(&event)) {
    if (begin_ == answered->question) return on_begun(answered->answer, now);
    if (leads_.erase(answered->question) != 0 && member_ != nullptr)
      member_->lead_answered(answered->answer, now);
    return;
  }
  if (const auto* const asked = std::get_if<host::Asked>(&event)) {
    return network_.answer(asked->question, Error{.what = "this node does not lead",
                                                  .got = asked->method,
                                                  .expected = "a question to a coordinator",
                                                  .fix = "ask the coordinator"});
  }
  if (links_ == nullptr) {
    if (const auto* const accepted = std::get_if<host::Accepted>(&event))
      network_.close(accepted->connection);
    return;
  }
  net::LinkEvents events;
  links_->on(std::move(event), now, events);
  gather(events, now);
}

void MemberProcess::tick(Instant now) {
  now_ = now;
  if (done_) return;
  if (next_begin_ && *next_begin_ <= now) ask_begin(now);
  if (member_ == nullptr) return;
  net::LinkEvents events;
  links_->tick(now, events);
  gather(events, now);
  member_->tick(now);
}

void MemberProcess::begin_anew(const Error& why, Instant now) {
  now_ = now;
  if (done_ || member_ == nullptr || member_->ended()) return;
  finish({.error = why, .fenced = true});
}

std::vector<ProcessEvent> MemberProcess::take_events() {
  if (member_ != nullptr) {
    for (MemberEvent& one : member_->take_events()) events_.emplace_back(std::move(one));
    if (member_->ended()) {
      const auto* const last = std::get_if<MemberEvent>(&events_.back());
      const auto* const ended = last == nullptr ? nullptr : std::get_if<MembershipEnded>(last);
      CHECK(ended != nullptr);
      const MembershipEnded last_word = *ended;
      events_.pop_back();
      finish(last_word);
    }
  }
  return std::exchange(events_, {});
}

// The run ended before this process could begin again, or before it came at all.
void MemberProcess::run_ended(const membership::StopAsked& stop) {
  if (!had_life_) {
    return finish({.error = Error{.kind = ErrorKind::kRefused,
                                  .what = "the run is ending",
                                  .got = printable(stop.reason()),
                                  .fix = "join another run"}});
  }
  if (!stop.failed()) return finish({});
  finish({.error = Error{.what = "the run has failed",
                         .got = printable(stop.reason()),
                         .expected = "a run that goes on",
                         .fix = "see what the coordinator says"}});
}

void MemberProcess::finish(const MembershipEnded& last_word) {
  if (last_word.fenced && member_ != nullptr && member_->stop()) {
    const membership::StopAsked stop = *member_->stop();
    return run_ended(stop);
  }
  const bool again = last_word.fenced;
  member_.reset();
  if (links_ != nullptr) links_->abandon();
  links_.reset();
  leads_.clear();
  done_ = !again;
  events_.emplace_back(LifeEnded{.error = last_word.error, .again = again});
  if (!again) return;
  reached(options_.probes, ControlProbe::kNewLife);
  // Lives that end soon after they began would keep all others changing their view.
  const bool short_life = now_ - life_began_ < kShortLife;
  wait_ = short_life ? Duration{std::min(std::max(2 * wait_.ns, kBeginEvery.ns), kShortLife.ns)} : Duration{};
  next_begin_ = now_ + wait_;
  tried_ = {};
  tried_until_.reset();
}

std::optional<Instant> MemberProcess::next_wakeup() const {
  if (done_) return std::nullopt;
  std::optional<Instant> wake = next_begin_;
  if (member_ != nullptr) {
    wake = sooner(wake, member_->next_wakeup());
    wake = sooner(wake, links_->next_wakeup());
  }
  return wake;
}

}  // namespace gossamer::cluster
