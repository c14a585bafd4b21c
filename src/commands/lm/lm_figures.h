// SPDX-License-Identifier: Apache-2.0
//
// How well a language model predicts a text: as JSON, and for people. Thread rule: the thread that owns the
// backend.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "engines/pipeline/train/held_out_loss.h"
#include "learn/tokens/token_file.h"
#include "learn/tokens/tokenizer.h"

namespace gossamer::commands {

// Measures the whole model on all tokens of a file of its tokenizer, which has at least two (kBadData).
// `stop` as in HeldOutText.
[[nodiscard]] Result<pipeline::HeldOutLoss> measure_tokens(pipeline::StageBackend& model,
                                                           const tokens::TokenFile& file,
                                                           const tokens::Tokenizer& tokenizer,
                                                           const std::function<bool()>& stop);

// {"loss":..,"perplexity":..,"bits_per_byte":..,"tokens":..}, unrounded; null for what is not finite. The
// loss is the mean over tokens, in nats.
[[nodiscard]] std::string lm_metrics_json(const pipeline::HeldOutLoss& measured);
// The same on one line.
[[nodiscard]] std::string lm_metrics_text(const pipeline::HeldOutLoss& measured);

}  // namespace gossamer::commands
