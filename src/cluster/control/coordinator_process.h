// SPDX-License-Identifier: Apache-2.0
//
// CoordinatorProcess: one process that leads a run when it may, and stands by when another does. It campaigns
// for the store's lead and takes up the store's entries. Then it has Links and a Coordinator for as long as
// it leads.
//
// A pure state machine. next_call() returns the calls of the store one at a time, because these calls block
// and belong to a thread of their own. Their answers go into answered().
//
// Thread rule: one owner, the loop thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/coordinator.h"
#include "host/api/network.h"
#include "host/api/store.h"
#include "net/link/links.h"

namespace gossamer::cluster {

struct Campaign {
  host::Candidate candidate;
};
struct Load {};
struct Commit {
  std::vector<host::Change> changes;
};
struct Keep {};
struct Resign {};
using StoreCall = std::variant<Campaign, Load, Commit, Keep, Resign>;

using CampaignAnswer = Result<std::optional<Generation>>;
using LoadAnswer = Result<std::vector<host::Entry>>;
using StoreAnswer = std::variant<CampaignAnswer, LoadAnswer, Result<void>>;

// Carries a call out. Blocks as the store does.
[[nodiscard]] StoreAnswer carry_out(host::Store& store, const StoreCall& call);

class CoordinatorProcess {
 public:
  struct Options {
    Coordinator::Options coordinator;  // the generation comes from the lead
    host::Candidate candidate;
    Duration keep_every;                // Store::keep_every()
    std::optional<Duration> lead_time;  // Store::lead_time()
    bool certificates = false;          // if the run has them, Begin needs one
    bool led_before = false;            // a process has led the run: an empty store is another's
    std::string program;
    std::uint64_t seed = 0;
    ProbeCounts<net::LinkProbe>* link_probes = nullptr;
    std::function<void(const net::LinkEvent&)> watch_links = {};  // gets every event
    // Gets and consumes what members send on channels other than the coordinator's. Without it nobody reads
    // that.
    std::function<void(net::Arrived)> others = {};
  };
  static constexpr Duration kCampaignEvery{200'000'000};
  static constexpr Duration kRepeatAfter{500'000'000};  // after a failed commit
  // A leader that has missed most members elsewhere for so long leaves the lead to others for a while. The
  // time doubles each time, because the members may be gone. At most Coordinator::Options::patience, and
  // this.
  static constexpr Duration kAloneFor{10'000'000'000};

  CoordinatorProcess(Options options, host::Network& network, Workload& workload, Instant now);

  void on(host::NetworkEvent event, Instant now);
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  // What the store should do now; nothing while a call is under way.
  [[nodiscard]] std::optional<StoreCall> next_call(Instant now);
  void answered(StoreAnswer answer, Instant now);

  // It does not know yet whether it leads, or is about to lead.
  [[nodiscard]] bool beginning() const {
    return !campaigned_ || stage_ == Stage::kLoading || stage_ == Stage::kBeginning;
  }
  // Null while it stands by.
  [[nodiscard]] Coordinator* coordinator() { return coordinator_.get(); }
  // The links of this lead, which generation() names.
  [[nodiscard]] net::Links* links() { return links_.get(); }
  [[nodiscard]] Generation generation() const { return generation_; }
  // Why it cannot go on: the store cannot be read, or belongs to another run.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  // kResigning: this handle of the store may still lead, and must not lead any more.
  enum class Stage { kStandby, kLoading, kBeginning, kLeading, kResigning };

  void on_campaign(const CampaignAnswer& answer, Instant now);
  void on_load(const LoadAnswer& answer, Instant now);
  [[nodiscard]] std::optional<Instant> lead_ends() const;
  void resign_if_alone(Instant now);
  [[nodiscard]] Instant next_store_work() const;
  void on_done(const Result<void>& answer, Instant now);
  void start_leading(Instant now);
  void stop_leading(Stage next, Instant now);
  void flush(net::LinkEvents& events, Instant now);
  void on_asked(const host::Asked& asked, Instant now);
  void reach(ControlProbe probe) const { reached(options_.coordinator.probes, probe); }

  const Options options_;
  host::Network& network_;
  Workload& workload_;
  Stage stage_ = Stage::kStandby;
  bool campaigned_ = false;
  std::optional<Error> failure_;
  Generation generation_;
  std::optional<StoreCall> under_way_;
  Instant next_campaign_;
  Instant next_keep_;
  Instant not_before_;  // after a failed call
  Instant call_began_;
  Duration alone_for_ = kAloneFor;
  Instant proven_;  // when the last call began that proved that this process leads
  Records records_;
  std::vector<host::Change> first_changes_;
  std::unique_ptr<net::Links> links_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace gossamer::cluster
