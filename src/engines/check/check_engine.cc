// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_engine.h"

#include <fmt/format.h>
#include <gossamer/check.pb.h>

#include <span>
#include <utility>
#include <vector>

namespace gossamer::check {
namespace {

Error failed_check(std::string where, std::string got, std::string expected) {
  return {.where = std::move(where),
          .what = "the fleet check has failed",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "if all members report it, one has sent what was wrong; if one does, look at its machine"};
}

}  // namespace

CheckCounters CheckEngine::check_counters() const {
  CheckCounters counters = counters_;
  counters.sent_bytes = exchanged_bytes();
  return counters;
}

Result<CheckEngine::Steps> CheckEngine::prepare(const std::string& configuration) {
  const auto config = read_check_config(configuration);
  if (!config.ok()) return config.error();
  config_ = *config;
  numbers_.emplace(config_);
  chains_.clear();
  return Steps{.all = config_.steps > 0 ? std::optional(config_.steps) : std::nullopt,
               .elements = config_.elements,
               .pause = from_milliseconds(static_cast<double>(config_.pause_ms)),
               .least = kStepTime};
}

std::vector<std::uint64_t> CheckEngine::things() const {
  std::vector<std::uint64_t> things;
  for (const auto& [thing, chain] : chains_) things.push_back(thing);
  return things;
}

std::string CheckEngine::report(StepNumber next) const {
  Report report;
  report.set_installed(installed().value);
  report.set_step(next.value);
  for (const auto& [thing, chain] : chains_) {
    Report::Held& held = *report.add_held();
    held.set_thing(thing);
    held.set_chain(chain);
  }
  return report.SerializeAsString();
}

// The chains of the things that this member now holds, and in `resume` the step to go on at.
Result<CheckEngine::Chains> CheckEngine::installed_chains(const membership::Install& installed,
                                                          StepNumber next, StepNumber& resume) const {
  const std::string where = fmt::format("epoch {}", installed.epoch());
  check::Decision decision;
  if (!decision.ParseFromString(installed.decision()))
    return failed_check(where, "a decision that cannot be read", "one of a fleet check");
  if (!decision.fault().empty()) return failed_check(where, decision.fault(), "reports that agree");
  resume = StepNumber(decision.resume());
  if (resume < next) {
    return failed_check(where, fmt::format("the order to go back to step {}", resume.value),
                        fmt::format("at least {}, up to which this member has come", next.value));
  }
  Chains chains;
  for (const membership::Holding& holding : installed.holdings()) {
    const std::uint64_t thing = holding.thing();
    if (thing >= config_.things || decision.chains_size() != static_cast<int>(config_.things))
      return failed_check(where, fmt::format("thing {}", thing),
                          fmt::format("{} things with chains", config_.things));
    if (NodeId(holding.node()) != member().self().node) continue;
    const std::uint64_t decided = decision.chains(static_cast<int>(thing));
    const std::uint64_t right = numbers_->chain(thing, resume);
    const auto own = chains_.find(thing);
    const bool ours = own != chains_.end() && next == resume;
    for (const std::uint64_t chain : {decided, ours ? own->second : decided}) {
      if (chain == right) continue;
      return failed_check(where, fmt::format("chain {:016x} of thing {}", chain, thing),
                          fmt::format("{:016x} after {} steps", right, resume.value));
    }
    chains[thing] = decided;
  }
  return chains;
}

Result<CheckEngine::GoOn> CheckEngine::take_on(const membership::Install& installed, StepNumber next) {
  StepNumber resume;
  auto chains = installed_chains(installed, next, resume);
  if (!chains.ok()) return chains.error();
  chains_ = *std::move(chains);
  return GoOn{.step = resume};
}

void CheckEngine::form(StepNumber step, std::span<float> input, Instant now) {
  const host::Clock* const clock = options_.clock;
  const Instant before = clock == nullptr ? Instant{} : clock->now();
  for (const auto& [thing, chain] : chains_) numbers_->add_input(thing, step, input);
  const Duration taken = clock == nullptr ? Duration{} : clock->now() - before;
  const auto work = static_cast<double>(chains_.size());
  if (taken.ns > 0)
    member().measured({.work = work, .took = taken, .cpu = {}, .process_cpu = {}, .all_cpu = {}}, now);
  if (options_.defect == CheckDefect::kWrongSum && options_.defect_step == step) input.front() += 1;
}

Result<std::optional<double>> CheckEngine::apply(StepNumber step, std::span<const float> sum) {
  if (const auto wrong = numbers_->find_wrong(step, sum)) {
    return failed_check(fmt::format("step {}", step.value),
                        fmt::format("{} as element {} of the sum", wrong->got, wrong->element),
                        fmt::format("{}", wrong->expected));
  }
  const std::uint64_t digest = check_digest(sum);
  const bool twice = options_.defect == CheckDefect::kStepTwice && options_.defect_step == step;
  for (auto& [thing, chain] : chains_) {
    chain = next_chain(chain, digest);
    if (twice) chain = next_chain(chain, digest);
  }
  return std::optional<double>();
}

void CheckEngine::applied(const engine::MemberStep&, Duration took) {
  ++counters_.steps;
  counters_.step_ns += static_cast<std::uint64_t>(took.ns);
}

// Checks the chains at the end, because nobody else will look at them again.
Result<void> CheckEngine::finish() {
  const StepNumber end = step().value();
  for (const auto& [thing, chain] : chains_) {
    const std::uint64_t right = numbers_->chain(thing, end);
    if (chain == right) continue;
    return failed_check("the end", fmt::format("chain {:016x} of thing {}", chain, thing),
                        fmt::format("{:016x} after {} steps", right, end.value));
  }
  return {};
}

}  // namespace gossamer::check
