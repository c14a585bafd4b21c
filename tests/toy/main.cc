// SPDX-License-Identifier: Apache-2.0
//
// gossamer_toy: the product's program with one engine more.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <sstream>

#include "apps/cli/run_main.h"
#include "commands/engines.h"
#include "commands/run/sectioned_training.h"
#include "engines/run/lockstep_workload.h"
#include "host/api/files.h"
#include "settings/needed_key.h"
#include "tests/toy/toy.h"

namespace gossamer::toy {

const settings::KeyTable<Config>& keys() {
  using settings::key;
  static const settings::KeyTable<Config> table(
      {.listed_by = "gossamer train --keys toy"},
      {key<&Config::numbers>("numbers", {}, "path of a text of whole numbers"),
       key<&Config::batch>("batch", {.min = 1, .max = 1000}, "numbers that are added in a step"),
       key<&Config::pause_ms>("pause_ms", {.max = 1000}, "milliseconds between steps"),
       key<&Config::every_steps>("every_steps", {.min = 1, .max = 1e9}, "steps between checkpoints")});
  return table;
}

Result<void> Numbers::read(host::Disk& disk, const std::string& path) {
  const auto text = host::read_text(disk, path);
  if (!text.ok()) return text.error();
  std::istringstream words(*text);
  all_.clear();
  for (std::string word; words >> word;) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), all_.emplace_back());
    if (error != std::errc() || end != word.data() + word.size())
      return Error{.kind = ErrorKind::kBadData, .where = path, .what = "no whole number", .got = word};
  }
  return {};
}

std::uint64_t Numbers::sum(std::uint64_t thing, StepNumber begin, StepNumber end, std::uint64_t batch) const {
  std::uint64_t sum = 0;
  const std::uint64_t last = std::min(count(), end.value * batch);
  for (std::uint64_t i = begin.value * batch; i < last; ++i) sum += i % kThings == thing ? all_[i] : 0;
  return sum;
}

namespace {

class Training final : public commands::SectionedTraining {
 public:
  Training(const commands::TrainingPlace& place, const std::optional<commands::LeadOptions>& lead)
      : SectionedTraining(place, "toy", lead), config_(keys().config(place.config)) {}

  Result<void> load() override {
    const auto there = settings::needed(config(), "numbers");
    return there.ok() ? numbers_.read(host().disk, config_.numbers) : there;
  }
  [[nodiscard]] settings::Values config() const override { return keys().values(config_); }
  [[nodiscard]] commands::TrainingFacts facts() const override {
    return {.parameters = kThings, .batch = config_.batch, .samples = numbers_.count(), .title = "numbers"};
  }
  Result<void> save() override {
    for (std::uint64_t thing = 0; thing < kThings; ++thing) {
      const auto bytes = result(section_of(thing));
      if (!bytes.ok()) return bytes.error();
      std::uint64_t sum = 0;
      std::memcpy(&sum, bytes->data(), sizeof(sum));
      sum_ += sum;
    }
    if (auto made = host().disk.make_directories(paths().model()); !made.ok()) return made;
    return host::replace_file(host().disk, paths().model() + "/model.json",
                              fmt::format("{{\"engine\":\"toy\",\"sum\":{}}}\n", sum_));
  }
  Result<commands::Measurement> measure() override {
    return commands::Measurement{.metrics_json = fmt::format("{{\"sum\":{}}}", sum_)};
  }

 private:
  [[nodiscard]] Sections sections() const override {
    Sections sections{.steps = (numbers_.count() + config_.batch - 1) / config_.batch,
                      .data = config_.numbers,
                      .fingerprint = fmt::format("{} {}", config_.numbers, config_.batch)};
    for (std::uint64_t thing = 0; thing < kThings; ++thing)
      sections.all.push_back({section_of(thing), sizeof(std::uint64_t)});
    return sections;
  }
  [[nodiscard]] std::optional<std::uint64_t> thing_of(const std::string& section) const override {
    for (std::uint64_t thing = 0; thing < kThings; ++thing) {
      if (section == section_of(thing)) return thing;
    }
    return std::nullopt;
  }
  Result<void> supply(node::Supply& supply) const override {
    return node::add_file(host().disk, supply, "numbers", config_.numbers);
  }
  [[nodiscard]] commands::Led workload(StepNumber start) const override {
    auto workload = std::make_unique<engine::LockstepWorkload>(engine::LockstepWorkload::Options{
        .things = kThings, .thing_bytes = sizeof(std::uint64_t), .start = start, .steps = sections().steps});
    auto tracks = workload->tracks();
    return {.workload = std::move(workload), .tracks = std::move(tracks), .configuration = {}};
  }

  const Config config_;
  Numbers numbers_;
  std::uint64_t sum_ = 0;
};

commands::EngineEntry entry() {
  return {
      .name = "toy",
      .help = "adds numbers",
      .presets = {{.name = "toy", .help = "adds the numbers of a file", .toml = ""}},
      .keys = &keys(),
      .check = [](const settings::Values&) { return Result<void>(); },
      .prepare =
          [](const commands::TrainingPlace& place, const std::optional<commands::LeadOptions>& lead) {
            return std::make_unique<Training>(place, lead);
          },
      .member = [](const commands::MemberPlace& place) -> commands::MemberKinds {
        return {.kinds = {{.name = "toy",
                           .needs = node::Needs::kSupply,
                           .make = [place](const node::Supplied& got) { return make_member(place, got); }}}};
      }};
}

}  // namespace
}  // namespace gossamer::toy

int main(int argc, char** argv) {
  using namespace gossamer;
  return cli::run_main(argc, argv, commands::product_engines().with(toy::entry()));
}
