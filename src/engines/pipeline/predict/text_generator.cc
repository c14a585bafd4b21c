// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/predict/text_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "exact/exact_math.h"
#include "exact/floating_modes.h"

namespace gossamer::pipeline {
namespace {

// The numbers of the `count` best tokens, in rising order.
std::vector<TokenNumber> best_tokens(std::span<const double> scores, std::size_t count) {
  std::vector<TokenNumber> all(scores.size());
  std::iota(all.begin(), all.end(), TokenNumber{0});
  if (count >= all.size()) return all;
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::nth_element(all, end, [&](TokenNumber a, TokenNumber b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  all.erase(end, all.end());
  std::ranges::sort(all);
  return all;
}

Error bad_generation(std::string where, std::string what, std::string got, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = std::move(where),
          .what = std::move(what),
          .got = std::move(got),
          .expected = std::move(expected)};
}

}  // namespace

double token_draw(std::uint64_t seed, std::uint64_t number) {
  Rng rng(seed, Purpose::kNextToken, number);
  return static_cast<double>(rng.next_u64() >> 11U) * 0x1p-53;
}

Result<TokenNumber> choose_token(std::span<const double> scores, const GeneratorOptions& options,
                                 double draw) {
  CHECK(!scores.empty() && options.temperature >= 0 && draw >= 0 && draw < 1, draw);
  const auto bad = std::ranges::find_if_not(scores, [](double score) { return std::isfinite(score); });
  if (bad != scores.end()) {
    return Error{.what = "the model's scores are not finite",
                 .got = fmt::format("{} for token {}", *bad, bad - scores.begin()),
                 .expected = "finite numbers",
                 .fix = "use a model of an earlier step, or train again with a lower train.lr"};
  }
  const exact::FloatingModes modes;
  const auto best = static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
  if (options.temperature == 0) return static_cast<TokenNumber>(best);
  const std::size_t count = options.top_k == 0 ? scores.size() : options.top_k;
  const std::vector<TokenNumber> candidates = best_tokens(scores, count);
  std::vector<double> sums(candidates.size());
  double sum = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    sum += exact::exponential((scores[candidates[i]] - scores[best]) / options.temperature);
    sums[i] = sum;
  }
  // The sum is at least 1. Rounded, a product with a number below 1 of 53 bits is still below it.
  const double limit = draw * sum;
  const auto chosen = std::ranges::upper_bound(sums, limit);
  CHECK(chosen != sums.end(), limit, sum);
  return candidates[static_cast<std::size_t>(chosen - sums.begin())];
}

Result<TextGenerator> TextGenerator::begin(StageBackend& model, std::span<const TokenNumber> prompt,
                                           const GeneratorOptions& options) {
  CHECK(model.cut().has_embedding() && model.cut().has_head());
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    return bad_generation("temperature", "no text has this temperature",
                          fmt::format("{}", options.temperature), "a finite number of at least 0");
  }
  const auto strange =
      std::ranges::find_if(prompt, [&](TokenNumber token) { return token >= model.vocabulary(); });
  if (strange != prompt.end()) {
    return bad_generation("prompt", "the model does not know a token of the prompt",
                          fmt::format("{}", *strange),
                          fmt::format("tokens below its vocabulary, {}", model.vocabulary()));
  }
  if (options.end_of_text && *options.end_of_text >= model.vocabulary()) {
    return bad_generation("end of text", "the model does not know the end of text",
                          fmt::format("token {}", *options.end_of_text),
                          fmt::format("a token below its vocabulary, {}", model.vocabulary()));
  }
  if (prompt.empty() && !options.end_of_text) {
    Error error =
        bad_generation("prompt", "there is no token to begin with", "an empty prompt", "at least one token");
    error.fix = "give a text that the model is to go on with";
    return error;
  }
  return TextGenerator(model, prompt, options);
}

TextGenerator::TextGenerator(StageBackend& model, std::span<const TokenNumber> prompt,
                             const GeneratorOptions& options)
    : model_(&model), options_(options) {
  const std::size_t kept = std::min<std::size_t>(prompt.size(), model.context());
  window_.assign(prompt.end() - static_cast<std::ptrdiff_t>(kept), prompt.end());
  if (prompt.empty()) window_.push_back(options.end_of_text.value());
}

void TextGenerator::append(TokenNumber token) {
  if (window_.size() == model_->context()) window_.erase(window_.begin());
  window_.push_back(token);
}

Result<std::optional<TokenNumber>> TextGenerator::next() {
  if (ended_ || added_ == options_.tokens) return std::optional<TokenNumber>();
  const auto scores = model_->next_scores(window_);
  if (!scores.ok()) return scores.error();
  CHECK(scores->size() == model_->vocabulary(), scores->size(), model_->vocabulary());
  const Result<TokenNumber> token = choose_token(*scores, options_, token_draw(options_.seed, added_));
  if (!token.ok()) return token.error();
  if (options_.end_of_text == *token) {
    ended_ = true;
    return std::optional<TokenNumber>();
  }
  append(*token);
  ++added_;
  return std::optional(*token);
}

}  // namespace gossamer::pipeline
