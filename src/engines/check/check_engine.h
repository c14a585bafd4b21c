// SPDX-License-Identifier: Apache-2.0
//
// CheckEngine: a member's side of a fleet check. In each step all members that hold things sum a vector
// (engines/run/lockstep_engine.h) and compare every bit of the sum with its closed form. Each carries the sum
// into the chains of its things (check_numbers.h). At rest they report their chains, and they go on where the
// coordinator decides (check_workload.h). After the last step, if there is one, they are quiet.
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
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/member_process.h"
#include "engines/check/check_config.h"
#include "engines/check/check_numbers.h"
#include "engines/run/lockstep_engine.h"
#include "host/api/clock.h"

namespace gossamer::check {

using net::kCheckChannel;

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

class CheckEngine final : public engine::LockstepEngine {
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
      : LockstepEngine(process, kCheckChannel), options_(options) {}

  [[nodiscard]] std::vector<CounterSample> counters() const override { return read(check_counters()); }
  [[nodiscard]] CheckCounters check_counters() const;
  [[nodiscard]] std::size_t things_held() const { return step() ? chains_.size() : 0; }

 private:
  using Chains = std::map<std::uint64_t, std::uint64_t>;

  [[nodiscard]] Result<Steps> prepare(const std::string& configuration) override;
  [[nodiscard]] std::vector<std::uint64_t> things() const override;
  [[nodiscard]] std::string report(StepNumber next) const override;
  [[nodiscard]] Result<GoOn> take_on(const membership::Install& installed, StepNumber next) override;
  void form(StepNumber step, std::span<float> input, Instant now) override;
  [[nodiscard]] Result<std::optional<double>> apply(StepNumber step, std::span<const float> sum) override;
  void applied(const engine::MemberStep& step, Duration took) override;
  [[nodiscard]] Result<void> finish() override;
  [[nodiscard]] Result<Chains> installed_chains(const membership::Install& installed, StepNumber next,
                                                StepNumber& resume) const;

  const Options options_;
  CheckConfig config_;                   // of this life
  std::optional<CheckNumbers> numbers_;  // of `config_`
  Chains chains_;                        // of the things held, before the next step
  CheckCounters counters_;
};

}  // namespace gossamer::check
