// SPDX-License-Identifier: Apache-2.0
//
// A coordinator before three members. The input chooses the members' messages (bytes, or messages that are
// half right), the events of links and store, and the course of time. Then:
// - The coordinator does not crash.
// - A fenced member spoke or was silent.
// - The coordinator does not ask for ever to be called at once.
// - Once the store works again nothing is left waiting, and a new member begins and is heard.
// - A successor can take up the store's entries.
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "cluster/control/control_message.h"
#include "cluster/control/coordinator.h"
#include "nobody.h"

namespace {

using namespace gossamer;
using namespace gossamer::cluster;
using fuzz::Choices;

constexpr std::uint64_t kBatch = 12;
constexpr int kTicksAtOnce = 64;
constexpr std::size_t kMostMessages = 400;

class Ear final : public Witness {
 public:
  void heard(net::PeerId, const membership::ToCoordinator&) override {}
  void said(net::PeerId to, const membership::ToMember& said) override { last_[to] = said; }
  void began(const membership::BeginAnswer&) override {}
  [[nodiscard]] bool told(net::PeerId peer) const { return last_.contains(peer); }

 private:
  std::map<net::PeerId, membership::ToMember> last_;
};

class Bench {
 public:
  explicit Bench(Choices& choices) : choices_(choices) {
    const std::size_t shape = choices_.below(8);
    if ((shape & 1) != 0) options_.tracks = {TrackId(0), TrackId(1)};
    if ((shape & 2) != 0) options_.view_change = ViewChange::kAnnounced;
    options_.first_members = (shape & 4) != 0 ? 1 : 2;
    options_.run = "run";
    options_.generation = Generation(1);
    options_.batch = kBatch;
    options_.witness = &ear_;
    take_up();
    for (int i = 0; i < 3; ++i) begin(NodeId(10 + static_cast<std::uint64_t>(i)));
  }

  void step() {
    switch (choices_.below(14)) {
      case 0: return begin(NodeId(choices_.below(2) == 0 ? 0 : 9 + choices_.below(5)));
      case 1: return coordinator_->begin(NodeId(13), choices_.text(), [](const auto&) {}, now_);
      case 2: return coordinator_->lead(choices_.text(), [](const auto&) {});
      case 3: return link_event();
      case 4: return wait(from_milliseconds(static_cast<double>(choices_.below(1000))));
      case 5: return wait(from_seconds(static_cast<double>(choices_.below(40))));
      case 6: store_works_ = !store_works_; return work_store();
      case 7:
        if (choices_.below(8) == 0) coordinator_->stop("enough", now_);
        return;
      case 8:
        if (choices_.below(4) == 0) take_over();
        return;
      case 9: return serve(somebody());
      case 10: return rest();
      default: return arrive(somebody(), message());
    }
  }

  void finish() {
    store_works_ = true;
    work_store();
    CHECK(!coordinator_->waits_for_store());
    wait(from_milliseconds(1));
    const bool stops = coordinator_->phase() == Coordinator::Phase::kStopping;
    const std::size_t before = members_.size();
    begin(NodeId(0));
    CHECK((members_.size() == before + 1) == !stops);
    if (!stops) {
      membership::ToCoordinator beat;
      beat.mutable_beat();
      arrive(members_.back(), here());
      arrive(members_.back(), pack(beat));
      CHECK(ear_.told(members_.back()));
    }
    take_over();
    // Silence of all of them is the successor's own for ten minutes.
    for (int i = 0; i < 80; ++i) wait(from_seconds(10));
    CHECK(coordinator_->members().empty());
  }

 private:
  void take_up() {
    std::vector<host::Entry> entries;
    for (const auto& [key, value] : store_) entries.push_back({key, value});
    auto records = read_records(entries);
    CHECK(records.ok(), records.error().message());
    const auto changes = begin_lead(*records, {.run = "run", .batch = kBatch, .tracks = options_.tracks});
    CHECK(changes.ok(), changes.error().message());
    carry_out(*changes);
    links_ = std::make_unique<net::Links>(
        nobody_, net::Links::Options{.run = "run",
                                     .self = {kCoordinatorNode, Incarnation(records->lead.incarnation())},
                                     .program = "fuzz"});
    coordinator_ = std::make_unique<Coordinator>(options_, *std::move(records), workload_, *links_, now_);
    work_store();
  }
  void take_over() {
    options_.generation = Generation(options_.generation.value + 1);
    take_up();
  }

  void carry_out(const std::vector<host::Change>& changes) {
    CHECK(host::check_limits(changes).ok());
    for (const host::Change& change : changes) {
      if (change.value) {
        store_[change.key] = *change.value;
      } else {
        store_.erase(change.key);
      }
    }
  }
  void work_store() {
    while (auto changes = coordinator_->next_commit()) {
      // A commit that fails may have been carried out.
      if (store_works_ || choices_.flip()) carry_out(*changes);
      if (!store_works_) return coordinator_->commit_failed();
      coordinator_->committed(now_);
    }
  }
  void wait(Duration time) {
    now_ = now_ + time;
    coordinator_->tick(now_);
    for (int i = 0; i < kTicksAtOnce; ++i) {
      const auto wake = coordinator_->next_wakeup();
      if (!wake || *wake > now_) return work_store();
      coordinator_->tick(now_);
    }
    CHECK(false, "it asks to be called at once for ever");
  }

  void begin(NodeId node) {
    membership::BeginAsk ask;
    ask.set_run("run");
    ask.set_name(choices_.text(8));
    ask.set_memory_bytes(choices_.flip() ? 1 << 30 : choices_.number());
    ask.set_cores(static_cast<std::uint32_t>(choices_.number()));
    if (choices_.flip()) {
      ask.mutable_listening()->mutable_control()->set_port(static_cast<std::uint32_t>(choices_.number()));
      ask.mutable_listening()->mutable_bulk()->set_port(1);
    }
    coordinator_->begin(
        node, ask.SerializeAsString(),
        [this](const Result<std::string>& answer) {
          membership::BeginAnswer begun;
          if (!answer.ok()) return;
          CHECK(begun.ParseFromString(*answer));
          if (begun.has_stop()) return;
          members_.push_back({NodeId(begun.node()), Incarnation(begun.incarnation())});
        },
        now_);
    work_store();
  }
  // A member that speaks. Fenced ones go on speaking.
  net::PeerId somebody() {
    if (members_.empty() || choices_.below(16) == 0) return {NodeId(choices_.number()), Incarnation(7)};
    return members_[members_.size() - 1 - choices_.below(std::min<std::size_t>(members_.size(), 4))];
  }
  void arrive(net::PeerId from, net::Message message) {
    coordinator_->on(net::Arrived{.from = from, .message = std::move(message), .receipt = {}}, now_);
    work_store();
  }
  void link_event() {
    const net::PeerId peer = somebody();
    switch (choices_.below(4)) {
      case 0: coordinator_->on(net::LinkUp{peer}, now_); break;
      case 1: coordinator_->on(net::LinkBroken{peer, {}}, now_); break;
      case 2: coordinator_->on(net::LinkEnded{peer, {}}, now_); break;
      default: coordinator_->on(net::Incompatible{peer, {}}, now_);
    }
    work_store();
  }

  // Serves as a good member does.
  void serve(net::PeerId peer) {
    membership::ToCoordinator ready;
    ready.mutable_ready();
    arrive(peer, here());
    arrive(peer, pack(ready));
  }
  void rest() {
    const auto view = coordinator_->view().members();
    for (const auto& [node, record] : view) {
      membership::ToCoordinator said;
      said.mutable_frozen()->set_epoch(coordinator_->view().epoch().value);
      arrive(peer_of(record), pack(said));
    }
  }

  net::Message here() {
    membership::ToCoordinator said;
    said.mutable_here();
    return pack(said);
  }
  void progress(auto& to) {
    for (std::size_t i = choices_.below(3); i > 0; --i) {
      membership::Progress& one = *to.add_progress();
      one.set_track(choices_.below(3) == 0 ? choices_.number() : choices_.below(2));
      one.set_next(choices_.number());
    }
  }
  std::uint64_t epoch() {
    return choices_.below(4) == 0 ? choices_.number() : coordinator_->view().epoch().value;
  }
  net::Message message() {
    membership::ToCoordinator said;
    switch (choices_.below(10)) {
      case 0: {
        net::Message bytes{.channel = kControlChannel, .body = choices_.text(), .payload = {}};
        if (choices_.flip()) bytes.payload.push_back(Slice::of(choices_.text()));
        return bytes;
      }
      case 1:
        said.mutable_here()->set_epoch(epoch());
        said.mutable_here()->set_installed(choices_.number());
        break;
      case 2: said.mutable_ready(); break;
      case 3: said.mutable_drain()->set_reason(choices_.text()); break;
      case 4: said.mutable_leave()->set_reason(choices_.text()); break;
      case 5: frozen(*said.mutable_frozen()); break;
      case 6: lease(*said.mutable_lease()); break;
      case 7:
        said.mutable_claim()->set_track(choices_.number());
        said.mutable_claim()->set_step(choices_.number());
        said.mutable_claim()->set_begin(choices_.number());
        said.mutable_claim()->set_end(choices_.number());
        break;
      case 8:
        said.mutable_commit()->set_track(choices_.number());
        said.mutable_commit()->set_step(choices_.number());
        break;
      default: beat(*said.mutable_beat());
    }
    return pack(said);
  }
  void frozen(membership::Frozen& said) {
    said.set_epoch(epoch());
    said.set_installed(choices_.number());
    said.set_report(choices_.text(9));
    for (std::size_t i = choices_.below(4); i > 0; --i) said.add_copies(choices_.number());
    progress(said);
  }
  void lease(membership::LeaseAsk& said) {
    said.set_wish(static_cast<membership::LeaseAsk::Wish>(choices_.below(4)));
    said.mutable_keys()->set_space(choices_.below(2));
    said.mutable_keys()->set_begin(choices_.number());
    said.mutable_keys()->set_end(choices_.number());
    said.set_duration_ns(choices_.flip() ? 1'000'000'000 : static_cast<std::int64_t>(choices_.number()));
    said.set_sent_ns(static_cast<std::int64_t>(choices_.number()));
  }
  void beat(membership::Beat& said) {
    said.set_sent_ns(static_cast<std::int64_t>(choices_.number()));
    said.set_epoch(epoch());
    said.set_speed(choices_.real());
    for (std::size_t i = choices_.below(3); i > 0; --i) said.add_unreachable(somebody().node.value);
    for (std::size_t i = choices_.below(3); i > 0; --i) said.add_lost(somebody().node.value);
    progress(said);
  }

  Choices& choices_;
  fuzz::Nobody nobody_;
  fuzz::Things workload_;
  Ear ear_;
  Coordinator::Options options_;
  Instant now_;
  bool store_works_ = true;
  std::map<std::string, std::string> store_;
  std::unique_ptr<net::Links> links_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<net::PeerId> members_;  // all that began, dead ones too
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  Bench bench(choices);
  for (std::size_t i = 0; choices.left() && i < kMostMessages; ++i) bench.step();
  bench.finish();
  return 0;
}
