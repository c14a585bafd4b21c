// SPDX-License-Identifier: Apache-2.0
//
// ConfiguredEngine: the engine that a member has because its coordinator's configuration says so
// (run_configuration.h). In the first life it
//
//   1. chooses the engine by the first words of the configuration,
//   2. gets the files of the Supply, if there is one (files/member_supply.h),
//   3. makes the engine, and tells it that the life has begun.
//
// A later life begins with what there is by then. The engine is told of a life only once the files are here.
// What it delivers and reports goes to the coordinator.
//
// Thread rule: the loop thread; hashing and large writes are done aside.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/control/engine.h"
#include "cluster/control/member_process.h"
#include "host/api/disk.h"
#include "host/posix/mailbox.h"
#include "node/files/member_supply.h"
#include "node/reports/report_outbox.h"
#include "node/run_configuration.h"

namespace gossamer::node {

inline constexpr Duration kUnledAfter{10'000'000'000};
// Whether the member has heard no coordinator for kUnledAfter, and was not told that the run ends.
[[nodiscard]] bool is_unled(cluster::MemberProcess& process, Instant now);

class ConfiguredEngine final : public cluster::Engine {
 public:
  struct Kind {
    std::string name;
    Needs needs = Needs::kNothing;
    // Makes the engine. Without a Supply it gets an empty one.
    std::function<std::unique_ptr<cluster::Engine>(const Supplied&)> make;
  };
  struct Options {
    std::vector<Kind> kinds;
    std::string program;  // this node's own, for people
    MemberSupply::Options supply = {};
    // Does what takes long for files, beside the engine's Work. Without it that is Work, too, and steps wait.
    Aside aside = {};
  };

  // Disk and process outlive it. No two kinds have the same name and the same needs.
  ConfiguredEngine(host::Disk& disk, cluster::MemberProcess& process, Options options);

  void on(const cluster::ProcessEvent& event, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override;
  void drain(const std::string& reason, Instant now) override;
  [[nodiscard]] std::optional<Error> failure() const override;
  [[nodiscard]] Work take_work() override;
  void worked(Instant now) override;
  [[nodiscard]] Work take_side_work() override;
  void side_worked(Instant now) override;
  [[nodiscard]] std::vector<std::string> take_remarks() override;
  [[nodiscard]] cluster::Told told() override;
  [[nodiscard]] std::optional<Instant> moved() const override;
  [[nodiscard]] std::optional<cluster::Awaited> awaits() const override;
  [[nodiscard]] std::vector<CounterSample> counters() const override;

 private:
  using Then = std::function<void(Instant)>;

  void begin(const cluster::LifeBegun& event, Instant now);
  void choose(const std::string& configuration, Instant now);
  [[nodiscard]] Error unknown(std::string_view configuration) const;
  void go_on(Instant now);
  [[nodiscard]] std::unique_ptr<cluster::Engine> make_engine() const;
  [[nodiscard]] bool took(const net::Arrived& arrived, Instant now);
  void blame(Instant now);
  void follow_links();
  [[nodiscard]] std::set<net::PeerId> donors() const;
  void take_reports();
  void fail(Error error, Instant now);
  void leave(const std::string& reason, Instant now);

  host::Disk& disk_;
  cluster::MemberProcess& process_;
  const Options options_;
  std::deque<std::pair<Work, Then>> aside_;  // Work of the Supply that has not begun, where it is Work
  std::optional<Then> doing_;                // the Work under way; empty: the engine's
  net::Links* links_ = nullptr;              // of this life

  const Kind* kind_ = nullptr;  // chosen by the first life
  std::string own_;             // bytes of the configuration for the engine
  // These three are there where the run has a Supply. Reports outlive the lives in which they were told.
  std::unique_ptr<MemberSupply> supply_;
  std::optional<ReportOutbox> reports_;
  std::shared_ptr<host::Mailbox<std::string>> told_reports_;  // by any thread, on their way to reports_
  std::unique_ptr<cluster::Engine> engine_;                   // null until the files are here
  std::optional<cluster::LifeBegun> life_;                    // until the engine has heard of it
  bool told_ = false;                                         // the engine has heard of this life
  std::optional<std::string> leaving_;
  Instant now_;  // of the last tick
  std::optional<Error> failure_;
};

}  // namespace gossamer::node
