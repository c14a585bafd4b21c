// SPDX-License-Identifier: Apache-2.0
//
// For tests: a coordinator alone, before members whose messages the test chooses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/control/control_message.h"
#include "cluster/control/coordinator.h"
#include "cluster/control/test_nobody.h"
#include "cluster/control/test_store_rows.h"

namespace gossamer::cluster {

class EqualThings final : public Workload {
 public:
  std::uint64_t count = 1;
  std::optional<NodeId> needed;  // a part is lost without its report
  bool ends_steps = false;
  [[nodiscard]] bool ends_open_steps() const override { return ends_steps; }
  [[nodiscard]] std::vector<placement::Thing> things() const override {
    std::vector<placement::Thing> things;
    for (std::uint64_t i = 0; i < count; ++i)
      things.push_back({.id = placement::ThingId(i), .bytes = 1, .work = 1});
    return things;
  }
  [[nodiscard]] bool readable(const std::string&) const override { return true; }
  // A member that reports "odd" contradicts the others.
  [[nodiscard]] std::set<NodeId> contradicting(
      const std::map<NodeId, membership::Frozen>& reports) const override {
    std::set<NodeId> odd;
    for (const auto& [node, frozen] : reports) {
      if (frozen.report() == "odd") odd.insert(node);
    }
    return odd;
  }
  // The decision has all reports that begin with L.
  [[nodiscard]] Decision decide(const Rest& rest) override {
    Decision decision;
    for (const auto& [node, frozen] : rest.reports) {
      if (frozen.report().starts_with('L')) decision.bytes += frozen.report();
    }
    decision.lost = needed && !rest.reports.contains(*needed);
    return decision;
  }
};

// What the coordinator has said.
class Said final : public Witness {
 public:
  void heard(net::PeerId, const membership::ToCoordinator&) override {}
  void said(net::PeerId to, const membership::ToMember& message) override { all.emplace_back(to, message); }
  void began(const membership::BeginAnswer&) override {}
  std::vector<std::pair<net::PeerId, membership::ToMember>> all;
};

class CoordinatorTest : public ::testing::Test {
 protected:
  explicit CoordinatorTest(std::vector<TrackId> tracks = {})
      : tracks_(std::move(tracks)),
        links_(nobody_, {.run = "run", .self = {kCoordinatorNode, Incarnation(1)}, .program = "test"}) {
    lead({});
  }

  // A coordinator takes up the store.
  void lead(Records records) {
    auto changes = begin_lead(records, {.run = "run", .batch = 1, .tracks = tracks_});
    CHECK(changes.ok());
    keep(*changes, kept_);
    Coordinator::Options options;
    options.run = "run";
    options.tracks = tracks_;
    options.generation = Generation(1);
    options.first_members = 2;
    options.view_change = view_change_;
    options.witness = &said_;
    coordinator_.emplace(std::move(options), std::move(records), workload_, links_, now_);
  }
  // This one ends, and the next takes up what the store has.
  void lead_again() {
    std::vector<host::Entry> entries;
    for (const auto& [key, value] : kept_) entries.push_back({.key = key, .value = value});
    auto records = read_records(entries);
    CHECK(records.ok(), records.error().message());
    lead(*std::move(records));
    store();
  }

  // A member without a host listens nowhere.
  net::PeerId begin(std::uint64_t node, std::uint32_t cores = 1, const std::string& host = "") {
    membership::BeginAsk ask;
    ask.set_run("run");
    if (!host.empty())
      *ask.mutable_listening() =
          listening_of({.node = NodeId(node), .control = {host, 1}, .bulk = {host, 2}});
    ask.set_memory_bytes(1 << 20);
    ask.set_cores(cores);
    membership::BeginAnswer begun;
    coordinator_->begin(
        NodeId(node), ask.SerializeAsString(),
        [&](const Result<std::string>& answer) {
          ASSERT_TRUE(answer.ok());
          ASSERT_TRUE(begun.ParseFromString(*answer));
        },
        now_);
    store();
    const net::PeerId peer{NodeId(begun.node()), Incarnation(begun.incarnation())};
    say(peer, [](auto& said) { said.mutable_here(); });
    return peer;
  }
  template <class Fill>
  void say(net::PeerId from, Fill fill) {
    membership::ToCoordinator said;
    fill(said);
    coordinator_->on(net::Arrived{.from = from, .message = pack(said), .receipt = {}}, now_);
    store();
  }
  void serve(net::PeerId peer) {
    say(peer, [](auto& said) { said.mutable_ready(); });
    rest();
  }
  void rest(const std::function<bool(net::PeerId)>& is_there = [](net::PeerId) { return true; }) {
    for (const auto& [node, record] : std::map(coordinator_->view().members())) {
      if (!is_there(peer_of(record))) continue;
      say(peer_of(record),
          [&](auto& said) { said.mutable_frozen()->set_epoch(coordinator_->view().epoch().value); });
    }
  }
  // All members beat twice a second, and come to rest when they are asked to.
  void live(double seconds) {
    for (const Instant end = now_ + from_seconds(seconds); now_ < end;) {
      now_ = std::min(now_ + from_milliseconds(500), end);
      for (const auto& [node, record] : std::map(coordinator_->view().members()))
        say(peer_of(record), [](auto& said) { said.mutable_beat(); });
      coordinator_->tick(now_);
      store();
      if (coordinator_->phase() == Coordinator::Phase::kFreezing) rest();
    }
  }
  // Nobody says anything.
  void silence(double seconds) {
    for (const Instant end = now_ + from_seconds(seconds); now_ < end;) {
      now_ = now_ + from_milliseconds(500);
      coordinator_->tick(now_);
      store();
    }
  }
  void measured(net::PeerId peer, double speed, double own_work) {
    for (std::size_t i = 0; i < SmoothedPace::kWindow; ++i) {
      say(peer, [&](auto& said) {
        said.mutable_beat()->set_speed(speed);
        said.mutable_beat()->set_own_work(own_work);
      });
    }
  }
  [[nodiscard]] std::int64_t held_by(net::PeerId peer) const {
    return std::ranges::count_if(coordinator_->holdings(),
                                 [&](const auto& one) { return one.second == peer.node; });
  }
  // Lets a second pass in steps of a millisecond. Members whose connections break, each after its own time,
  // are silent from then on or until they are back. The others beat, and come to rest at once. Returns after
  // how many milliseconds the view changed, each time.
  std::vector<int> second(const std::map<net::PeerId, int>& breaks_after,
                          const std::map<net::PeerId, int>& back_after = {}) {
    std::vector<int> changed;
    const auto is_silent = [&](net::PeerId peer, int ms) {
      const auto breaks = breaks_after.find(peer);
      const auto back = back_after.find(peer);
      return breaks != breaks_after.end() && ms >= breaks->second &&
             (back == back_after.end() || ms < back->second);
    };
    for (int ms = 0; ms < 1000; ++ms) {
      const Epoch before = coordinator_->view().epoch();
      for (const auto& [node, record] : std::map(coordinator_->view().members())) {
        const net::PeerId peer = peer_of(record);
        const auto breaks = breaks_after.find(peer);
        if (breaks != breaks_after.end() && breaks->second == ms)
          coordinator_->on(net::LinkBroken{.peer = peer, .reason = {}}, now_);
        if (is_silent(peer, ms) || ms % 50 != 0) continue;
        say(peer, [&](auto& said) {
          said.mutable_beat();
          for (const auto& [other, when] : breaks_after) {
            if (is_silent(other, ms)) said.mutable_beat()->add_quiet(other.node.value);
          }
        });
      }
      coordinator_->tick(now_);
      store();
      if (coordinator_->phase() == Coordinator::Phase::kFreezing) {
        rest([&](net::PeerId peer) { return !is_silent(peer, ms); });
        coordinator_->tick(now_);
        store();
      }
      if (coordinator_->view().epoch() != before) changed.push_back(ms);
      now_ = now_ + from_milliseconds(1);
    }
    return changed;
  }
  void store() {
    while (const auto changes = coordinator_->next_commit()) {
      keep(*changes, kept_);
      coordinator_->committed(now_);
    }
  }

  const std::vector<TrackId> tracks_;  // of the ledgers; empty: there are none
  Instant now_;
  Nobody nobody_;
  EqualThings workload_;
  ViewChange view_change_ = ViewChange::kFrozen;
  Said said_;
  StoreRows kept_;  // what the store has
  net::Links links_;
  std::optional<Coordinator> coordinator_;
};

class CoordinatorOfSix : public CoordinatorTest {
 protected:
  CoordinatorOfSix() {
    workload_.count = 12;  // each holds something
    for (std::uint64_t node = 10; node < 16; ++node) {
      members_.push_back(begin(node));
      serve(members_.back());
    }
  }

  std::vector<net::PeerId> members_;
};

}  // namespace gossamer::cluster
