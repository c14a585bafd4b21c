// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/train/held_out_loss.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numbers>
#include <span>
#include <vector>

#include "base/check.h"

namespace gossamer::pipeline {

double HeldOutLoss::perplexity() const { return std::exp(mean()); }
double HeldOutLoss::bits_per_byte() const {
  return loss / std::numbers::ln2 / static_cast<double>(bytes - given_bytes);
}

Result<HeldOutLoss> held_out_loss(StageBackend& model, const HeldOutText& text) {
  const tokens::EvalWindows& windows = text.windows;
  const std::uint32_t microbatch = text.microbatch;
  CHECK(microbatch >= 1 && model.cut().has_embedding() && model.cut().has_head());
  CHECK(text.given_bytes <= text.bytes, text.given_bytes, text.bytes);
  HeldOutLoss all{.bytes = text.bytes, .given_bytes = text.given_bytes};
  const std::size_t context = windows.context();
  std::vector<TokenNumber> inputs(microbatch * context);
  std::vector<TokenNumber> targets(microbatch * context);
  for (std::uint64_t begin = 0; begin < windows.windows();) {
    if (text.stop && text.stop()) return Error{.where = "measuring", .what = "stopped"};
    // The last window is shorter, so it goes alone.
    std::uint32_t count = 0;
    std::size_t length = context;
    while (count < microbatch && begin + count < windows.windows()) {
      const std::size_t got = windows.read(begin + count, std::span(inputs).subspan(count * context, context),
                                           std::span(targets).subspan(count * context, context));
      if (got < context && count > 0) break;
      length = got;
      ++count;
      if (got < context) break;
    }
    const std::size_t tokens = count * length;
    const auto begun = model.begin({.windows = count,
                                    .context = static_cast<std::uint32_t>(length),
                                    .tokens = std::span(inputs).first(tokens),
                                    .targets = std::span(targets).first(tokens)},
                                   Keep::kInput);
    if (!begun.ok()) return begun.error();
    const std::unique_ptr<StageTask>& task = *begun;
    for (;;) {
      const Result<bool> more = task->forward_next();
      if (!more.ok()) return more.error();
      if (!*more) break;
    }
    all.loss += task->loss().loss;
    all.tokens += task->loss().tokens;
    begin += count;
  }
  return all;
}

}  // namespace gossamer::pipeline
