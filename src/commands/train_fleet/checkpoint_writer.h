// SPDX-License-Identifier: Apache-2.0
//
// CheckpointWriter writes a member's files of the run's checkpoints, beside the steps. Steps wait only while
// the member's state is copied, or until the file before is written. A failure costs one checkpoint and is
// told. The destructor waits for the file under way.
//
// Thread rule: one owner, the thread that computes. A thread of the writer's own writes.
#pragma once

#include <functional>
#include <future>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/fleet/fleet_checkpoint.h"
#include "host/api/clock.h"
#include "host/api/disk.h"
#include "host/posix/serial_thread.h"

namespace gossamer::commands {

class CheckpointWriter {
 public:
  struct Options {
    std::string directory;  // exists
    NodeId node;
    sparse_engine::FleetShape shape;
    sparse::TableMoments moments;
    tensors::CheckpointInfo info;  // for every file, but for its step
    double every_minutes = 0;      // 0: not by time
  };
  // Called on the owner's thread, within some later call. Disk and clock outlive the writer.
  using Failed = std::function<void(StepNumber step, const Error& error)>;
  CheckpointWriter(host::Disk& disk, const host::Clock& clock, Options options, Failed failed);

  // Whether the last checkpoint, or the beginning, is `every_minutes` ago.
  [[nodiscard]] bool due() const;
  void save(StepNumber step, sparse::Network& part);
  // Waits for the file under way.
  void finish();
  // Tells of a failure of the file under way, if there is one by now.
  void look();

 private:
  host::Disk& disk_;
  const host::Clock& clock_;
  const Options options_;
  const Failed failed_;
  Instant last_;
  StepNumber step_;                           // step of the file under way
  std::future<Result<void>> writing_;         // invalid: no file is under way
  host::SerialThread thread_{"checkpoints"};  // declared last: ends first
};

}  // namespace gossamer::commands
