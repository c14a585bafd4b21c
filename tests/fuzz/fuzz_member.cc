// SPDX-License-Identifier: Apache-2.0
//
// A member before a coordinator whose answers and messages the input chooses, in bytes or half right. Links
// come and go. The member does not crash, and does not ask for ever to be called at once. It never keeps a
// fenced member in its view. It ends with an error that says something, or because it left.
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "cluster/control/control_message.h"
#include "cluster/control/member_process.h"

namespace {

using namespace gossamer;
using namespace gossamer::cluster;
using fuzz::Choices;

constexpr int kTicksAtOnce = 64;
constexpr std::size_t kMostSteps = 400;

// A network that takes questions and connections, which the bench answers.
class Asked final : public host::Network {
 public:
  Result<host::Endpoint> listen(const host::Endpoint& at, host::Lane) override { return at; }
  host::ConnectionId connect(const host::Endpoint&, host::Lane) override { return ++connections; }
  void send(host::ConnectionId, Slices frame) override { CHECK(total_bytes(frame) <= kMaxFrameBytes); }
  void consumed(host::ConnectionId, std::uint64_t) override {}
  void close(host::ConnectionId) override {}
  host::QuestionId ask(const host::Endpoint&, host::Question) override { return ++questions; }
  void answer(host::QuestionId, Result<std::string>) override {}

  host::ConnectionId connections;
  host::QuestionId questions;
};

class Bench {
 public:
  explicit Bench(Choices& choices)
      : choices_(choices),
        process_({.run = "run",
                  .name = "fuzz",
                  .coordinators = {{.host = "there", .port = 1}},
                  .listening = {},
                  .memory_bytes = 1,
                  .program = "fuzz"},
                 network_, now_) {}

  [[nodiscard]] bool done() const { return process_.done(); }

  void step() {
    if (process_.member() == nullptr) {
      wait(from_seconds(60));
      process_.on(host::Answered{network_.questions, begin_answer()}, now_);
    } else {
      act();
    }
    hear();
  }
  void finish() {
    wait(from_seconds(1));
    hear();
  }

 private:
  void act() {
    switch (choices_.below(12)) {
      case 0: return wait(from_milliseconds(static_cast<double>(choices_.below(1000))));
      case 1: return wait(from_seconds(static_cast<double>(choices_.below(40))));
      case 2:
        return process_.on(
            host::Answered{host::QuestionId(choices_.below(network_.questions.value + 1)), lead_answer()},
            now_);
      case 3: return engine();
      case 4: return network_event();
      case 5: return link_event();
      default: return arrive();
    }
  }
  void wait(Duration time) {
    now_ = now_ + time;
    process_.tick(now_);
    for (int i = 0; i < kTicksAtOnce; ++i) {
      const auto wake = process_.next_wakeup();
      if (!wake || *wake > now_) return;
      process_.tick(now_);
      hear();
    }
    CHECK(false, "it asks to be called at once for ever");
  }
  // Reacts to events as an engine does.
  void hear() {
    for (const ProcessEvent& event : process_.take_events()) {
      CHECK(!over_);
      if (const auto* const ended = std::get_if<LifeEnded>(&event)) {
        over_ = !ended->again;
        if (ended->error) CHECK(!ended->error->what.empty());
      }
      const auto* const told = std::get_if<MemberEvent>(&event);
      if (told == nullptr || process_.member() == nullptr) continue;
      Member& member = *process_.member();
      if (const auto* const changed = std::get_if<ViewChanged>(told); changed != nullptr && changed->freeze)
        member.frozen("here", {1}, now_);
      if (const auto* const leased = std::get_if<LeaseAnswered>(told))
        held_.granted(leased->sent, leased->answer.duration);
      for (const auto& [node, record] : member.view().members())
        CHECK(!member.view().fenced().contains(Incarnation(record.incarnation())));
    }
  }

  void engine() {
    Member& member = *process_.member();
    switch (choices_.below(8)) {
      case 0: return member.ready(now_);
      case 1: return member.drain("wanted back", now_);
      case 2: return member.leave("done", now_);
      case 3:
        static_cast<void>(
            member.lease(membership::LeaseAsk::GRANT, {LeaseSpace(1), 0, 1}, from_seconds(1), now_));
        return;
      case 4:
        static_cast<void>(member.claim(TrackId(0), StepNumber(0), {SampleId(0), SampleId(2)}, now_));
        return;
      case 5: static_cast<void>(member.commit(TrackId(0), StepNumber(0), now_)); return;
      case 6: member.applied(TrackId(choices_.below(2)), StepNumber(choices_.number())); return;
      default:
        if (!member.ended())
          static_cast<void>(
              member.send(peer(), host::Lane::kControl, {.channel = 2, .body = "hi", .payload = {}}, now_));
    }
  }
  void network_event() {
    const host::ConnectionId id(choices_.below(network_.connections.value + 1));
    switch (choices_.below(3)) {
      case 0:
        if (!opened_.insert(id).second) return;  // a network opens a connection once
        return process_.on(host::Opened{id, {choices_.flip() ? "node-1" : choices_.text(10)}}, now_);
      case 1: return process_.on(host::Received{id, {Slice::of(choices_.text())}}, now_);
      default: return process_.on(host::Closed{id, {}}, now_);
    }
  }
  net::PeerId peer() {
    if (choices_.below(3) == 0) return {NodeId(choices_.number()), Incarnation(choices_.number())};
    if (choices_.flip()) return process_.member()->coordinator();
    return {NodeId(2 + choices_.below(3)), Incarnation(2 + choices_.below(4))};
  }
  void link_event() {
    const net::PeerId other = peer();
    Member& member = *process_.member();
    switch (choices_.below(4)) {
      case 0: return member.on(net::LinkUp{other}, now_);
      case 1: return member.on(net::LinkBroken{other, {}}, now_);
      case 2: return member.on(net::OpenFailed{other.node, {}}, now_);
      default:
        return member.on(
            net::LinkEnded{other, {.what = "ended"}, static_cast<net::Refused>(choices_.below(4))}, now_);
    }
  }

  Result<std::string> begin_answer() {
    if (choices_.below(8) == 0) return Error{.kind = static_cast<ErrorKind>(choices_.below(3)), .what = "no"};
    if (choices_.below(8) == 0) return choices_.text();
    membership::BeginAnswer begun;
    if (choices_.below(16) == 0) begun.mutable_stop()->set_failed(choices_.flip());
    begun.set_node(choices_.below(4) == 0 ? choices_.number() : 2);
    begun.set_incarnation(choices_.below(4) == 0 ? choices_.number() : 2);
    lead(*begun.mutable_lead());
    begun.set_beat_ms(choices_.below(8) == 0 ? static_cast<std::uint32_t>(choices_.number()) : 100);
    return begun.SerializeAsString();
  }
  Result<std::string> lead_answer() {
    if (choices_.below(8) == 0) return Error{.what = "no"};
    if (choices_.below(8) == 0) return choices_.text();
    membership::LeadAnswer answer;
    lead(answer);
    return answer.SerializeAsString();
  }
  void listening(membership::Listening& at) {
    at.mutable_control()->set_host(choices_.text(4));
    at.mutable_control()->set_port(static_cast<std::uint32_t>(choices_.number()));
    at.mutable_bulk()->set_port(static_cast<std::uint32_t>(choices_.number()));
  }
  void lead(membership::LeadAnswer& answer) {
    answer.set_generation(choices_.number());
    answer.set_incarnation(choices_.below(2) == 0 ? 1 : choices_.number());
    if (choices_.flip()) listening(*answer.mutable_listening());
    for (std::size_t i = choices_.below(3); i > 0; --i)
      answer.add_coordinators()->set_port(static_cast<std::uint32_t>(choices_.number()));
  }

  void arrive() {
    net::Message said = message();
    Member& member = *process_.member();
    const net::PeerId from = choices_.below(8) == 0 ? peer() : member.coordinator();
    member.on(net::Arrived{.from = from, .message = std::move(said), .receipt = {}}, now_);
  }
  net::Message message() {
    membership::ToMember said;
    said.set_generation(choices_.below(4) == 0 ? choices_.number() : process_.member()->generation().value);
    switch (choices_.below(10)) {
      case 0: return {.channel = kControlChannel, .body = choices_.text(), .payload = {}};
      case 1: install(*said.mutable_install()); break;
      case 2: said.mutable_beat_seen(); break;
      case 3:
        said.mutable_lease()->set_number(choices_.below(4));
        said.mutable_lease()->set_outcome(static_cast<std::uint32_t>(choices_.number()));
        said.mutable_lease()->set_duration_ns(static_cast<std::int64_t>(choices_.number()));
        break;
      case 4:
        said.mutable_claim()->set_number(choices_.below(4));
        said.mutable_claim()->add_granted()->set_end(choices_.number());
        break;
      case 5: said.mutable_commit()->set_number(choices_.below(4)); break;
      case 6: said.mutable_stop()->set_reason(choices_.text()); break;
      case 7: record(*said.mutable_joining()->mutable_member()); break;
      case 8: {
        const net::PeerId who = peer();
        said.mutable_gone()->set_node(who.node.value);
        said.mutable_gone()->set_incarnation(who.incarnation.value);
        break;
      }
      default: change(*said.mutable_change());
    }
    return pack(said);
  }
  void record(membership::MemberRecord& one) {
    const net::PeerId who = peer();
    one.set_node(who.node.value);
    one.set_incarnation(who.incarnation.value);
    one.set_state(static_cast<membership::State>(choices_.below(4)));
    if (choices_.flip()) listening(*one.mutable_listening());
  }
  void install(membership::Install& said) {
    said.set_epoch(choices_.number());
    for (std::size_t i = choices_.below(3); i > 0; --i) said.add_holdings()->set_node(choices_.number());
  }
  void change(membership::Change& said) {
    const std::uint64_t epoch = process_.member()->view().epoch().value;
    said.set_epoch(choices_.below(4) == 0 ? choices_.number() : epoch + 1);
    said.set_from(choices_.below(4) == 0 ? choices_.number() : choices_.flip() ? epoch : 0);
    said.set_freeze(choices_.flip());
    for (std::size_t i = choices_.below(4); i > 0; --i) record(*said.add_members());
    for (std::size_t i = choices_.below(3); i > 0; --i) {
      membership::FencedRun& run = *said.add_fenced();
      run.set_first(choices_.number());
      run.set_last(choices_.flip() ? run.first() : choices_.number());
    }
    if (choices_.flip()) install(*said.mutable_installed());
  }

  Choices& choices_;
  Asked network_;
  Instant now_;
  MemberProcess process_;
  HeldLease held_;
  std::set<host::ConnectionId> opened_;
  bool over_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  Bench bench(choices);
  for (std::size_t i = 0; choices.left() && !bench.done() && i < kMostSteps; ++i) bench.step();
  bench.finish();
  return 0;
}
