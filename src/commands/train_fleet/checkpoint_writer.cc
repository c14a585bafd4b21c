// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/checkpoint_writer.h"

#include <chrono>
#include <memory>
#include <utility>

namespace gossamer::commands {

CheckpointWriter::CheckpointWriter(host::Disk& disk, const host::Clock& clock, Options options, Failed failed)
    : disk_(disk),
      clock_(clock),
      options_(std::move(options)),
      failed_(std::move(failed)),
      last_(clock.now()) {}

bool CheckpointWriter::due() const {
  return options_.every_minutes > 0 && clock_.now() - last_ >= from_seconds(60 * options_.every_minutes);
}

void CheckpointWriter::save(StepNumber step, sparse::Network& part) {
  finish();
  last_ = clock_.now();
  step_ = step;
  tensors::CheckpointInfo info = options_.info;
  info.next_step = step;
  auto copy = std::make_shared<sparse_engine::PartCopy>(options_.shape, options_.moments, part);
  auto done = std::make_shared<std::promise<Result<void>>>();
  writing_ = done->get_future();
  thread_.give([this, copy = std::move(copy), done = std::move(done), info = std::move(info)] {
    done->set_value(copy->write(disk_, options_.directory, options_.node, info));
  });
}

void CheckpointWriter::finish() {
  if (!writing_.valid()) return;
  if (const auto written = writing_.get(); !written.ok()) failed_(step_, written.error());
}

void CheckpointWriter::look() {
  if (writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) finish();
}

}  // namespace gossamer::commands
