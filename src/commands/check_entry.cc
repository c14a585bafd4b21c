// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "commands/engine/member_place.h"
#include "commands/engine/training.h"
#include "commands/engines.h"
#include "engines/check/check_config.h"
#include "engines/check/check_engine.h"
#include "engines/check/check_workload.h"

namespace gossamer::commands {
namespace {

constexpr std::string_view kName = "check";

Result<Led> workload(const settings::Values& values) {
  const check::CheckConfig config = check::check_keys().config(values);
  auto workload = std::make_unique<check::CheckWorkload>(config);
  auto tracks = workload->tracks();
  return Led{.workload = std::move(workload),
             .tracks = std::move(tracks),
             .configuration = check::check_config_bytes(config)};
}

MemberKinds check_member(const MemberPlace& place) {
  return {.kinds = {{.name = std::string(kName), .make = [place](const node::Supplied&) {
                       return std::make_unique<check::CheckEngine>(
                           place.process, check::CheckEngine::Options{.clock = &place.host.clock});
                     }}}};
}

}  // namespace

EngineEntry check_entry() {
  return {
      .name = kName,
      .help = "shows that a fleet works",
      .keys = &check::check_keys(),
      .check =
          [](const settings::Values& values) { return check::validate(check::check_keys().config(values)); },
      .workload = workload,
      .member = check_member};
}

}  // namespace gossamer::commands
