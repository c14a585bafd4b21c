// SPDX-License-Identifier: Apache-2.0
//
// CheckpointWriter: a member's files of the run's checkpoints, written beside the steps, which wait no longer
// than what it holds takes to be copied; or until the file before is there. A failure costs one checkpoint
// and is told; the destructor waits for what is under way.
//
// Thread rule: one owner, the thread that computes; one of its own writes.
#pragma once

#include <functional>
#include <future>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/config.h"
#include "engines/sparse/fleet/fleet_checkpoint.h"
#include "host/api/clock.h"
#include "host/api/disk.h"
#include "host/posix/serial_thread.h"

namespace gossamer::node {

class CheckpointWriter {
 public:
  struct Options {
    std::string directory;  // exists
    NodeId node;
    engine::FleetShape shape;
    sparse::TableMoments moments;
    engine::CheckpointInfo info;  // of every file, but for its step
    double every_minutes = 0;     // 0: not by time
  };
  // On the owner's thread, with some later call. Disk and clock outlive the writer.
  using Failed = std::function<void(StepNumber step, const Error& error)>;
  CheckpointWriter(host::Disk& disk, const host::Clock& clock, Options options, Failed failed);

  // So long ago is the last one, or the beginning.
  [[nodiscard]] bool due() const;
  void save(StepNumber step, sparse::Network& part);
  // Waits.
  void finish();
  // Tells of a failure, if there is one by now.
  void look();

 private:
  host::Disk& disk_;
  const host::Clock& clock_;
  const Options options_;
  const Failed failed_;
  Instant last_;
  StepNumber step_;                    // of what is under way
  std::future<Result<void>> writing_;  // invalid: nothing is
  host::SerialThread thread_;          // ends first
};

}  // namespace gossamer::node
