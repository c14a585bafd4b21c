// SPDX-License-Identifier: Apache-2.0
#include "commands/train/disk_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/human_bytes.h"
#include "tensors/checkpoint.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {
namespace {

std::uint64_t size_of(host::Disk& disk, const std::string& file) {
  const auto size = disk.file_size(file);
  return size.ok() ? *size : 0;
}

struct Contents {
  std::vector<std::string> names;
  std::uint64_t bytes = 0;
};
// The contents of a flat directory; nothing when it is missing.
Contents contents_of(host::Disk& disk, const std::string& directory) {
  Contents contents;
  const auto there = disk.exists(directory);
  if (!there.ok() || !*there) return contents;
  const auto names = disk.list(directory);
  if (!names.ok()) return contents;
  contents.names = *names;
  for (const std::string& name : contents.names) contents.bytes += size_of(disk, directory + "/" + name);
  return contents;
}

// Counts steps, because nodes write several files for each checkpoint.
std::uint64_t checkpoints_in(const std::vector<std::string>& names) {
  std::set<StepNumber> steps;
  for (const std::string& name : names) {
    if (const auto step = tensors::read_checkpoint_name(name)) steps.insert(*step);
    if (const auto part = tensors::read_fleet_file_name(name)) steps.insert(part->step);
  }
  return steps.size();
}

bool switched_on(const sparse_engine::CheckpointConfig& when) {
  return when.every_steps > 0 || when.every_minutes > 0;
}

// The most that lies on the disk at once: when the periodic checkpoints are most, when the one after the last
// step is written beside those that are kept, or when the model is.
std::uint64_t peak_bytes(const RunSpace& run, std::uint64_t at_once) {
  const sparse_engine::DiskNeeded& needed = run.needed;
  const sparse_engine::CheckpointConfig& when = run.config.checkpoint;
  const std::uint64_t model = needed.parts + needed.model;
  if (!switched_on(when)) return at_once * needed.checkpoint + model;
  const std::uint64_t before_last = std::min<std::uint64_t>(at_once, when.keep) * needed.checkpoint;
  const std::uint64_t after_last = std::min<std::uint64_t>(at_once, when.keep - 1) * needed.checkpoint;
  return std::max(at_once * needed.checkpoint,
                  needed.last_checkpoint + std::max(before_last, after_last + model));
}

}  // namespace

std::uint64_t checkpoints_at_once(const CheckpointPlan& plan) {
  const sparse_engine::CheckpointConfig& when = plan.when;
  if (!switched_on(when)) return plan.kept_now;
  std::uint64_t written = plan.kept_now;
  // The checkpoint after the last step is counted elsewhere.
  if (when.every_steps > 0 && plan.steps > 0)
    written = std::max(written, (plan.steps - 1) / when.every_steps);
  if (when.every_minutes > 0) written = std::max<std::uint64_t>(written, plan.kept_now + 1);
  if (when.every_minutes > 0) written = std::max<std::uint64_t>(written, 2);
  return std::min<std::uint64_t>(written, std::uint64_t{when.keep} + 1);
}

Result<void> check_run_space(host::Disk& disk, const RunSpace& run) {
  const auto free = disk.free_bytes(run.paths.root);
  if (!free.ok()) return {};
  const sparse_engine::CheckpointConfig& when = run.config.checkpoint;
  const Contents kept = contents_of(disk, run.paths.checkpoints());
  const bool trained =
      std::ranges::find(kept.names, tensors::checkpoint_name(StepNumber{run.steps})) != kept.names.end();
  const std::uint64_t kept_now = checkpoints_in(kept.names);
  const std::uint64_t at_once =
      trained ? kept_now : checkpoints_at_once({.when = when, .steps = run.steps, .kept_now = kept_now});
  const std::uint64_t parts_there = contents_of(disk, run.paths.parts()).bytes;
  const std::uint64_t peak = trained ? kept.bytes + parts_there + run.needed.model : peak_bytes(run, at_once);
  const std::uint64_t wanted = peak + kRunLogBytes;
  const std::uint64_t there = kept.bytes + parts_there + contents_of(disk, run.paths.model() + ".tmp").bytes;
  if (wanted <= *free + there) return {};
  const std::string checkpoints =
      at_once == 0 ? ""
                   : fmt::format("up to {} checkpoints of {}, ", at_once, human_bytes(run.needed.checkpoint));
  const std::string delivered =
      run.needed.parts == 0 ? "" : fmt::format("{} for what nodes deliver, ", human_bytes(run.needed.parts));
  const std::string parts = fmt::format("{}: {}{}{} for the model, the rest for logs", human_bytes(wanted),
                                        checkpoints, delivered, human_bytes(run.needed.model));
  std::string fix = fmt::format("free {} there", human_bytes(wanted - there - *free));
  if (run.begins) fix += ", or give an --out on a larger disk";
  if (run.begins && switched_on(when) &&
      run.needed.parts + run.needed.model + kRunLogBytes <= *free + there) {
    fix += ", or do without checkpoints: checkpoint.every_minutes=0 checkpoint.every_steps=0";
  }
  return Error{.kind = ErrorKind::kFailed,
               .where = run.paths.root,
               .what = "the disk is too small for the run",
               .got = fmt::format("{} free", human_bytes(*free + there)),
               .expected = parts,
               .fix = std::move(fix)};
}

}  // namespace gossamer::commands
