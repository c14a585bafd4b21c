// SPDX-License-Identifier: Apache-2.0
//
// CheckEngine: a member's side of a fleet check. In each step all members that hold things sum a vector
// (cluster/collective) and compare every bit of the sum with its closed form. Each carries the sum into the
// chains of its things (check_numbers.h). When the view changes they rest, report their chains, and go on
// where the coordinator decides (check_workload.h). After the last step, if there is one, they are quiet.
//
// A member that finds something wrong leaves the run, with the reason in its Leave, and has a failure(). A
// lost or silent member is nothing wrong: the view will change.
//
// Thread rule: the loop thread. It never blocks; a step costs at most some 100 ms of computing, at the
// largest configuration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "base/time.h"
#include "cluster/collective/collectives.h"
#include "cluster/control/engine.h"
#include "cluster/control/member_process.h"
#include "engines/check/check_config.h"
#include "engines/check/check_numbers.h"
#include "host/api/clock.h"

namespace gossamer::check {

inline constexpr std::uint32_t kCheckChannel = 2;

// A mistake that a member makes once in a test, for the others to find.
enum class CheckDefect {
  kNone,
  kWrongSum,   // one element of the input is one too large
  kStepTwice,  // the chains take the step twice
};

// Counters of this process, over all its lives.
struct CheckCounters {
  std::uint64_t steps = 0;
  std::uint64_t step_ns = 0;
  std::uint64_t sent_bytes = 0;  // includes the count that links add for each message
  template <class Visitor>
  void describe(Visitor&& v) const {
    v("gossamer_check_steps_total", "steps", "Steps applied.", steps);
    v("gossamer_check_step_nanoseconds_total", "ns",
      "From forming the input to having applied the sum, without pauses.", step_ns);
    v("gossamer_check_sent_bytes_total", "bytes", "Handed to links for steps.", sent_bytes);
  }
};

class CheckEngine final : public cluster::Engine {
 public:
  struct Options {
    // Measures the work for the placement; without it members count as fast as they have cores.
    const host::Clock* clock = nullptr;
    CheckDefect defect = CheckDefect::kNone;
    StepNumber defect_step = {};
  };
  // The least time from step to step. A member that holds everything alone would else leave time for nothing.
  static constexpr Duration kStepTime{1'000'000};

  // Process and clock outlive the engine.
  CheckEngine(cluster::MemberProcess& process, const Options& options)
      : process_(process), options_(options) {}

  void on(const cluster::ProcessEvent& event, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override;
  void drain(const std::string& reason, Instant now) override;

  [[nodiscard]] std::optional<Error> failure() const override { return failure_; }
  [[nodiscard]] std::vector<CounterSample> counters() const override { return read(counters_); }
  [[nodiscard]] const CheckCounters& check_counters() const { return counters_; }
  // The first step that this life has not applied; nothing between two lives.
  [[nodiscard]] std::optional<StepNumber> step() const;
  [[nodiscard]] std::size_t things_held() const { return life_ ? life_->chains.size() : 0; }

 private:
  // State that ends with an incarnation.
  struct Life {
    Life(const CheckConfig& its_config, net::PeerId self);
    const CheckConfig config;
    const CheckNumbers numbers;
    cluster::Collectives exchanges;
    Epoch installed;
    StepNumber step;
    std::map<std::uint64_t, std::uint64_t> chains;  // of the things held, before `step`
    std::size_t members = 0;                        // members that hold things
    bool working = false;                           // it takes part in the exchanges of `installed`
    std::optional<Instant> next_step;
    Instant step_begun;
  };

  void on_one(const cluster::LifeBegun& event, Instant now);
  void on_one(const cluster::LifeEnded& event, Instant now);
  void on_one(const cluster::BeginFailed&, Instant) {}
  void on_one(const cluster::MemberEvent& event, Instant now);
  void on_one(const net::Arrived& event, Instant now);
  void rest(Instant now);
  void go_on(Instant now);
  [[nodiscard]] Result<std::map<std::uint64_t, std::uint64_t>> installed_chains(
      const membership::Install& installed, StepNumber& resume) const;
  void begin_exchanges(Instant now);
  void begin_step(Instant now);
  [[nodiscard]] Slice form_input(Instant now);
  void carry_out(cluster::CollectiveEvents events, Instant now);
  void apply(const Slices& sum, Instant now);
  void finish(Instant now);
  void fail(Error error, Instant now);

  cluster::MemberProcess& process_;
  const Options options_;
  std::optional<Life> life_;
  std::optional<std::string> leaving_;
  std::optional<Error> failure_;
  CheckCounters counters_;
};

}  // namespace gossamer::check
