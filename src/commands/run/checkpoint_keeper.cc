// SPDX-License-Identifier: Apache-2.0
#include "commands/run/checkpoint_keeper.h"

#include <algorithm>
#include <utility>

#include "tensors/fleet_files.h"

namespace gossamer::commands {

CheckpointKeeper::CheckpointKeeper(host::Disk& disk, Options options)
    : disk_(disk), options_(std::move(options)) {
  if (options_.start > StepNumber()) whole_.push_back(options_.start);
}

// Moves delivered files. A file that cannot be moved now is moved the next time.
void CheckpointKeeper::take_delivered() {
  if (options_.delivered.empty()) return;
  const auto files = tensors::list_fleet_files(disk_, options_.delivered);
  if (!files.ok()) return;
  for (const auto& [step, names] : *files) {
    for (const std::string& name : names) {
      if (!tensors::is_fleet_file(name)) continue;
      const auto moved = disk_.rename(options_.delivered + "/" + name, options_.directory + "/" + name);
      if (moved.ok()) seen_.erase(step);
    }
  }
  if (!files->empty()) bound_unfinished(*files);
}

// A member may deliver files of steps at which no other saves. They never become whole.
void CheckpointKeeper::bound_unfinished(const std::map<StepNumber, std::vector<std::string>>& delivered) {
  std::map<NodeId, std::vector<std::string>> unfinished;
  const auto files = tensors::list_fleet_files(disk_, options_.directory);
  if (!files.ok()) return;
  for (auto step = files->upper_bound(newest()); step != files->end(); ++step) {
    for (const std::string& name : step->second) {
      if (const auto file = tensors::read_fleet_file_name(name)) unfinished[file->node].push_back(name);
    }
  }
  for (const auto& [step, names] : delivered) {
    for (const std::string& name : names) {
      const auto file = tensors::read_fleet_file_name(name);
      const auto found = file ? unfinished.find(file->node) : unfinished.end();
      if (found == unfinished.end() || found->second.size() <= kMostUnfinished) continue;
      const std::string oldest = found->second.front();
      found->second.erase(found->second.begin());
      static_cast<void>(disk_.remove_all(options_.directory + "/" + oldest));
    }
  }
}

std::optional<StepNumber> CheckpointKeeper::unfinished() const {
  for (auto one = seen_.rbegin(); one != seen_.rend() && one->first > newest(); ++one) {
    if (one->second > 0) return one->first;
  }
  return std::nullopt;
}

void CheckpointKeeper::forget_unfinished() {
  const auto files = tensors::list_fleet_files(disk_, options_.directory);
  if (!files.ok()) return;
  for (auto step = files->upper_bound(newest()); step != files->end(); ++step) {
    for (const std::string& name : step->second)
      static_cast<void>(disk_.remove_all(options_.directory + "/" + name));
    seen_.erase(step->first);
  }
}

void CheckpointKeeper::look(const tensors::CheckpointInfo& info, EventSink events) {
  take_delivered();
  const auto files = tensors::list_fleet_files(disk_, options_.directory);
  if (!files.ok()) return;
  const bool again = ++looks_ % kLookAgain == 0;
  for (auto step = files->upper_bound(newest()); step != files->end(); ++step) {
    const auto written = static_cast<std::size_t>(
        std::ranges::count_if(step->second, [](const std::string& name) { return !name.ends_with(".tmp"); }));
    if (std::exchange(seen_[step->first], written) == written && !again) continue;
    if (!options_.whole(step->first)) continue;
    const bool known = std::ranges::any_of(step->second, tensors::is_run_record);
    if (!known) events("checkpoint_written", {{"step", step->first.value}});
    add(step->first);
    if (!known) record(info);
  }
}

tensors::RunCost cost_by_checkpoints(host::Disk& disk, const std::string& directory,
                                     const LedTraining& training) {
  tensors::RunCost most;
  const auto files = tensors::list_fleet_files(disk, directory);
  if (!files.ok()) return most;
  for (const auto& [step, names] : *files) {
    const auto info = training.checkpoint(step);
    if (info && info->cost.train_seconds > most.train_seconds) most = info->cost;
  }
  return most;
}

// Without this record a summary lacks what came before.
void CheckpointKeeper::record(tensors::CheckpointInfo info) const {
  info.next_step = newest();
  info.config_fingerprint = options_.fingerprint;
  static_cast<void>(tensors::write_run_record(disk_, options_.directory, info));
}

void CheckpointKeeper::add(StepNumber step) {
  whole_.push_back(step);
  seen_.erase(seen_.begin(), seen_.upper_bound(step));
  remove_old();
}

void CheckpointKeeper::remove_old() {
  while (whole_.size() > options_.keep) whole_.pop_front();
  // Moves of delivered files must last: a crash could undo them, and not what is removed here.
  if (!disk_.sync_directory(options_.directory).ok()) return;
  const auto names = disk_.list(options_.directory);
  const auto files = tensors::list_fleet_files(disk_, options_.directory);
  if (!names.ok() || !files.ok()) return;
  const auto remove = [this](const std::string& name) {
    static_cast<void>(disk_.remove_all(options_.directory + "/" + name));
  };
  for (auto step = files->begin(); step != files->lower_bound(whole_.front()); ++step) {
    if (options_.keeps_start && step->first == options_.start) continue;
    for (const std::string& name : step->second) remove(name);
  }
  // Checkpoints of one process go too.
  for (const std::string& name : *names) {
    const auto step = tensors::read_checkpoint_name(name);
    if (step && *step < whole_.front()) remove(name);
  }
}

}  // namespace gossamer::commands
