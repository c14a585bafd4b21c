// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_figures.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

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
  return pipeline::held_out_loss(model, {.windows = *windows,
                                         .bytes = file.text_bytes(),
                                         .given_bytes = tokenizer.decode(first).size(),
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
  return fmt::format("loss {:.4f} nats a token, perplexity {:.2f}, {:.4f} bits per byte, over {} ({} bytes)",
                     measured.mean(), measured.perplexity(), measured.bits_per_byte(),
                     run::counted(measured.tokens, "token"), run::human_count(measured.bytes));
}

}  // namespace gossamer::commands
