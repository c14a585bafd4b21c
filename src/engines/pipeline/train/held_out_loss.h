// SPDX-License-Identifier: Apache-2.0
//
// The loss of a model on a held-out text: each token once, forward only. Thread rule: the thread that owns
// the backend.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "learn/tokens/token_windows.h"

namespace gossamer::pipeline {

struct HeldOutLoss {
  double loss = 0;  // summed over all targets, nats
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;        // of the text
  std::uint64_t given_bytes = 0;  // of its first token, which the model is given and does not tell

  [[nodiscard]] double mean() const { return loss / static_cast<double>(tokens); }
  [[nodiscard]] double perplexity() const;  // exp(mean)
  // For the bytes that the model tells, so that tokenizers can be compared. Not finite where there is none.
  [[nodiscard]] double bits_per_byte() const;
};

struct HeldOutText {
  const tokens::EvalWindows& windows;
  std::uint64_t bytes = 0;          // of the text
  std::uint64_t given_bytes = 0;    // of its first token
  std::uint32_t microbatch = 1;     // windows that are computed together at most, at least 1
  std::function<bool()> stop = {};  // asked between microbatches; true ends it. May be empty
};
// The backend has the whole model. Errors: those of the backend; kFailed where `stop` has ended it.
[[nodiscard]] Result<HeldOutLoss> held_out_loss(StageBackend& model, const HeldOutText& text);

}  // namespace gossamer::pipeline
