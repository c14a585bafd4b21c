// SPDX-License-Identifier: Apache-2.0
#include "commands/run/checkpoint_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <variant>

#include "run/progress.h"

namespace gossamer::commands {
namespace {

template <class T>
const T* field_of(EventFields fields, std::string_view key) {
  const auto field = std::ranges::find(fields, key, &EventField::key);
  return field == fields.end() ? nullptr : std::get_if<T>(&field->value);
}

}  // namespace

void CheckpointWarnings::on_event(std::string_view name, EventFields fields) {
  if (name == "checkpoint_failed") failed(fields);
  if (name != "checkpoint_written" || failed_ == 0) return;
  const auto* const step = field_of<std::uint64_t>(fields, "step");
  if (step != nullptr && *step < failed_step_) return;  // a node was late
  host_.warn(fmt::format("checkpoints are written again: {}, after {} that could not be",
                         step != nullptr ? fmt::format("one of step {}", *step) : "one",
                         run::counted(failed_, "checkpoint")));
  failed_ = 0;
  told_.reset();
}

void CheckpointWarnings::failed(EventFields fields) {
  const auto* const step = field_of<std::uint64_t>(fields, "step");
  if (step == nullptr) return;
  // Each node tells of the same step.
  if (failed_ == 0 || *step > failed_step_) {
    ++failed_;
    failed_step_ = *step;
  }
  const Instant now = host_.clock.now();
  if (told_ && now - *told_ < kAgain) return;
  told_ = now;
  const auto* const node = field_of<std::uint64_t>(fields, "node");
  const auto* const error = field_of<std::string>(fields, "error");
  std::string line = fmt::format("no checkpoint of step {}", *step);
  if (node != nullptr) line += fmt::format(" by node {}", *node);
  if (error != nullptr) line += ": " + *error;
  if (failed_ > 1) line += fmt::format("\nThe {} before it could not be written either.", failed_ - 1);
  host_.warn(line);
}

}  // namespace gossamer::commands
