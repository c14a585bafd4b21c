// SPDX-License-Identifier: Apache-2.0
//
// The figures of a finished run, as `train --json` prints them. Seconds are wall seconds of the whole run: of
// all its processes, each up to the checkpoint that the next one continued from. Work that a crash threw away
// is not counted.
//
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gossamer::node {

// A change of a fleet's members that lost or moved something, until all went on.
struct RunRecovery {
  std::string cause;       // "node 3 was killed"
  std::uint64_t step = 0;  // the first after it
  // From the last step before to the first after, less a median step; and what of it was needed until
  // the others noticed, to agree on who does what, to bring what lay elsewhere, to compute anew what was
  // lost.
  double seconds = 0;
  double detect_seconds = 0;
  double agree_seconds = 0;
  double load_seconds = 0;
  double replay_seconds = 0;
  std::uint64_t steps_replayed = 0;
};

struct TrainSummary {
  std::string run_id;
  std::uint64_t nodes = 1;
  std::uint64_t parameters = 0;
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double epochs = 0;
  double train_seconds = 0;  // first step to the model on disk
  double load_seconds = 0;   // reading, indexing, deriving the recipe
  double eval_seconds = 0;
  double cpu_seconds = 0;  // user and system of all processes, from the start to the model on disk
  double eval_cpu_seconds = 0;
  double samples_per_second = 0;     // of the training loop
  std::uint64_t peak_rss_bytes = 0;  // of the largest process
  // Handed to the socket by a node: for a step, and for anything else during one.
  double bytes_sent_per_node_per_step = 0;
  double background_bytes_per_node_per_step = 0;
  double final_loss = 0;
  std::vector<RunRecovery> recoveries;
  std::string metrics_json = "{}";
  std::string model_dir;

  // The last process alone, of a run that continued from a checkpoint.
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

}  // namespace gossamer::node
