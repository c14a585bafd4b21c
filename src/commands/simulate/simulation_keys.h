// SPDX-License-Identifier: Apache-2.0
//
// The parts that the keys of several simulations have in common. Thread rule: pure functions, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "base/result.h"
#include "commands/simulate/simulation_preset.h"
#include "settings/key_table.h"
#include "simulation/fault.h"

namespace gossamer::commands {

inline constexpr settings::KeyWording kSimulationWording{.listed_by = "gossamer simulate --help",
                                                         .one = "an option"};
inline constexpr std::string_view kDrawn = "drawn";    // the seed draws the value
inline constexpr std::string_view kNoDefect = "none";  // no protection is switched off

// Sets what one setting of a scenario says. kUsage has its place.
template <class Options>
[[nodiscard]] Result<void> set_key(const settings::KeyTable<Options>& keys, Options& options,
                                   const settings::KeySetting& setting) {
  return keys.set_word(options, setting.name + "=" + setting.text, setting.where);
}

[[nodiscard]] Error contradiction(const settings::KeySetting& setting, std::string what,
                                  std::string expected);
// Refuses keys of drawn faults beside written ones.
[[nodiscard]] Result<void> check_drawn(const Scenario& scenario, const settings::KeySetting& setting);

// The kinds of faults that a text names, `all` being none. Gives what is expected of a text that names a kind
// beside `known`.
[[nodiscard]] std::optional<std::string> read_kinds(std::string_view text,
                                                    const std::vector<simulation::FaultKind>& known,
                                                    std::vector<simulation::FaultKind>& kinds);
[[nodiscard]] std::string kinds_text(const std::vector<simulation::FaultKind>& kinds);

// The key `kinds`.
template <class Options, std::vector<simulation::FaultKind> (*kKnown)()>
[[nodiscard]] settings::KeyRow<Options> kinds_row() {
  return {.key = {.name = "kinds", .help = "of the faults that are drawn, separated by commas"},
          .get = [](const Options& options, const settings::Key&) { return kinds_text(options.kinds); },
          .set = [](Options& options, const settings::Key&,
                    std::string_view text) { return read_kinds(text, kKnown(), options.kinds); }};
}

// What the key `break` expects in place of a name that is not among those of protections.
[[nodiscard]] std::string expected_protection(std::string_view text,
                                              const std::vector<std::string_view>& names);

// Runs seeds with these options; `run` gives the report of one.
template <class Options, class Run>
[[nodiscard]] RunSeed seeds_of(const Options& options, Run run) {
  return [options, run](std::uint64_t seed, const SimulationTrace& trace) {
    Options own = options;
    own.seed = seed;
    own.trace = trace;
    return run(own);
  };
}

template <class Probe, std::size_t kCount>
void add_probes(std::vector<SimulationProbe>& out, const std::array<ProbeName<Probe>, kCount>& names,
                const ProbeCounts<Probe>& counts) {
  for (const ProbeName<Probe>& one : names) out.push_back({one.name, one.sentence, counts.count(one.probe)});
}

}  // namespace gossamer::commands
