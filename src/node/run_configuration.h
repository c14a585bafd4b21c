// SPDX-License-Identifier: Apache-2.0
//
// RunConfiguration: what a coordinator hands to each member that begins a life. It is the same for all of a
// run's life. As bytes it begins with a line, behind which the engine's own bytes stand:
//
//   check gossamer 0.1.0
//
// The line of a run with a Supply begins with its version. A second line has the size of the Supply in bytes.
// The Supply and the engine's own bytes follow:
//
//   supply-2 sparse gossamer 0.1.0
//   312
//
// A version that does not know these first words knows no such engine, and says so (configured_engine.h).
//
// Thread rule: plain values and functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/files/supply.h"

namespace gossamer::node {

// What an engine must have before it can begin.
enum class Needs { kNothing, kSupply };
// The first words of a configuration: what a node must be able to do for the run. `engine` is one word.
[[nodiscard]] std::string run_words(std::string_view engine, Needs needs);

struct RunConfiguration {
  std::string engine;   // one word
  std::string program;  // that wrote it, for people
  std::optional<Supply> supply = {};
  std::string own;  // bytes for the engine

  [[nodiscard]] Needs needs() const { return supply ? Needs::kSupply : Needs::kNothing; }
  bool operator==(const RunConfiguration&) const = default;
};

[[nodiscard]] std::string run_configuration_bytes(const RunConfiguration& configuration);
// kBadData where a Supply cannot be read. Any other bytes are some engine's.
[[nodiscard]] Result<RunConfiguration> read_run_configuration(std::string_view bytes);

}  // namespace gossamer::node
