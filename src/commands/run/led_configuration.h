// SPDX-License-Identifier: Apache-2.0
//
// LedConfiguration: what the lead of a training run tells its members beside the Supply, for engines whose
// members need no more than the keys. As bytes it is a TOML text.
//
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/result.h"

namespace gossamer::commands {

struct LedConfiguration {
  std::string run;          // id of the run
  std::string checkpoints;  // directory on the coordinator's machine, from the root
  std::string fingerprint;  // of its checkpoints
  StepNumber start;         // that the run begins with. Not 0: there is a whole checkpoint of it
  std::uint64_t steps = 0;  // of the run
  std::string keys;         // of the engine, as a TOML text

  bool operator==(const LedConfiguration&) const = default;
};

[[nodiscard]] std::string led_configuration_bytes(const LedConfiguration& configuration);
// kBadData for bytes that are none.
[[nodiscard]] Result<LedConfiguration> read_led_configuration(const std::string& bytes);

}  // namespace gossamer::commands
