// SPDX-License-Identifier: Apache-2.0
//
// PlainFleet: a run of real coordinators and members over the simulated internet. Its engines need no time to
// prepare or to rest, and its store none to write. So the messages and times of the protocol alone are left,
// and are counted.
//
// Thread rule: one thread, the timeline's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/coordinator_process.h"
#include "cluster/control/leadership.h"
#include "cluster/control/member_process.h"
#include "host/sim/internet.h"
#include "host/sim/store.h"
#include "host/sim/timeline.h"
#include "simulation/counting_engine.h"
#include "simulation/sim_process.h"

namespace gossamer::costs {

struct Tally {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;

  void add(std::size_t size) {
    ++messages;
    bytes += size;
  }
};

// Counts of messages. Bytes are those of the protobuf messages; for frames, all bytes that links handed to
// the network.
struct Book {
  std::map<membership::ToCoordinator::KindCase, Tally> to_coordinator;
  std::map<membership::ToMember::KindCase, Tally> to_members;
  std::map<std::string, Tally> questions;  // to the coordinator, by method
  std::map<std::string, Tally> answers;
  Tally frames;
};

class PlainMember final : public simulation::SimProcess {
 public:
  PlainMember(host::Timeline& timeline, host::SimInternet& internet, NodeId node,
              cluster::MemberProcess::Options options, Book& book);
  ~PlainMember() override;

  // Null before it has begun.
  [[nodiscard]] cluster::Member* member() { return process_->member(); }
  [[nodiscard]] bool linked_with(NodeId node) const;
  [[nodiscard]] bool linked_with_all() const;
  // The member has taken up the placement of its view.
  [[nodiscard]] bool installed() const;
  // From now on every thing that it holds takes a step between any two beats.
  void work();
  void lease();
  void claim();

 private:
  void on_network(host::NetworkEvent event) override;
  void on_timer() override;
  void go_on();
  void on_event(const cluster::ProcessEvent& event);

  Book& book_;
  StepNumber step_;
  std::unique_ptr<cluster::MemberProcess> process_;
};

class PlainCoordinator final : public simulation::SimProcess, private cluster::Witness {
 public:
  PlainCoordinator(host::Timeline& timeline, host::SimInternet& internet,
                   cluster::CoordinatorProcess::Options options, host::SimStoreMedium& medium,
                   cluster::Workload& workload, Book& book);
  ~PlainCoordinator() override;

  // Requires that it leads.
  [[nodiscard]] const cluster::Coordinator& leader() const { return *process_->coordinator(); }

 private:
  void on_network(host::NetworkEvent event) override;
  void on_timer() override;
  void go_on();
  void heard(net::PeerId from, const membership::ToCoordinator& said) override;
  void said(net::PeerId to, const membership::ToMember& said) override;
  void began(const membership::BeginAnswer&) override {}

  Book& book_;
  std::unique_ptr<host::SimStore> store_;
  std::unique_ptr<cluster::CoordinatorProcess> process_;
};

class PlainFleet {
 public:
  struct Options {
    std::size_t members = 4;
    std::size_t things = 12;
    Duration delay = from_milliseconds(10);  // one way, between any two machines
    std::uint64_t seed = 1;
  };
  // A fleet whose members all serve.
  explicit PlainFleet(const Options& options);

  [[nodiscard]] Book& book() { return book_; }
  [[nodiscard]] Instant now() const { return timeline_.now(); }
  [[nodiscard]] const cluster::Coordinator& leader() const { return coordinator_->leader(); }
  [[nodiscard]] std::vector<std::unique_ptr<PlainMember>>& members() { return members_; }

  void run_for(Duration time) { timeline_.run_until(timeline_.now() + time); }
  // Runs until the event after which it holds. Requires that it comes within a minute.
  void run_until(const std::function<bool()>& holds);
  // Whether all members have taken up one view, and the coordinator knows.
  [[nodiscard]] bool settled() const;

  // Starts one more member, at the end of members().
  void start_member();
  // Kills the last member as kill -9 does.
  void kill_member() { members_.pop_back(); }
  // Switches off the power of the last member's machine.
  void switch_member_off() { internet_.vanish(members_.back()->machine()); }
  void start_coordinator();
  void kill_coordinator() { coordinator_.reset(); }

 private:
  const Options options_;
  Book book_;
  host::Timeline timeline_;
  host::SimInternet internet_;
  host::SimStoreMedium medium_;
  simulation::CountingWorkload workload_;
  std::uint64_t coordinator_lives_ = 0;
  std::uint64_t nodes_ = 0;
  std::unique_ptr<PlainCoordinator> coordinator_;
  std::vector<std::unique_ptr<PlainMember>> members_;
};

}  // namespace gossamer::costs
