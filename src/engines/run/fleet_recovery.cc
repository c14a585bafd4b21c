// SPDX-License-Identifier: Apache-2.0
#include "engines/run/fleet_recovery.h"

#include "base/check.h"

namespace gossamer::engine {
namespace {

std::string plain(const std::string& text) { return text; }
std::uint64_t plain(StepNumber step) { return step.value; }
double plain(Duration time) { return time.seconds(); }
std::uint64_t plain(std::uint64_t count) { return count; }

}  // namespace

RecoveryFields fields_of(const FleetRecovery& recovery) {
  RecoveryFields fields;
  std::size_t count = 0;
  FleetRecovery::describe(recovery, [&](std::string_view name, const auto& value) {
    fields.at(count++) = {.key = name, .value = plain(value)};
  });
  CHECK(count == fields.size(), count);
  return fields;
}

}  // namespace gossamer::engine
