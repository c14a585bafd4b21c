// SPDX-License-Identifier: Apache-2.0
//
// SuppliedEngine supplies the sparse engine of a member with the run's data. The member may be on
// another machine than its coordinator.
//
//   1. Where this machine has the coordinator's files under the same paths, they are used in place.
//   2. Otherwise the files are fetched into the node's directory, from all nodes that have them.
//   3. When all are here, this node gives them on, and the engine hears of its life.
//
// The files that the engine delivers go to the coordinator (docs/protocols/delivery.md).
//
//   DIR/data      the run's data, and the checkpoint that it goes on from; kept until the run ends, so that a
//                 process that starts again goes on from what is there
//   DIR/deliver   on its way to the coordinator: what was trained and told, and this node's files of
//                 checkpoints
//
// Thread rule: the loop thread. Hashing and large writes are Work.
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
#include "commands/train_fleet/fleet_configuration.h"
#include "node/files/file_delivery.h"
#include "node/files/file_exchange.h"
#include "run/node_host.h"

namespace gossamer::node {

class SuppliedEngine final : public cluster::Engine {
 public:
  struct Options {
    std::string directory;  // directory of this node, from the root
    std::uint64_t seed = 0;
    // Limit for all nodes that fetch from this one, because its steps go over the same line.
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
  std::deque<std::pair<Work, Then>> aside_;  // work that is not begun
  std::optional<Then> doing_;                // work under way; an empty function: the engine's work
  std::unique_ptr<cluster::Engine> engine_;
  FileExchange exchange_;
  std::unique_ptr<FileDelivery> delivery_;  // null where the coordinator's directory is on this machine
  net::Links* links_ = nullptr;             // links of this life

  std::optional<cluster::LifeBegun> life_;  // life of which the engine has not heard yet
  bool passed_on_ = false;                  // the engine has heard of this life
  std::optional<FleetConfiguration> told_;
  std::string configuration_;       // for the engine, once no file is missing
  std::vector<StoredFile> stored_;  // files of the run's data that are here
  std::vector<DataFile> missing_;
  std::uint64_t fetched_bytes_ = 0;
  Instant began_;
  Instant next_say_;
  bool over_ = false;  // the run is over, not only a life
  std::optional<std::string> leaving_;
  std::optional<Error> failure_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
