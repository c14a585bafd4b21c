// SPDX-License-Identifier: Apache-2.0
//
// The features that stand for parts of a word. Their names cannot be words: a stem ends with '+', a sub-word
// starts with '~'. Private to learn/text. Thread rule: pure functions.
//
// A word of four to kMaxWordBytes letters a-z has a stem. It is what is left when these are taken off in
// turn:
// 1. the first fitting ending of a fixed list ("ations", "ings", "ed", "s", ...);
// 2. a final e;
// 3. one consonant of a doubled pair at the end.
// So "baking", "bakes" and "bake" are "bak+", "digging" and "diggers" are "dig+". At least three letters are
// left. Every such word has a stem, so that the plain form meets the others.
//
// That is cruder than Porter's algorithm ("An algorithm for suffix stripping", Program 14(3), 1980), which is
// as wrong elsewhere. The word itself is a feature too, and a learner weighs both.
#pragma once

#include <string_view>

#include "base/function_ref.h"
#include "learn/text/featurizer.h"

namespace gossamer::text {

using PartSink = FunctionRef<void(std::string_view part)>;

// Hands over the stem and sub-words that `options` asks for; a part may come twice. Requires a word of at
// most kMaxWordBytes.
void word_parts(std::string_view word, const FeaturizerOptions& options, PartSink sink);

// The stem without its '+'; empty if the word has none.
[[nodiscard]] std::string_view stem(std::string_view word);

// What a feature stands for, as its name tells: a whole word, or which part of one.
enum class WordPart { kWord, kStem, kSubword };
[[nodiscard]] WordPart word_part(std::string_view name);

}  // namespace gossamer::text
