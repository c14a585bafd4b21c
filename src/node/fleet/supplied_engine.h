// SPDX-License-Identifier: Apache-2.0
//
// SuppliedEngine: the sparse engine of a member that may be on another machine than its coordinator. Before
// the engine hears of a life, the run's data are here: in place, where this machine has the coordinator's
// files under the same paths, or fetched into the node's directory from all who have them; then they are
// given on. What the engine delivers there goes to the coordinator (docs/protocols/delivery.md).
//
//   DIR/data      the run's data, and the checkpoint that it goes on from; kept until the run ends: who
//   starts
//                 again goes on from what is there
//   DIR/deliver   on its way to the coordinator: what was trained and told, and this node's files of
//   checkpoints
//
// Thread rule: the loop thread; hashing and large writes are Work.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/control/engine.h"
#include "cluster/control/member_process.h"
#include "node/cluster/file_delivery.h"
#include "node/cluster/file_exchange.h"
#include "node/fleet/fleet_configuration.h"
#include "node/node_host.h"

namespace gossamer::node {

class SuppliedEngine final : public cluster::Engine {
 public:
  struct Options {
    std::string directory;  // of this node, from the root
    std::uint64_t seed = 0;
    // For all who fetch from this node: its steps go over the same line.
    double bytes_per_second = 32e6;
  };
  static constexpr Duration kSayEvery{5'000'000'000};

  // Host and process outlive it.
  SuppliedEngine(const NodeHost& host, cluster::MemberProcess& process,
                 std::unique_ptr<cluster::Engine> engine, Options options);
  ~SuppliedEngine() override;

  void on(const cluster::ProcessEvent& event, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override;
  void drain(const std::string& reason, Instant now) override;
  [[nodiscard]] std::optional<Error> failure() const override;
  [[nodiscard]] Work take_work() override;
  void worked(Instant now) override;
  [[nodiscard]] std::vector<std::string> take_remarks() override;
  [[nodiscard]] std::vector<CounterSample> counters() const override { return engine_->counters(); }

 private:
  using Then = std::function<void(Instant)>;

  void begin(const cluster::LifeBegun& event, Instant now);
  [[nodiscard]] bool took(const net::Arrived& arrived, Instant now);
  void begin_supply(const std::string& configuration, Instant now);
  [[nodiscard]] bool find_in_place();
  void look_for_own();
  void fetched(FileExchange::Got got, Instant now);
  void supplied(Instant now);
  void pass_on(Instant now);
  void meet_donors(Instant now);
  void follow_links();
  void fail(Error error, Instant now);
  void say_progress(Instant now);
  [[nodiscard]] std::string own(const std::string& name) const { return options_.directory + "/" + name; }
  [[nodiscard]] DataPlaces own_places() const;

  const NodeHost& host_;
  cluster::MemberProcess& process_;
  const Options options_;
  std::deque<std::pair<Work, Then>> aside_;  // not begun
  std::optional<Then> doing_;                // empty: the engine's work
  std::unique_ptr<cluster::Engine> engine_;
  FileExchange exchange_;
  std::unique_ptr<FileDelivery> delivery_;  // of who does not have the coordinator's directory
  net::Links* links_ = nullptr;             // of this life

  std::optional<cluster::LifeBegun> life_;  // until the engine has heard of it
  bool passed_on_ = false;                  // it has
  std::optional<FleetConfiguration> told_;
  std::string configuration_;       // for the engine, once there is nothing missing
  std::vector<StoredFile> stored_;  // of the run's data
  std::vector<DataFile> missing_;
  std::uint64_t fetched_bytes_ = 0;
  Instant began_;
  Instant next_say_;
  bool over_ = false;  // the run, not only a life
  std::optional<std::string> leaving_;
  std::optional<Error> failure_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
