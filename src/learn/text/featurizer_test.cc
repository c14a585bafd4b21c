// SPDX-License-Identifier: Apache-2.0
#include "learn/text/featurizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "learn/text/word_parts.h"

namespace gossamer::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> parts(std::string_view word, const FeaturizerOptions& options) {
  std::vector<std::string> out;
  word_parts(word, options, [&out](std::string_view part) { out.emplace_back(part); });
  return out;
}

FeaturizerState learn(const std::vector<std::string>& documents, const FeaturizerOptions& options) {
  FeatureCounter counter(options);
  for (const std::string& document : documents) EXPECT_TRUE(counter.add(document).ok());
  return counter.finish();
}

std::map<std::string, float> features(const Featurizer& featurizer, std::string_view text) {
  FeaturizerScratch scratch;
  const Result<data::SparseRow> row = featurizer.features(text, scratch);
  EXPECT_TRUE(row.ok());
  std::map<std::string, float> out;
  for (std::size_t i = 0; i < row->index.size(); ++i) {
    EXPECT_TRUE(i == 0 || row->index[i - 1] < row->index[i]);
    out[featurizer.state().features[row->index[i]]] = row->value[i];
  }
  return out;
}

// The weighted values of a row by feature, before it is scaled to length 1.
std::map<std::string, double> weights(const Featurizer& featurizer, std::string_view text,
                                      std::string_view context, float context_weight) {
  FeaturizerScratch scratch;
  const Result<data::SparseRow> row = featurizer.features(text, context, context_weight, scratch);
  EXPECT_TRUE(row.ok());
  FeatureWeighting weighting = featurizer_weighting(featurizer.state());
  weighting.l2 = false;
  std::vector<float> value(row->value.size());
  weighting.apply(*row, value);
  std::map<std::string, double> out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    out[featurizer.state().features[row->index[i]]] = static_cast<double>(value[i]);
  }
  return out;
}

constexpr FeaturizerOptions kPlain{.stems = false, .min_document_frequency = 1};

// The weighted row of a text with context is the text's plus the context's, the latter brought to
// context_weight times the length of the former.
TEST(Featurizer, AddsContextByLength) {
  const Featurizer featurizer(learn({"deer deer meat", "meat fish", "fish game venison", "game"}, kPlain));
  const auto text = weights(featurizer, "deer deer meat", "", 0);
  const auto context = weights(featurizer, "venison meat game game game", "", 0);
  const auto length = [](const std::map<std::string, double>& row) {
    double squares = 0;
    for (const auto& [name, value] : row) squares += value * value;
    return std::sqrt(squares);
  };
  for (const float weight : {0.3F, 1.0F, 4.0F}) {
    std::map<std::string, double> expected = text;
    const double scale = static_cast<double>(weight) * length(text) / length(context);
    for (const auto& [name, value] : context) expected[name] += scale * value;
    const auto got = weights(featurizer, "deer deer meat", "venison meat game game game", weight);
    ASSERT_EQ(got.size(), expected.size());
    for (const auto& [name, value] : expected) EXPECT_NEAR(got.at(name), value, 1e-5 * value) << name;
  }
}

// A long text beside a context of one common word gives finite values.
TEST(Featurizer, BoundsTheWeightOfContext) {
  std::vector<std::string> documents(1000, "common");
  std::string text;
  for (int i = 0; i < 900; ++i) {
    const std::string word = "w" + std::to_string(i);
    text += word + ' ';
  }
  documents.push_back(text);
  const Featurizer featurizer(learn(documents, kPlain));
  const auto got = weights(featurizer, text, "common", 100);
  EXPECT_GT(got.at("common"), 0);
  for (const auto& [name, value] : got) EXPECT_TRUE(std::isfinite(value)) << name;
}

// A context that is empty, unknown or weighs nothing changes nothing, and makes no features on its own.
TEST(Featurizer, IgnoresEmptyContext) {
  const Featurizer featurizer(learn({"deer meat", "meat fish"}, kPlain));
  const auto text = weights(featurizer, "deer meat", "", 1);
  EXPECT_EQ(weights(featurizer, "deer meat", "unheard of", 1), text);
  EXPECT_EQ(weights(featurizer, "deer meat", "fish", 0), text);
  EXPECT_THAT(weights(featurizer, "unheard", "fish", 1), IsEmpty());
}

// Forms of one word meet, short words and words with other letters have no stem.
TEST(WordParts, Stems) {
  for (const auto* word : {"bake", "bakes", "baked", "baking"}) EXPECT_EQ(stem(word), "bak") << word;
  for (const auto* word : {"digging", "digged"}) EXPECT_EQ(stem(word), "dig") << word;
  for (const auto* word : {"berry", "berries"}) EXPECT_EQ(stem(word), "ber") << word;
  EXPECT_EQ(stem("glass"), "glas");
  EXPECT_EQ(stem("deer"), "deer");
  for (const auto* word : {"dog", "a", "", "caf\u00E9s", "don't", "1913"}) EXPECT_EQ(stem(word), "") << word;
}

// No stem is shorter than three letters, and stemming is a prefix of the word but for nothing.
TEST(WordParts, StemsArePrefixes) {
  Rng rng(1, Purpose::kTest);
  for (int i = 0; i < 5000; ++i) {
    std::string word;
    for (std::uint64_t n = 4 + rng.below(8); n > 0; --n) word += "aeinglsyt"[rng.below(9)];
    const std::string_view left = stem(word);
    EXPECT_GE(left.size(), 3U) << word;
    EXPECT_TRUE(word.starts_with(left)) << word;
  }
}

// Sub-words are all runs of the wanted lengths of the marked word, in code points, never the whole of it.
TEST(WordParts, Subwords) {
  EXPECT_THAT(parts("d\u00E9s", {.stems = false, .subword_min = 3, .subword_max = 4}),
              ElementsAre("~<d\u00E9", "~d\u00E9s", "~\u00E9s>", "~<d\u00E9s", "~d\u00E9s>"));
  EXPECT_THAT(parts("a", {.stems = false, .subword_min = 3, .subword_max = 5}), IsEmpty());
  EXPECT_THAT(parts("deers", {.stems = true}), ElementsAre("deer+"));
  EXPECT_FALSE(parts(std::string(kMaxWordBytes, 'a'), {.subword_min = 1, .subword_max = 16}).empty());
}

// The kind of a feature can be told from its name.
TEST(WordParts, Kinds) {
  EXPECT_EQ(word_part("deer"), WordPart::kWord);
  EXPECT_EQ(word_part("deer+"), WordPart::kStem);
  EXPECT_EQ(word_part("~er>"), WordPart::kSubword);
}

// Ids run by falling document frequency, then by name; a feature counts once a document; rare ones and those
// beyond the limit are left out.
TEST(Featurizer, Vocabulary) {
  const std::vector<std::string> documents = {"b a a c", "a b d", "a e"};
  const FeaturizerState all = learn(documents, kPlain);
  EXPECT_THAT(all.features, ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(all.document_frequency, ElementsAre(3, 2, 1, 1, 1));
  EXPECT_EQ(all.documents, 3U);
  EXPECT_THAT(learn(documents, {.stems = false, .min_document_frequency = 2}).features,
              ElementsAre("a", "b"));
  EXPECT_THAT(learn(documents, {.stems = false, .min_document_frequency = 1, .max_features = 3}).features,
              ElementsAre("a", "b", "c"));
}

// The order of the documents changes nothing.
TEST(Featurizer, OrderOfDocumentsIsNoMatter) {
  std::vector<std::string> documents = {"digging a ditch", "ditches dug", "the digger digs", "a ditch"};
  const FeaturizerOptions options{.stems = true, .subword_min = 3, .subword_max = 5};
  const FeaturizerState once = learn(documents, options);
  std::sort(documents.begin(), documents.end());
  do {
    const FeaturizerState again = learn(documents, options);
    EXPECT_EQ(again.features, once.features);
    EXPECT_EQ(again.document_frequency, once.document_frequency);
  } while (std::next_permutation(documents.begin(), documents.end()));
}

// Counts of what is known; unknown words still give their known parts; no text gives an empty row.
TEST(Featurizer, CountsFeatures) {
  const Featurizer plain(learn({"the deer", "the meat"}, kPlain));
  EXPECT_THAT(features(plain, "the THE meat of the Deer"),
              ElementsAre(std::pair("deer", 1.0F), std::pair("meat", 1.0F), std::pair("the", 3.0F)));
  EXPECT_THAT(features(plain, ""), IsEmpty());
  EXPECT_THAT(features(plain, "unknown words"), IsEmpty());

  const Featurizer stems(learn({"digging", "digging"}, {.stems = true}));
  EXPECT_THAT(features(stems, "digged digging"),
              ElementsAre(std::pair("dig+", 2.0F), std::pair("digging", 1.0F)));
}

// Known and unknown words are featurized alike: taking words out of the vocabulary leaves the other counts.
TEST(Featurizer, PartsDoNotDependOnTheirWordBeingKnown) {
  const FeaturizerOptions options{
      .stems = true, .subword_min = 2, .subword_max = 4, .min_document_frequency = 1};
  const FeaturizerState full = learn({"banana bandana", "bananas anna"}, options);
  FeaturizerState partless{.options = options, .documents = full.documents};
  for (std::size_t i = 0; i < full.features.size(); ++i) {
    if (word_part(full.features[i]) == WordPart::kWord) continue;
    partless.features.push_back(full.features[i]);
    partless.document_frequency.push_back(full.document_frequency[i]);
  }
  std::map<std::string, float> expected = features(Featurizer(full), "banana anna banana");
  std::erase_if(expected, [](const auto& f) { return word_part(f.first) == WordPart::kWord; });
  EXPECT_EQ(features(Featurizer(partless), "banana anna banana"), expected);
  EXPECT_FALSE(expected.empty());
}

// A featurizer of a stored state does what the first one did.
TEST(Featurizer, StateIsAllOfIt) {
  const Featurizer first(learn({"digging a ditch", "ditches dug"}, {.subword_min = 3, .subword_max = 3}));
  const Featurizer second(first.state());
  EXPECT_EQ(features(first, "dig ditch digging itch"), features(second, "dig ditch digging itch"));
}

// Invalid UTF-8 is bad data in both passes.
TEST(Featurizer, InvalidText) {
  FeatureCounter counter(kPlain);
  EXPECT_FALSE(counter.add("\xFF").ok());
  FeaturizerScratch scratch;
  EXPECT_FALSE(Featurizer({}).features("a \xFF", scratch).ok());
}

// idf = ln(documents / document frequency), times the weight of the feature's kind.
TEST(FeaturizerWeighting, WeighsByKind) {
  FeaturizerState state{
      .features = {"deer", "deer+", "~er>"}, .document_frequency = {1, 2, 4}, .documents = 8};
  state.options.stem_weight = 0.5F;
  state.options.subword_weight = 0.25F;
  const FeatureWeighting weighting = featurizer_weighting(state);
  EXPECT_EQ(weighting.counts, CountScale::kLog);
  ASSERT_EQ(weighting.idf.size(), 3U);
  EXPECT_FLOAT_EQ(weighting.idf[0], std::log(8.0F));
  EXPECT_FLOAT_EQ(weighting.idf[1], 0.5F * std::log(4.0F));
  EXPECT_FLOAT_EQ(weighting.idf[2], 0.25F * std::log(2.0F));
}

// Documents shared out among counters, one of them without any, count as if one had seen them all.
TEST(FeatureCounter, Merge) {
  const FeaturizerOptions options{.subword_min = 3, .subword_max = 4, .min_document_frequency = 1};
  const std::vector<std::string> documents = {"the red fox digs", "digging foxes", "", "red red wine",
                                              "the fox"};
  const FeaturizerState whole = learn(documents, options);
  for (std::size_t counters = 2; counters <= 6; ++counters) {
    std::vector<FeatureCounter> parts(counters, FeatureCounter(options));
    for (std::size_t i = 0; i < documents.size(); ++i) {
      EXPECT_TRUE(parts[(7 * i + 1) % counters].add(documents[i]).ok());
    }
    for (std::size_t c = 1; c < counters; ++c) parts[0].merge(parts[c]);
    const FeaturizerState merged = parts[0].finish();
    EXPECT_EQ(merged.features, whole.features);
    EXPECT_EQ(merged.document_frequency, whole.document_frequency);
    EXPECT_EQ(merged.documents, whole.documents);
  }
}

}  // namespace
}  // namespace gossamer::text
