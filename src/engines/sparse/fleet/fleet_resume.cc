// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_resume.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "learn/sparse/network/network.h"
#include "learn/sparse/network/row_order.h"
#include "tensors/fleet_files.h"

namespace gossamer::sparse_engine {
namespace {

// Node 0 is no node. Its file has what one process held.
constexpr NodeId kOneProcess{0};

unsigned own_shift(const TrainInputs& inputs) {
  return sparse::shard_shift(inputs.schema.labels(), inputs.shards);
}

// The network as one process has it.
sparse::Network whole_network(const TrainInputs& inputs) {
  const CheckpointedRun run = checkpointed_run(inputs);
  sparse::Network network(run.network, sparse::whole(run.network, own_shift(inputs)), run.moments);
  network.order = sparse::RowOrder(inputs.labels.count, own_shift(inputs));
  return network;
}

// Removes the files of steps from `begin` on; if it says so, only of those that look whole.
enum class Which { kAll, kWhole };
Result<void> remove_from(const TrainInputs& inputs, StepNumber begin, Which which) {
  const auto files = tensors::list_fleet_files(inputs.disk, inputs.checkpoint_directory);
  if (!files.ok()) return files.error();
  const auto nobody = [](std::string_view, EventFields) {};
  for (auto step = files->lower_bound(begin); step != files->end(); ++step) {
    const bool removes =
        which == Which::kAll || FleetCheckpoint::open(inputs.disk, inputs.checkpoint_directory,
                                                      checkpointed_run(inputs), step->first, nobody)
                                    .ok();
    if (!removes) continue;
    for (const std::string& name : step->second) {
      const std::string path = inputs.checkpoint_directory + "/" + name;
      if (auto removed = inputs.disk.remove_all(path); !removed.ok()) return removed;
    }
  }
  return {};
}

// Makes a fleet's checkpoint of one process's newest readable one, if that is newer than `step`.
Result<std::optional<tensors::CheckpointInfo>> part_checkpoint(const TrainInputs& inputs, StepNumber step,
                                                               EventSink events) {
  sparse::Network network = whole_network(inputs);
  // Hash tables are not divided: each member makes its own.
  const auto hashed = hash_tables(inputs, network);
  auto tables = hashed ? std::optional(hashed->state()) : std::nullopt;
  auto loaded =
      tensors::load_newest_checkpoint(inputs.disk, inputs.checkpoint_directory, fingerprint_of(inputs),
                                      checkpoint_tensors(network, tables), events);
  if (!loaded.ok()) return loaded.error();
  if (!loaded->has_value() || (*loaded)->next_step <= step) return std::optional<tensors::CheckpointInfo>();
  tensors::CheckpointInfo info = **std::move(loaded);
  const CheckpointedRun run = checkpointed_run(inputs);
  info.config_fingerprint = run.fingerprint;
  PartCopy copy({.network = run.network, .shard_shift = own_shift(inputs)}, run.moments, network);
  if (auto written = copy.write(inputs.disk, inputs.checkpoint_directory, kOneProcess, info); !written.ok())
    return written.error();
  if (auto kept = tensors::write_run_record(inputs.disk, inputs.checkpoint_directory, info); !kept.ok())
    return kept.error();
  return std::optional(std::move(info));
}

}  // namespace

CheckpointedRun checkpointed_run(const TrainInputs& inputs) {
  return {.network = network_shape(inputs.recipe, inputs.schema.features(), inputs.schema.labels()),
          .moments = table_moments(inputs.config.optimizer.moments),
          .fingerprint = run_fingerprint(inputs.config, inputs.recipe, inputs.schema)};
}

namespace {

// The newest checkpoint of one process, and the newest of several nodes.
struct NewestCheckpoints {
  std::optional<tensors::CheckpointInfo> own;
  std::optional<FleetCheckpoint> parts;
};

Result<NewestCheckpoints> newest_of_both(const TrainInputs& inputs, EventSink events) {
  auto own = tensors::newest_checkpoint(inputs.disk, inputs.checkpoint_directory);
  if (!own.ok()) return own.error();
  auto parts = FleetCheckpoint::open_newest(inputs.disk, inputs.checkpoint_directory,
                                            checkpointed_run(inputs), FleetCheckpoint::Verify::kAll, events);
  if (!parts.ok()) return parts.error();
  return NewestCheckpoints{.own = *std::move(own), .parts = *std::move(parts)};
}

}  // namespace

Result<void> join_fleet_checkpoint(const TrainInputs& inputs, EventSink events) {
  const auto newest = newest_of_both(inputs, events);
  if (!newest.ok()) return newest.error();
  const auto& [own, parts] = *newest;
  if (!parts || (own && own->next_step >= parts->step())) return {};
  sparse::Network network = whole_network(inputs);
  if (auto restored = parts->restore(network, inputs.labels.count, events); !restored.ok()) return restored;
  tensors::CheckpointInfo info = parts->info();
  info.config_fingerprint = fingerprint_of(inputs);
  const auto hashed = hash_tables(inputs, network);
  if (hashed) hashed->prepare(info.next_step);
  auto tables = hashed ? std::optional(hashed->state()) : std::nullopt;
  if (auto saved = tensors::save_checkpoint(inputs.disk, inputs.checkpoint_directory, info,
                                            checkpoint_tensors(network, tables),
                                            static_cast<int>(inputs.config.checkpoint.keep));
      !saved.ok())
    return saved;
  return remove_from(inputs, StepNumber(), Which::kAll);
}

Result<FleetStart> prepare_fleet_start(const TrainInputs& inputs, EventSink events) {
  const auto newest = newest_of_both(inputs, events);
  if (!newest.ok()) return newest.error();
  const auto& [own, parts] = *newest;
  FleetStart start;
  if (parts) start.from = parts->info();
  if (own && own->next_step > start.from.next_step) {
    if (own->finished) return FleetStart{.from = *own, .trained = true};
    auto parted = part_checkpoint(inputs, start.from.next_step, events);
    if (!parted.ok()) return parted.error();
    if (parted->has_value()) start.from = **parted;
  }
  const StepNumber after =
      start.from.next_step > StepNumber() ? StepNumber(start.from.next_step.value + 1) : StepNumber();
  if (auto removed = remove_from(inputs, after, Which::kWhole); !removed.ok()) return removed.error();
  return start;
}

}  // namespace gossamer::sparse_engine
