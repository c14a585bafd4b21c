// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_figures.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "learn/tokens/token_windows.h"
#include "run/progress.h"

namespace gossamer::commands {
namespace {

// Enough tokens together for the products of matrices to be quick. More take memory for scores of the
// vocabulary.
constexpr std::uint32_t kMeasuredTogether = 2048;

}  // namespace

Result<pipeline::HeldOutLoss> measure_tokens(pipeline::StageBackend& model, const tokens::TokenFile& file,
                                             const tokens::Tokenizer& tokenizer,
                                             const std::function<bool()>& stop) {
  const auto windows = tokens::EvalWindows::cut(file, model.context());
  if (!windows.ok()) return windows.error();
  std::array<tokens::TokenId, 1> first{};
  file.copy(0, first);
  // The number of bytes stands in the file, and so it may be any.
  const std::uint64_t given = std::min<std::uint64_t>(tokenizer.decode(first).size(), file.text_bytes());
  return pipeline::held_out_loss(model, {.windows = *windows,
                                         .bytes = file.text_bytes(),
                                         .given_bytes = given,
                                         .microbatch = std::max(1U, kMeasuredTogether / model.context()),
                                         .stop = stop});
}

std::string lm_metrics_json(const pipeline::HeldOutLoss& measured) {
  const nlohmann::ordered_json json = {{"loss", measured.mean()},
                                       {"perplexity", measured.perplexity()},
                                       {"bits_per_byte", measured.bits_per_byte()},
                                       {"tokens", measured.tokens}};
  return json.dump();
}

std::string lm_metrics_text(const pipeline::HeldOutLoss& measured) {
  const double bits = measured.bits_per_byte();
  return fmt::format("loss {:.4f} nats a token, perplexity {:.2f}{}, over {} ({} bytes)", measured.mean(),
                     measured.perplexity(),
                     std::isfinite(bits) ? fmt::format(", {:.4f} bits per byte", bits) : std::string(),
                     run::counted(measured.tokens, "token"), run::human_count(measured.bytes));
}

}  // namespace gossamer::commands
