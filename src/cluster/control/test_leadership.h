// SPDX-License-Identifier: Apache-2.0
//
// Tests only: what a part of a coordinator needs around it. The test chooses the members, sees what the part
// says and writes, and is the store. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/control/coordinator_outbox.h"
#include "cluster/control/leadership.h"
#include "cluster/control/test_nobody.h"

namespace gossamer::cluster {

class TestWorkload final : public Workload {
 public:
  [[nodiscard]] std::vector<placement::Thing> things() const override {
    return {{.id = placement::ThingId(0), .bytes = bytes_of_a_thing, .work = 1},
            {.id = placement::ThingId(1), .bytes = bytes_of_a_thing, .work = 1}};
  }
  // Track N is that of thing N, if tracks are those of things at all.
  [[nodiscard]] std::optional<placement::ThingId> thing_of(TrackId track) const override {
    return tracks_of_things ? std::optional(placement::ThingId(track.value)) : std::nullopt;
  }
  [[nodiscard]] bool readable(const std::string&) const override { return true; }
  [[nodiscard]] bool ends_open_steps() const override { return ends_steps; }
  // Fails without a report of the node that is needed. Nothing may be placed where nothing is known.
  [[nodiscard]] Decision decide(const Rest& rest) override {
    for (const auto& [thing, node] : rest.after) CHECK(rest.reports.contains(node), node.value);
    if ((needed && !rest.reports.contains(*needed)) ||
        (all_needed && rest.reports.size() < rest.view.members().size()))
      return {.bytes = "the holders", .failure = Error{.what = "it is lost"}, .lost = is_a_loss};
    return {.bytes = "decision"};
  }
  void installed(const Decision& decision) override { carried_out.push_back(decision); }

  bool tracks_of_things = false;
  bool ends_steps = false;
  std::uint64_t bytes_of_a_thing = 1;  // a member has 1 MiB
  std::optional<NodeId> needed;
  bool all_needed = false;  // all of the view
  bool is_a_loss = false;
  std::vector<Decision> carried_out;
};

class TestLeadership final : public Witness {
 public:
  explicit TestLeadership(CoordinatorOptions given = {})
      : options(std::move(given)),
        links(nobody, {.run = "run", .self = {kCoordinatorNode, Incarnation(1)}, .program = "test"}),
        outbox(options, run, links, {}) {
    options.witness = this;
  }

  [[nodiscard]] Leadership shared() { return {options, workload, run, outbox}; }

  // A member in incarnation `node` + 100. It is in the view unless it is joining.
  LedMember& add(std::uint64_t node, membership::State state) {
    LedMember& member = run.members[NodeId(node)];
    member.record.set_node(node);
    member.record.set_incarnation(node + 100);
    member.record.set_state(state);
    member.record.set_memory_bytes(1 << 20);
    if (state == membership::JOINING) return member;
    membership::Change change;
    change.set_from(run.view.epoch().value);
    change.set_epoch(run.view.epoch().value + 1);
    *change.add_members() = member.record;
    CHECK(run.view.apply(change).ok());
    return member;
  }
  // The member has said Here, and is heard at that moment.
  void hear(NodeId node, Instant now) {
    LedMember& member = run.members.at(node);
    member.here = true;
    if (!member.detector) member.detector.emplace(now);
    member.detector->heard(now);
  }
  // Carries out all commits. Returns the keys of their changes.
  std::vector<std::string> store(Instant now = {}) {
    std::vector<std::string> keys;
    while (const auto changes = outbox.next_commit()) {
      for (const host::Change& change : *changes) keys.push_back(change.key);
      outbox.committed(now);
    }
    return keys;
  }
  // How many messages of this kind have left.
  [[nodiscard]] std::ptrdiff_t said(membership::ToMember::KindCase kind) const {
    return std::ranges::count(messages, kind, [](const auto& message) { return message.second.kind_case(); });
  }
  // The kinds of events so far.
  std::vector<std::string> events() {
    std::vector<std::string> kinds;
    for (const RunEvent& event : outbox.take_events()) kinds.push_back(event.kind);
    return kinds;
  }

  void heard(net::PeerId, const membership::ToCoordinator&) override {}
  void said(net::PeerId to, const membership::ToMember& message) override {
    messages.emplace_back(to, message);
  }
  void began(const membership::BeginAnswer&) override {}

  CoordinatorOptions options;
  TestWorkload workload;
  LedRun run;
  std::vector<std::pair<net::PeerId, membership::ToMember>> messages;
  Nobody nobody;
  net::Links links;
  CoordinatorOutbox outbox;
};

inline Instant at(double seconds) { return Instant{} + from_seconds(seconds); }

}  // namespace gossamer::cluster
