// SPDX-License-Identifier: Apache-2.0
//
// The figures of a finished run, as `train --json` prints them. Seconds are wall seconds of the whole run.
// They add up all its processes, each up to the checkpoint that the next one continued from. Work that a
// crash threw away is not counted.
//
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engines/run/fleet_recovery.h"

namespace gossamer::commands {

struct TrainSummary {
  std::string engine;
  std::string run_id;
  std::uint64_t nodes = 1;
  std::uint64_t parameters = 0;
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double epochs = 0;
  double train_seconds = 0;  // from the first step to the model on disk
  double load_seconds = 0;   // reading, indexing, deriving the recipe
  double eval_seconds = 0;
  double cpu_seconds = 0;  // user and system of all processes, from the start to the model on disk
  double eval_cpu_seconds = 0;
  double samples_per_second = 0;     // samples a second of the training loop
  std::uint64_t peak_rss_bytes = 0;  // peak of the largest process
  // Bytes that a node hands to the socket: for a step, and for anything else during a step.
  double bytes_sent_per_node_per_step = 0;
  double background_bytes_per_node_per_step = 0;
  double final_loss = 0;
  std::vector<engine::FleetRecovery> recoveries;
  std::string metrics_json = "{}";
  std::string model_dir;

  // The figures of the last process alone, in a run that continued from a checkpoint.
  struct SinceResume {
    std::uint64_t step = 0;  // steps that were done before it
    double train_seconds = 0;
    double load_seconds = 0;
    double cpu_seconds = 0;
    double samples_per_second = 0;  // 0 when no step was left
  };
  std::optional<SinceResume> since_resume;
};

// One object on one line.
[[nodiscard]] std::string to_json(const TrainSummary& summary);

}  // namespace gossamer::commands
