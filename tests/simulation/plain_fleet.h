// SPDX-License-Identifier: Apache-2.0
//
// PlainFleet: a run of real coordinators and members over the simulated internet, whose engines need no time
// to prepare or to rest, and whose store none to write. All that is left to see is what the protocol says,
// and when; it is counted.
//
// Thread rule: one thread, that of the timeline.
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
#include "cluster/control/member_process.h"
#include "cluster/control/witness.h"
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

// What was said. Bytes are those of the protobuf messages; of frames, all that links handed to the network.
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
  // Has taken up the placement of the view that it has.
  [[nodiscard]] bool installed() const;
  // From now on everything that it holds takes a step between any two beats.
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
  // All members serve when it is made.
  explicit PlainFleet(const Options& options);

  [[nodiscard]] Book& book() { return book_; }
  [[nodiscard]] Instant now() const { return timeline_.now(); }
  [[nodiscard]] const cluster::Coordinator& leader() const { return coordinator_->leader(); }
  [[nodiscard]] std::vector<std::unique_ptr<PlainMember>>& members() { return members_; }

  void run_for(Duration time) { timeline_.run_until(timeline_.now() + time); }
  // Until the event after which it holds. Requires that it comes within a minute.
  void run_until(const std::function<bool()>& holds);
  // All members have taken up one view, and the coordinator knows.
  [[nodiscard]] bool settled() const;

  // One more, at the end of members().
  void start_member();
  // kill -9 of the last member.
  void kill_member() { members_.pop_back(); }
  // The power of the last member's machine.
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
