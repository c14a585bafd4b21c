// SPDX-License-Identifier: Apache-2.0
//
// DefinitionContext: what a dictionary says elsewhere about the words of a definition.
//
// "A specialist in the care of babies" shares hardly a word with the query "a doctor that looks after
// children". The definitions of "specialist" and "baby" do. The meaning m(w) of a headword w and the context
// c(d) of a definition d are
//
//   m(w) = sum over k < kSenses of x(d_k) / (k + 1)
//   c(d) = sum over words w of d of x(d)_w m(w) / |m(w)|
//
// x(d): the tf-idf vector of d's words, of length 1 (weighting.h). d_0, d_1, ...: the definitions of w in
// their order. The kMeaningWords and kContextWords largest entries are kept.
//
// Left out are:
// - words in a single definition, which cannot connect two of them;
// - w in its own meaning, and the words of d in its context;
// - the meanings of common words.
// A word that is no headword stands for one with the same stem (word_parts.h).
//
// Thread rule: one owner. Memory: 4 bytes a word of the definitions, and the words once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "learn/text/dictionary.h"
#include "learn/text/string_index.h"
#include "learn/text/words.h"

namespace gossamer::text {

class DefinitionContext {
 public:
  static constexpr std::size_t kSenses = 4;
  static constexpr std::size_t kMeaningWords = 12;
  static constexpr std::size_t kContextWords = 16;
  // Words in more than one of so many definitions are common: they say nothing of their own.
  static constexpr std::size_t kCommonShare = 20;

  // Learns from all entries but the held-out ones (positions, increasing). Errors: kBadData for a definition
  // that is no UTF-8.
  [[nodiscard]] static Result<DefinitionContext> learn(const std::vector<DictionaryEntry>& entries,
                                                       std::span<const std::uint32_t> held_out);

  // The words of c(d), most weight first, separated by spaces. kBadData as above.
  [[nodiscard]] Result<std::string> of(std::string_view definition);

  // The words of the meaning of a word, most weight first; empty for a word without definition.
  [[nodiscard]] std::vector<std::string_view> meaning(std::string_view word) const;

 private:
  struct Weighed {
    std::uint32_t word = 0;
    float weight = 0;
  };

  // Sorts by word and adds up what one word has.
  static void merge(std::vector<Weighed>& sum);
  // Keeps the `count` words of most weight, the heaviest first.
  static void keep_largest(std::vector<Weighed>& sum, std::size_t count);

  Result<void> read_words(const std::vector<DictionaryEntry>& entries,
                          std::span<const std::uint32_t> held_out);
  void count_documents();
  void find_senses(const std::vector<DictionaryEntry>& entries);
  void find_meanings();
  // Appends x(d) times `share` for a definition given by its sorted words.
  void add_definition(std::span<const std::uint32_t> words, float share, std::vector<Weighed>& sum) const;
  [[nodiscard]] float idf(std::uint32_t word) const;
  [[nodiscard]] std::span<const Weighed> meaning_of(std::uint32_t headword) const;
  [[nodiscard]] std::uint32_t headword_of(std::string_view word) const;

  WordSplitter splitter_;
  StringIndex words_;                          // of definitions
  std::vector<std::uint32_t> word_;            // of all definitions, one after the other, sorted in each
  std::vector<std::size_t> definition_begin_;  // in word_, by entry; empty for those held out
  std::vector<std::uint32_t> document_frequency_;
  std::uint64_t documents_ = 0;
  StringIndex headwords_;                           // of one word
  std::vector<std::vector<std::uint32_t>> senses_;  // entries by headword, at most kSenses
  StringIndex stems_;
  std::vector<std::uint32_t> stem_headword_;  // the first headword with the stem
  std::vector<std::uint32_t> meaning_begin_;  // by headword
  std::vector<Weighed> meaning_;              // most weight first
  std::vector<std::uint32_t> own_;            // of() uses these again
  std::vector<Weighed> own_weight_;
  std::vector<Weighed> sum_;
};

}  // namespace gossamer::text
