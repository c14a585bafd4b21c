// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>

#include "commands/run/member_files.h"
#include "engines/run/lockstep_engine.h"
#include "net/link/channels.h"
#include "settings/toml.h"
#include "tests/toy/toy.h"

namespace gossamer::toy {
namespace {

class Member final : public engine::LockstepEngine {
 public:
  Member(const commands::MemberPlace& place, const node::Supplied& supplied)
      : LockstepEngine(place.process, net::kEngineChannel),
        disk_(place.host.disk),
        self_(place.self),
        files_(disk_, supplied, self_) {}
  [[nodiscard]] std::vector<CounterSample> counters() const override { return {}; }

 private:
  Result<Steps> prepare(const std::string& configuration) override {
    sums_.clear();
    const auto told = commands::read_led_configuration(configuration);
    if (!told.ok()) return told.error();
    const auto config = settings::read_config(keys(), told->keys, "the run's keys");
    if (!config.ok()) return config.error();
    config_ = *config;
    start_ = told->start;
    if (auto read = numbers_.read(disk_, files_.path_of("numbers")); !read.ok()) return read.error();
    if (auto begun = files_.begin(*told); !begun.ok()) return begun.error();
    return Steps{
        .all = told->steps, .pause = from_milliseconds(static_cast<double>(config_.pause_ms)), .saves = true};
  }
  [[nodiscard]] std::vector<std::uint64_t> things() const override {
    std::vector<std::uint64_t> things;
    for (const auto& [thing, sum] : sums_) things.push_back(thing);
    return things;
  }
  // Things that are new here get their sums from the checkpoint that the run began with, and the file.
  Result<GoOn> take_on(const membership::Install& installed, StepNumber next) override {
    GoOn go_on{.step = engine::read_step(installed.decision()).value_or(next)};
    std::map<std::uint64_t, std::uint64_t> sums;
    for (const membership::Holding& holding : installed.holdings()) {
      const std::uint64_t thing = holding.thing();
      if (NodeId(holding.node()) != self_) continue;
      if (next == go_on.step && sums_.contains(thing)) {
        sums[thing] = sums_[thing];
        continue;
      }
      const auto saved = files_.at_start(section_of(thing), sizeof(sums[thing]));
      if (!saved.ok()) return saved.error();
      if (*saved) std::memcpy(&sums[thing], (*saved)->data(), sizeof(sums[thing]));
      sums[thing] += added(thing, start_, go_on.step);
      go_on.steps_replayed = go_on.step.value - start_.value;
    }
    sums_ = std::move(sums);
    return go_on;
  }
  void form(StepNumber step, std::span<float> input, Instant) override {
    for (const auto& [thing, sum] : sums_) input[0] += static_cast<float>(added(thing, step, after(step)));
  }
  Result<std::optional<double>> apply(StepNumber step, std::span<const float>) override {
    std::uint64_t own = 0;
    for (auto& [thing, sum] : sums_) {
      own += added(thing, step, after(step));
      sum += added(thing, step, after(step));
    }
    return std::optional(static_cast<double>(own));
  }
  void applied(const engine::MemberStep& step, Duration) override {
    files_.tell(step);
    const StepNumber next = after(step.step);
    if (next.value % config_.every_steps == 0) save(next);
  }
  void recovered(const engine::FleetRecovery& recovery) override { files_.tell(recovery); }
  Result<void> finish() override { return files_.deliver(sections()); }
  void save(StepNumber next) override { files_.save(next, sections()); }
  [[nodiscard]] bool save_lasts() const override { return files_.lasts(); }

  [[nodiscard]] static StepNumber after(StepNumber step) { return StepNumber(step.value + 1); }
  [[nodiscard]] std::uint64_t added(std::uint64_t thing, StepNumber begin, StepNumber end) const {
    return numbers_.sum(thing, begin, end, config_.batch);
  }
  [[nodiscard]] std::vector<tensors::NamedTensor> sections() {
    std::vector<tensors::NamedTensor> sections;
    for (auto& [thing, sum] : sums_)
      sections.push_back({section_of(thing), std::as_writable_bytes(std::span(&sum, 1))});
    return sections;
  }

  host::Disk& disk_;
  const NodeId self_;
  commands::MemberFiles files_;
  Config config_;
  StepNumber start_;
  Numbers numbers_;
  std::map<std::uint64_t, std::uint64_t> sums_;  // of the things held, before the next step
};

}  // namespace

std::unique_ptr<cluster::Engine> make_member(const commands::MemberPlace& place,
                                             const node::Supplied& supplied) {
  return std::make_unique<Member>(place, supplied);
}

}  // namespace gossamer::toy
