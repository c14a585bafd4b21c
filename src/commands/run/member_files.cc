// SPDX-License-Identifier: Apache-2.0
#include "commands/run/member_files.h"

#include <fmt/format.h>

#include "base/check.h"
#include "node/files/file_delivery.h"
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
  auto files =
      tensors::open_fleet_files(disk_, supplied_.elsewhere ? supplied_.supply.directory : told.checkpoints,
                                told.fingerprint, told.start, damage_);
  if (!files.ok()) return files.error();
  if (!files->has_value()) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = told.checkpoints,
                 .what = fmt::format("there is no checkpoint of step {}", told.start.value),
                 .got = "no file that can be read",
                 .expected = "the one that the run began with",
                 .fix = "resume the run: it goes on from the newest whole one"};
  }
  start_ = std::move((*files)->files);
  return {};
}

Result<std::optional<std::span<const std::byte>>> MemberFiles::at_start(const std::string& section,
                                                                        std::uint64_t bytes) {
  if (told_.start == StepNumber()) return std::optional<std::span<const std::byte>>();
  const auto there = tensors::fleet_section(start_, section, damage_);
  if (!there.ok()) return there.error();
  if (there->size() == bytes) return std::optional(*there);
  return Error{.kind = ErrorKind::kBadData,
               .where = "section " + section,
               .what = "the checkpoint has another size than the run",
               .got = fmt::format("{} bytes", there->size()),
               .expected = fmt::format("{} bytes", bytes),
               .fix = "look whether all machines run this version"};
}

tensors::CheckpointInfo MemberFiles::info(StepNumber next) const {
  return {.next_step = next, .run_id = told_.run, .config_fingerprint = told_.fingerprint};
}

void MemberFiles::save(StepNumber next, std::span<const tensors::NamedTensor> sections) {
  if (next == told_.start) return;
  const auto saved = tensors::write_fleet_file(disk_, checkpoints(), self_, info(next), sections);
  if (!saved.ok()) tell(FailedCheckpoint{.step = next, .error = saved.error().message()});
}

Result<void> MemberFiles::deliver(std::span<const tensors::NamedTensor> sections) {
  return tensors::write_fleet_file(disk_, supplied_.supply.deliver, self_, info(StepNumber(told_.steps)),
                                   sections);
}

bool MemberFiles::lasts() const {
  return !supplied_.elsewhere || supplied_.nobody_takes() ||
         fleet_files_brought(disk_, supplied_.supply.deliver);
}

bool fleet_files_brought(host::Disk& disk, const std::string& directory) {
  const auto files = tensors::list_fleet_files(disk, directory);  // those that are being written, too
  // The order matters: a file on its way moves from the first place to the second.
  return (!files.ok() || files->empty()) && !node::FileDelivery::has_to_take(disk, directory) &&
         !node::FileDelivery::under_way(disk, directory);
}

}  // namespace gossamer::commands
