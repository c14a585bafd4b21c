// SPDX-License-Identifier: Apache-2.0
#include "learn/text/definition_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace gossamer::text {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

DictionaryEntry entry(std::vector<std::string> headwords, std::string definition) {
  return {.headwords = std::move(headwords), .definition = std::move(definition)};
}

// Adds enough definitions of other things that none of the words below is common.
std::vector<DictionaryEntry> with_filler(std::vector<DictionaryEntry> entries) {
  for (int i = 0; i < 200; ++i) entries.push_back(entry({"filler" + std::to_string(i)}, "of the thing"));
  return entries;
}

std::vector<DictionaryEntry> clinic() {
  return with_filler({
      entry({"pediatrician", "baby doctor"}, "a specialist in the care of babies"),
      entry({"specialist"}, "a doctor devoted to one branch"),
      entry({"baby", "babe"}, "a very young child"),
      entry({"child"}, "a young person; a child"),
      entry({"doctor"}, "one who heals a person"),
      entry({"nurse"}, "one who helps a doctor"),
      entry({"branch"}, "a limb of a tree, very odd"),
      entry({"tree"}, "tall plant with a branch"),
  });
}

// The meaning of a word is made of its definition's words. Words that stand in one definition alone are left
// out, and so is the word itself. Another form of the word finds it by the stem.
TEST(DefinitionContext, MeaningOfWords) {
  const auto entries = clinic();
  const auto context = DefinitionContext::learn(entries, {});
  ASSERT_TRUE(context.ok());
  EXPECT_THAT(context->meaning("specialist"), Contains("doctor"));
  EXPECT_THAT(context->meaning("specialist"), Not(Contains("devoted")));
  EXPECT_THAT(context->meaning("child"), Not(Contains("child")));
  EXPECT_EQ(context->meaning("specialists"), context->meaning("specialist"));
  EXPECT_LE(context->meaning("baby").size(), DefinitionContext::kMeaningWords);
  EXPECT_THAT(context->meaning("unheard"), IsEmpty());
}

// "word<begin>" to "word<end - 1>", separated by spaces.
std::string numbered_words(int begin, int end) {
  std::string text;
  for (int i = begin; i < end; ++i) text += " word" + std::to_string(i);
  return text;
}

// Claim: A meaning has the kMeaningWords heaviest words of the first kSenses definitions, and a context the
// kContextWords heaviest of all meanings.
TEST(DefinitionContext, Limits) {
  auto entries = with_filler({
      entry({"p"}, numbered_words(0, 15)),
      entry({"q"}, numbered_words(15, 30)),
      entry({"r"}, numbered_words(0, 30)),
      entry({"s"}, "r often"),
      entry({"s"}, "p often"),
      entry({"s"}, "q often"),
      entry({"s"}, "q often fourth"),
      entry({"s"}, "fifth often"),
      entry({"t"}, "p q fourth fifth"),
  });
  auto context = DefinitionContext::learn(entries, {});
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(context->meaning("p").size(), 12U);
  EXPECT_EQ(context->meaning("q").size(), 12U);
  const std::string both = *context->of("p q");
  EXPECT_EQ(std::count(both.begin(), both.end(), ' '), 15) << both;
  EXPECT_THAT(context->meaning("s"), Contains("fourth"));
  EXPECT_THAT(context->meaning("s"), Not(Contains("fifth")));
}

// Rarer words weigh more, and earlier definitions more than later ones.
TEST(DefinitionContext, OrderOfMeaning) {
  auto entries = with_filler({
      entry({"s"}, "beta alpha"),  // beta comes first where weights are equal
      entry({"w"}, "alpha"),
      entry({"w"}, "beta"),
      entry({"x"}, "alpha gamma"),
      entry({"y"}, "beta gamma"),
      entry({"z"}, "gamma alpha"),
      entry({"v"}, "gamma beta"),
      entry({"u"}, "gamma delta"),
      entry({"t"}, "gamma delta"),
  });
  const auto context = DefinitionContext::learn(entries, {});
  ASSERT_TRUE(context.ok());
  EXPECT_THAT(context->meaning("w"), ElementsAre("alpha", "beta"));
  EXPECT_THAT(context->meaning("u"), ElementsAre("delta", "gamma"));
}

// A context holds what the words of the definition mean, not these words, and nothing of common words; what
// two words mean comes first.
TEST(DefinitionContext, ContextOfDefinition) {
  const auto entries = clinic();
  auto context = DefinitionContext::learn(entries, {});
  ASSERT_TRUE(context.ok());
  const std::string text = *context->of("a specialist in the care of babies");
  EXPECT_THAT(text, HasSubstr("doctor"));
  EXPECT_THAT(text, HasSubstr("young"));
  EXPECT_THAT(text, Not(HasSubstr("specialist")));
  EXPECT_EQ(*context->of("of the thing"), "");
  auto explained = clinic();
  explained.push_back(entry({"thing"}, "what a doctor heals"));
  auto with_common = DefinitionContext::learn(explained, {});
  ASSERT_TRUE(with_common.ok());
  EXPECT_THAT(with_common->meaning("thing"), Contains("doctor"));
  EXPECT_EQ(*with_common->of("of the thing"), "");
  const auto shared = with_filler({
      entry({"p"}, "beta alpha"),  // beta comes first where weights are equal
      entry({"q"}, "alpha gamma"),
      entry({"r"}, "beta gamma p q"),
      entry({"s"}, "p q beta gamma alpha"),
  });
  auto contexts = DefinitionContext::learn(shared, {});
  ASSERT_TRUE(contexts.ok());
  EXPECT_TRUE(contexts->of("p q")->starts_with("alpha ")) << *contexts->of("p q");
}

// What is held out teaches nothing.
TEST(DefinitionContext, HeldOutEntries) {
  const auto entries = clinic();
  const std::vector<std::uint32_t> held_out = {1, 3};
  const auto context = DefinitionContext::learn(entries, held_out);
  ASSERT_TRUE(context.ok());
  EXPECT_THAT(context->meaning("specialist"), IsEmpty());
  EXPECT_THAT(context->meaning("baby"), Not(IsEmpty()));
}

// A word of every definition weighs nothing, and neither does a meaning made of such words alone.
TEST(DefinitionContext, WordsWithoutWeight) {
  std::vector<DictionaryEntry> entries;
  for (int i = 0; i < 50; ++i) entries.push_back(entry({"w" + std::to_string(i)}, "thing"));
  entries.push_back(entry({"x"}, "w1 w2 w3 thing"));
  auto context = DefinitionContext::learn(entries, {});
  ASSERT_TRUE(context.ok());
  EXPECT_THAT(context->meaning("w1"), IsEmpty());
  EXPECT_EQ(*context->of("w1 w2 w3 thing"), "");
}

// Text that is no UTF-8 is an error, no entries at all are none.
TEST(DefinitionContext, Errors) {
  EXPECT_FALSE(DefinitionContext::learn({entry({"a"}, "b\xff")}, {}).ok());
  auto empty = DefinitionContext::learn({}, {});
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(*empty->of("b c"), "");
}

}  // namespace
}  // namespace gossamer::text
