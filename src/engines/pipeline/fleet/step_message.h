// SPDX-License-Identifier: Apache-2.0
//
// The messages of a step as bytes and back (docs/protocols/pipeline-step.md, "Messages"). What is read may
// come from a stranger: nothing comes back for bytes that no member writes.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/ids.h"
#include "base/slice.h"
#include "engines/pipeline/step/layout.h"
#include "engines/pipeline/step/record.h"
#include "net/link/message.h"

namespace gossamer::pipeline {

struct Credit {
  std::uint64_t total = 0;
  bool operator==(const Credit&) const = default;
};
struct Forward {
  std::uint64_t microbatch = 0;
  bool operator==(const Forward&) const = default;
};
struct Backward {
  std::uint64_t microbatch = 0;
  bool operator==(const Backward&) const = default;
};
struct AllBack {
  bool operator==(const AllBack&) const = default;
};

struct StepMessage {
  Attempt attempt;
  std::variant<Credit, Forward, Backward, AllBack> what;
  bool operator==(const StepMessage&) const = default;
};

[[nodiscard]] net::Message write_step_message(const StepMessage& message, Slices payload = {});
// Only Forward and Backward have a payload.
[[nodiscard]] std::optional<StepMessage> read_step_message(const net::Message& message);

inline constexpr std::size_t kRecordBytes = 50;
[[nodiscard]] Slice write_record(const StepRecord& record);
[[nodiscard]] std::optional<StepRecord> read_record(const Slices& bytes);

}  // namespace gossamer::pipeline
