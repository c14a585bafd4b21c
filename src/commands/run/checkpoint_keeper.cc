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
      if (tensors::is_fleet_file(name))
        static_cast<void>(disk_.rename(options_.delivered + "/" + name, options_.directory + "/" + name));
    }
  }
}

void CheckpointKeeper::look(tensors::CheckpointInfo info, EventSink events) {
  take_delivered();
  const auto files = tensors::list_fleet_files(disk_, options_.directory);
  if (!files.ok()) return;
  for (auto step = files->upper_bound(newest()); step != files->end(); ++step) {
    const auto written = static_cast<std::size_t>(
        std::ranges::count_if(step->second, [](const std::string& name) { return !name.ends_with(".tmp"); }));
    if (std::exchange(seen_[step->first], written) == written) continue;
    if (!options_.whole(step->first)) continue;
    info.next_step = step->first;
    info.config_fingerprint = options_.fingerprint;
    // Without this record a summary lacks what came before.
    static_cast<void>(tensors::write_run_record(disk_, options_.directory, info));
    events("checkpoint_written", {{"step", step->first.value}});
    add(step->first);
  }
}

void CheckpointKeeper::add(StepNumber step) {
  whole_.push_back(step);
  seen_.erase(seen_.begin(), seen_.upper_bound(step));
  remove_old();
}

void CheckpointKeeper::remove_old() {
  while (whole_.size() > options_.keep) whole_.pop_front();
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
  // Checkpoints of one process go too. Their names have the order of their steps.
  for (const std::string& name : *names) {
    if (name.ends_with(".ckpt") && name < tensors::checkpoint_name(whole_.front())) remove(name);
  }
}

}  // namespace gossamer::commands
