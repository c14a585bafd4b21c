// SPDX-License-Identifier: Apache-2.0
#include "commands/run/member_files.h"

#include "base/check.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {

MemberFiles::MemberFiles(host::Disk& disk, const node::Supplied& supplied, NodeId self)
    : disk_(disk), supplied_(supplied), self_(self) {}

std::string MemberFiles::path_of(const std::string& name) const {
  const node::Supply::File* const file = supplied_.supply.find(name);
  CHECK(file != nullptr, name);
  return supplied_.supply.place_of(*file).path;
}

// A member without the coordinator's directories delivers its checkpoints.
const std::string& MemberFiles::checkpoints() const {
  return supplied_.elsewhere ? supplied_.supply.deliver : told_.checkpoints;
}

Result<void> MemberFiles::begin(const LedConfiguration& told) {
  told_ = told;
  start_.clear();
  if (told.start == StepNumber()) return {};
  const auto nobody = [](std::string_view, EventFields) {};
  auto files =
      tensors::open_fleet_files(disk_, supplied_.elsewhere ? supplied_.supply.directory : told.checkpoints,
                                told.fingerprint, told.start, nobody);
  if (!files.ok()) return files.error();
  if (files->has_value()) start_ = std::move((*files)->files);
  return {};
}

std::span<const std::byte> MemberFiles::at_start(const std::string& section) const {
  for (const tensors::CheckpointFile& file : start_) {
    if (const auto bytes = file.section(section); bytes.ok()) return *bytes;
  }
  return {};
}

tensors::CheckpointInfo MemberFiles::info(StepNumber next) const {
  return {.next_step = next, .run_id = told_.run, .config_fingerprint = told_.fingerprint};
}

void MemberFiles::save(StepNumber next, std::span<const tensors::NamedTensor> sections) {
  const auto saved = tensors::write_fleet_file(disk_, checkpoints(), self_, info(next), sections);
  if (!saved.ok()) tell(FailedCheckpoint{.step = next, .error = saved.error().message()});
}

Result<void> MemberFiles::deliver(std::span<const tensors::NamedTensor> sections) {
  return tensors::write_fleet_file(disk_, supplied_.supply.deliver, self_, info(StepNumber(told_.steps)),
                                   sections);
}

}  // namespace gossamer::commands
