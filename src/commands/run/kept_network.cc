// SPDX-License-Identifier: Apache-2.0
#include "commands/run/kept_network.h"

#include <nlohmann/json.hpp>

#include <cstdint>

#include "json/read_json.h"
#include "tensors/checkpoint.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {

Result<KeptNetwork> kept_network(host::Disk& disk, const run::RunPaths& paths, std::string_view summary) {
  KeptNetwork kept;
  const auto own = tensors::newest_checkpoint(disk, paths.checkpoints());
  if (!own.ok()) return own.error();
  if (own->has_value()) kept = {.step = (*own)->next_step, .trained = (*own)->finished};
  const auto files = tensors::list_fleet_files(disk, paths.checkpoints());
  if (!files.ok()) return files.error();
  if (files->empty() || files->rbegin()->first <= kept.step) return kept;
  const auto told = read_json<nlohmann::json>(summary);
  const auto steps = told.is_object() ? told.value("steps", nlohmann::json()) : nlohmann::json();
  kept.step = files->rbegin()->first;
  kept.trained = steps.is_number_unsigned() && steps.get<std::uint64_t>() == kept.step.value;
  return kept;
}

}  // namespace gossamer::commands
