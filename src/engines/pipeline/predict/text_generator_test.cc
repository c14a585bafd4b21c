// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/predict/text_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engines/pipeline/stage/toy_stage.h"

namespace gossamer::pipeline {
namespace {

using Tokens = std::vector<TokenNumber>;
using Scores = std::vector<double>;

constexpr ToyShape kPoet{.vocabulary = 11, .context = 5, .width = 4, .hidden = 6, .layers = 2};

std::unique_ptr<StageBackend> poet() {
  return make_toy_stage(kPoet, {.first = 0, .last = kPoet.layers, .layers = kPoet.layers}, 23);
}

// A model whose scores a test tells, and which remembers for which windows.
class ScriptedModel final : public StageBackend {
 public:
  ScriptedModel(std::uint32_t vocabulary, std::uint32_t context,
                std::function<Result<Scores>(std::span<const TokenNumber>)> scores)
      : vocabulary_(vocabulary), context_(context), scores_(std::move(scores)) {}

  [[nodiscard]] const StageCut& cut() const override { return cut_; }
  [[nodiscard]] std::uint32_t width() const override { return 1; }
  [[nodiscard]] std::uint32_t vocabulary() const override { return vocabulary_; }
  [[nodiscard]] std::uint32_t context() const override { return context_; }
  [[nodiscard]] std::span<const StageTensor> tensors() override { return {}; }
  [[nodiscard]] Result<std::unique_ptr<StageTask>> begin(const Microbatch&, Keep) override {
    return Error{.what = "it trains nothing"};
  }
  [[nodiscard]] Result<Scores> next_scores(std::span<const TokenNumber> window) override {
    windows_.emplace_back(window.begin(), window.end());
    return scores_(window);
  }
  [[nodiscard]] Result<void> weights_changed() override { return {}; }
  [[nodiscard]] const std::vector<Tokens>& windows() const { return windows_; }

 private:
  StageCut cut_;
  std::uint32_t vocabulary_;
  std::uint32_t context_;
  std::function<Result<Scores>(std::span<const TokenNumber>)> scores_;
  std::vector<Tokens> windows_;
};

// All tokens that a model adds.
Tokens added_by(StageBackend& model, const Tokens& prompt, const GeneratorOptions& options) {
  auto generator = TextGenerator::begin(model, prompt, options);
  EXPECT_TRUE(generator.ok());
  Tokens added;
  for (;;) {
    const auto token = generator->next();
    EXPECT_TRUE(token.ok());
    if (!token.ok() || !token->has_value()) break;
    added.push_back(**token);
  }
  EXPECT_EQ(generator->added(), added.size());
  return added;
}

// The p of step 2 in the header, of what stays of `top_k`, by libm in 80 bits.
std::vector<long double> softmax(const Scores& scores, double temperature, std::size_t top_k) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  if (top_k > 0 && top_k < order.size()) order.resize(top_k);
  std::vector<long double> p(scores.size());
  long double sum = 0;
  for (const std::size_t v : order) {
    p[v] = std::exp(static_cast<long double>(scores[v] - scores[order[0]]) /
                    static_cast<long double>(temperature));
    sum += p[v];
  }
  for (long double& x : p) x /= sum;
  return p;
}

// Claim: tokens that are drawn have the shares of the softmax, for several temperatures and all that stays of
// the best. What does not stay, and what has no share, is never drawn.
TEST(TextGenerator, DrawsWithTheSharesOfTheSoftmax) {
  const Scores scores = {0.5, -1, 2, 2, -800, 1.25, 0};
  constexpr std::uint64_t kDraws = 20'000;
  for (const double temperature : {0.3, 1.0, 2.5}) {
    for (const std::uint32_t top_k : {0U, 1U, 2U, 3U, 4U, 6U, 7U, 100U}) {
      const GeneratorOptions options{.temperature = temperature, .top_k = top_k};
      std::vector<std::uint64_t> drawn(scores.size());
      for (std::uint64_t n = 0; n < kDraws; ++n) ++drawn[*choose_token(scores, options, token_draw(5, n))];
      const auto p = softmax(scores, temperature, top_k);
      for (std::size_t v = 0; v < scores.size(); ++v) {
        const auto share = static_cast<double>(p[v]);
        const double off = std::abs(static_cast<double>(drawn[v]) - kDraws * share);
        EXPECT_LE(off, 4.5 * std::sqrt(kDraws * share * (1 - share)) + 1e-9)
            << "temperature " << temperature << " top " << top_k << " token " << v;
        if (share < 1e-30) {
          EXPECT_EQ(drawn[v], 0U);
        }
      }
    }
  }
}

// Claim: a token is the first one at which the sum of shares exceeds the draw: the stream of the token's
// number gives the draw, and sums go in order of numbers.
TEST(TextGenerator, DrawsInTheOrderOfNumbers) {
  const Scores scores = {1, 3, 0, 2, 3, -1};
  const auto p = softmax(scores, 0.8, 4);
  for (std::uint64_t n = 0; n < 3000; ++n) {
    Rng rng(77, Purpose::kNextToken, n);
    const auto draw = static_cast<long double>(rng.next_u64() >> 11U) * 0x1p-53L;
    long double sum = 0;
    TokenNumber right = 0;
    while ((sum += p[right]) <= draw) ++right;
    EXPECT_EQ(*choose_token(scores, {.temperature = 0.8, .top_k = 4}, token_draw(77, n)), right) << n;
  }
}

// Claim: a draw at the end of a share belongs to the next token that has one, so a token without a share is
// not chosen by the least draw nor by the greatest.
TEST(TextGenerator, DrawsAtTheEndsOfShares) {
  const Scores scores = {-1e6, 0, -1e6, 0, -1e6};
  const auto chosen = [&](double draw) { return *choose_token(scores, {}, draw); };
  EXPECT_EQ(chosen(0), 1U);
  EXPECT_EQ(chosen(0.5 - 0x1p-53), 1U);
  EXPECT_EQ(chosen(0.5), 3U);
  EXPECT_EQ(chosen(1 - 0x1p-53), 3U);
  for (std::size_t size = 1; size < 2000; size += 37) {
    const Scores equal(size, 1.25);
    EXPECT_EQ(*choose_token(equal, {.temperature = 0.7}, 1 - 0x1p-53), size - 1);
  }
}

// Claim: temperature 0 and top_k = 1 take the best token, of equal ones the one with the lowest number, for
// all orders of a few scores.
TEST(TextGenerator, TheBestTokenIsTheLowestOfEqualOnes) {
  for (int code = 0; code < 3 * 3 * 3 * 3; ++code) {
    Scores scores;
    for (int rest = code, i = 0; i < 4; ++i, rest /= 3) scores.push_back(rest % 3 - 1);
    const auto best = std::ranges::max_element(scores) - scores.begin();
    for (std::uint64_t n = 0; n < 5; ++n) {
      EXPECT_EQ(*choose_token(scores, {.temperature = 0, .top_k = 3}, token_draw(1, n)), best);
      EXPECT_EQ(*choose_token(scores, {.temperature = 2, .top_k = 1}, token_draw(1, n)), best);
      EXPECT_EQ(*choose_token(scores, {.temperature = 1e-300, .top_k = 1}, token_draw(1, n)), best);
    }
  }
}

// Claim: scores that are far apart or huge and temperatures at both ends choose as the formula says.
TEST(TextGenerator, ExtremeScoresAndTemperatures) {
  const double largest = std::numeric_limits<double>::max();
  const double smallest = std::numeric_limits<double>::denorm_min();
  for (std::uint64_t n = 0; n < 50; ++n) {
    EXPECT_EQ(*choose_token(Scores{-largest, largest, 0}, {.temperature = 1}, token_draw(1, n)), 1U);
    EXPECT_EQ(
        *choose_token(Scores{-largest, largest, largest / 2}, {.temperature = smallest}, token_draw(1, n)),
        1U);
    EXPECT_EQ(*choose_token(Scores{-3}, {.temperature = 1}, token_draw(1, n)), 0U);
  }
  std::set<TokenNumber> seen;
  for (std::uint64_t n = 0; n < 50; ++n)
    seen.insert(
        *choose_token(Scores{-largest / 4, largest / 4, 0}, {.temperature = largest}, token_draw(1, n)));
  EXPECT_EQ(seen.size(), 3U);
}

// Claim: a text of the toy follows from its scores token by token. top_k = 1 gives the text of temperature 0,
// equal seeds give equal texts, others do not.
TEST(TextGenerator, TextsFollowFromScoresAndSeed) {
  const auto model = poet();
  const Tokens prompt = {3, 1, 4};
  const Tokens best = added_by(*model, prompt, {.tokens = 40, .temperature = 0});
  ASSERT_EQ(best.size(), 40U);
  Tokens text = prompt;
  for (const TokenNumber token : best) {
    const std::size_t length = std::min<std::size_t>(text.size(), 5);
    const auto scores = model->next_scores(std::span(text).last(length));
    EXPECT_EQ(token, std::ranges::max_element(*scores) - scores->begin());
    text.push_back(token);
  }
  EXPECT_EQ(added_by(*model, prompt, {.tokens = 40, .temperature = 3, .top_k = 1}), best);
  const GeneratorOptions drawn{.tokens = 40, .temperature = 2, .seed = 8};
  const Tokens one = added_by(*model, prompt, drawn);
  EXPECT_EQ(added_by(*model, prompt, drawn), one);
  GeneratorOptions other = drawn;
  other.seed = 9;
  EXPECT_NE(added_by(*model, prompt, other), one);
  for (const TokenNumber token : one) EXPECT_LT(token, kPoet.vocabulary);
  // Fewer tokens are the beginning of the same text.
  other = drawn;
  other.tokens = 7;
  EXPECT_EQ(added_by(*model, prompt, other), Tokens(one.begin(), one.begin() + 7));
  // Each token has a draw of its own.
  EXPECT_GT(std::set<TokenNumber>(one.begin(), one.end()).size(), 3U);
}

// Claim: the window grows up to the context and then slides, for prompts of all lengths around it.
TEST(TextGenerator, TheWindowSlides) {
  for (std::size_t length = 1; length <= 9; ++length) {
    ScriptedModel model(20, 4, [](std::span<const TokenNumber> window) {
      Scores scores(20);
      scores[(window.back() + 1) % 20] = 1;
      return Result<Scores>(scores);
    });
    Tokens text(length);
    std::iota(text.begin(), text.end(), TokenNumber{0});
    const Tokens added = added_by(model, text, {.tokens = 6, .temperature = 0});
    ASSERT_EQ(model.windows().size(), 6U);
    for (std::size_t n = 0; n < 6; ++n) {
      const std::size_t kept = std::min<std::size_t>(4, text.size());
      EXPECT_EQ(model.windows()[n], Tokens(text.end() - static_cast<std::ptrdiff_t>(kept), text.end()));
      EXPECT_EQ(added[n], (text.back() + 1) % 20);
      text.push_back(added[n]);
    }
  }
}

// Claim: an empty prompt begins with the end of text. A text ends where the end of text is chosen, which is
// not of it, and no scores are asked for afterwards.
TEST(TextGenerator, TheEndOfText) {
  ScriptedModel model(6, 3, [](std::span<const TokenNumber> window) {
    Scores scores(6);
    scores[(window.back() + 1) % 6] = 1;
    return Result<Scores>(scores);
  });
  EXPECT_EQ(added_by(model, {}, {.tokens = 50, .temperature = 0, .end_of_text = 5}), (Tokens{0, 1, 2, 3, 4}));
  EXPECT_EQ(model.windows().front(), Tokens{5});
  auto generator = TextGenerator::begin(model, Tokens{4}, {.temperature = 0, .end_of_text = 5});
  ASSERT_TRUE(generator.ok());
  EXPECT_FALSE(generator->next()->has_value());
  const std::size_t asked = model.windows().size();
  EXPECT_FALSE(generator->next()->has_value());
  EXPECT_EQ(model.windows().size(), asked);
  EXPECT_EQ(added_by(model, {4}, {.tokens = 3, .temperature = 0}), (Tokens{5, 0, 1}));
  EXPECT_EQ(added_by(model, {4}, {.tokens = 0}), Tokens{});
}

// Claim: what no text follows from is refused, and what is wrong is named.
TEST(TextGenerator, RefusesWhatNoTextFollowsFrom) {
  const auto model = poet();
  const auto refused = [&](const Tokens& prompt, const GeneratorOptions& options) {
    const auto generator = TextGenerator::begin(*model, prompt, options);
    EXPECT_FALSE(generator.ok());
    if (generator.ok()) return std::string();
    EXPECT_EQ(generator.error().kind, ErrorKind::kUsage);
    EXPECT_FALSE(generator.error().what.empty() || generator.error().expected.empty());
    return generator.error().where;
  };
  for (const double temperature : {-0.5, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(refused({1}, {.temperature = temperature}), "temperature");
  EXPECT_EQ(refused({1, 11, 2}, {}), "prompt");
  EXPECT_EQ(refused({}, {}), "prompt");
  EXPECT_EQ(refused({}, {.end_of_text = 11}), "end of text");
  EXPECT_NE(TextGenerator::begin(*model, {}, {}).error().fix, "");
}

// Claim: scores that are not finite are an error that names the token; so is a failure of the backend. The
// call may be tried again, and then the text is as if nothing had been.
TEST(TextGenerator, AFailureLeavesTheTextAsItWas) {
  int calls = 0;
  const auto scores_of = [](std::span<const TokenNumber> window) {
    Scores scores(5);
    for (std::size_t v = 0; v < 5; ++v)
      scores[v] = static_cast<double>((std::size_t{window.back()} * 3 + v * v) % 5);
    return scores;
  };
  ScriptedModel failing(5, 3, [&](std::span<const TokenNumber> window) -> Result<Scores> {
    Scores scores = scores_of(window);
    switch (calls++ % 4) {
      case 0: return Error{.what = "no memory"};
      case 1: scores[3] = std::nan(""); break;
      case 2: scores[1] = -std::numeric_limits<double>::infinity(); break;
      default: break;
    }
    return scores;
  });
  ScriptedModel right(5, 3,
                      [&](std::span<const TokenNumber> window) { return Result<Scores>(scores_of(window)); });
  const GeneratorOptions options{.tokens = 20, .temperature = 1.5, .seed = 3};
  const Tokens whole = added_by(right, {2}, options);
  auto generator = TextGenerator::begin(failing, Tokens{2}, options);
  ASSERT_TRUE(generator.ok());
  for (const TokenNumber token : whole) {
    EXPECT_EQ(generator->next().error().what, "no memory");
    EXPECT_EQ(generator->next().error().got, "nan for token 3");
    EXPECT_EQ(generator->next().error().got, "-inf for token 1");
    EXPECT_EQ(**generator->next(), token);
  }
}

}  // namespace
}  // namespace gossamer::pipeline
