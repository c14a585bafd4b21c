// SPDX-License-Identifier: Apache-2.0
#include "learn/text/definition_context.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "learn/text/word_parts.h"

namespace gossamer::text {

void DefinitionContext::merge(std::vector<Weighed>& sum) {
  std::sort(sum.begin(), sum.end(), [](const Weighed& a, const Weighed& b) {
    return a.word != b.word ? a.word < b.word : a.weight < b.weight;
  });
  std::size_t kept = 0;
  for (const Weighed& next : sum) {
    if (kept > 0 && sum[kept - 1].word == next.word) {
      sum[kept - 1].weight += next.weight;
    } else {
      sum[kept++] = next;
    }
  }
  sum.resize(kept);
}

void DefinitionContext::keep_largest(std::vector<Weighed>& sum, std::size_t count) {
  std::sort(sum.begin(), sum.end(), [](const Weighed& a, const Weighed& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.word < b.word;
  });
  if (sum.size() > count) sum.resize(count);
}

Result<DefinitionContext> DefinitionContext::learn(const std::vector<DictionaryEntry>& entries,
                                                   std::span<const std::uint32_t> held_out) {
  DefinitionContext context;
  if (Result<void> read = context.read_words(entries, held_out); !read.ok()) return read.error();
  context.count_documents();
  context.find_senses(entries);
  context.find_meanings();
  return context;
}

Result<void> DefinitionContext::read_words(const std::vector<DictionaryEntry>& entries,
                                           std::span<const std::uint32_t> held_out) {
  definition_begin_.push_back(0);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!std::binary_search(held_out.begin(), held_out.end(), i)) {
      ++documents_;
      const Result<void> split = splitter_.split(
          entries[i].definition, [this](std::string_view word) { word_.push_back(words_.add(word)); });
      if (!split.ok()) return split;
      std::sort(word_.begin() + static_cast<std::ptrdiff_t>(definition_begin_.back()), word_.end());
    }
    definition_begin_.push_back(word_.size());
  }
  return {};
}

void DefinitionContext::count_documents() {
  document_frequency_.assign(words_.size(), 0);
  for (std::size_t d = 0; d + 1 < definition_begin_.size(); ++d) {
    for (std::size_t i = definition_begin_[d]; i < definition_begin_[d + 1]; ++i) {
      if (i == definition_begin_[d] || word_[i] != word_[i - 1]) ++document_frequency_[word_[i]];
    }
  }
}

void DefinitionContext::find_senses(const std::vector<DictionaryEntry>& entries) {
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    if (definition_begin_[i] == definition_begin_[i + 1]) continue;
    for (const std::string& headword : entries[i].headwords) {
      if (headword.find_first_of(" -") != std::string::npos) continue;
      const std::uint32_t id = headwords_.add(headword);
      if (id == senses_.size()) senses_.emplace_back();
      if (senses_[id].size() < kSenses) senses_[id].push_back(i);
      if (const std::string_view key = stem(headword); !key.empty()) {
        if (stems_.add(key) == stem_headword_.size()) stem_headword_.push_back(id);
      }
    }
  }
}

float DefinitionContext::idf(std::uint32_t word) const {
  return static_cast<float>(
      std::log(static_cast<double>(documents_) / static_cast<double>(document_frequency_[word])));
}

void DefinitionContext::add_definition(std::span<const std::uint32_t> words, float share,
                                       std::vector<Weighed>& sum) const {
  const std::size_t first = sum.size();
  float squares = 0;
  for (std::size_t i = 0; i < words.size();) {
    std::size_t next = i + 1;
    while (next < words.size() && words[next] == words[i]) ++next;
    const float weight = (1 + std::log(static_cast<float>(next - i))) * idf(words[i]);
    sum.push_back({words[i], weight});
    squares += weight * weight;
    i = next;
  }
  if (squares <= 0) return;
  for (std::size_t i = first; i < sum.size(); ++i) sum[i].weight *= share / std::sqrt(squares);
}

void DefinitionContext::find_meanings() {
  std::vector<Weighed> sum;
  meaning_begin_.push_back(0);
  for (std::uint32_t headword = 0; headword < headwords_.size(); ++headword) {
    sum.clear();
    for (std::size_t k = 0; k < senses_[headword].size(); ++k) {
      const std::size_t definition = senses_[headword][k];
      const std::size_t begin = definition_begin_[definition];
      add_definition(std::span(word_).subspan(begin, definition_begin_[definition + 1] - begin),
                     1.0F / static_cast<float>(k + 1), sum);
    }
    merge(sum);
    float squares = 0;
    for (const Weighed& word : sum) squares += word.weight * word.weight;
    std::erase_if(sum, [&](const Weighed& word) {
      return word.weight <= 0 || document_frequency_[word.word] < 2 ||
             words_.string(word.word) == headwords_.string(headword);
    });
    keep_largest(sum, kMeaningWords);
    for (Weighed& word : sum) word.weight /= std::sqrt(squares);
    meaning_.insert(meaning_.end(), sum.begin(), sum.end());
    meaning_begin_.push_back(static_cast<std::uint32_t>(meaning_.size()));
  }
}

std::uint32_t DefinitionContext::headword_of(std::string_view word) const {
  if (const std::uint32_t id = headwords_.find(word); id != StringIndex::kNone) return id;
  const std::string_view key = stem(word);
  const std::uint32_t id = key.empty() ? StringIndex::kNone : stems_.find(key);
  return id == StringIndex::kNone ? id : stem_headword_[id];
}

std::span<const DefinitionContext::Weighed> DefinitionContext::meaning_of(std::uint32_t headword) const {
  if (headword == StringIndex::kNone) return {};
  const std::uint32_t begin = meaning_begin_[headword];
  return std::span(meaning_).subspan(begin, meaning_begin_[headword + 1] - begin);
}

std::vector<std::string_view> DefinitionContext::meaning(std::string_view word) const {
  std::vector<std::string_view> out;
  for (const Weighed& meant : meaning_of(headword_of(word))) out.push_back(words_.string(meant.word));
  return out;
}

Result<std::string> DefinitionContext::of(std::string_view definition) {
  own_.clear();
  const Result<void> split = splitter_.split(definition, [this](std::string_view word) {
    if (const std::uint32_t id = words_.find(word); id != StringIndex::kNone) own_.push_back(id);
  });
  if (!split.ok()) return split.error();
  std::sort(own_.begin(), own_.end());
  own_weight_.clear();
  add_definition(own_, 1, own_weight_);
  sum_.clear();
  for (const Weighed& own : own_weight_) {
    if (document_frequency_[own.word] * kCommonShare > documents_) continue;
    for (const Weighed& meant : meaning_of(headword_of(words_.string(own.word)))) {
      sum_.push_back({meant.word, own.weight * meant.weight});
    }
  }
  merge(sum_);
  std::erase_if(
      sum_, [this](const Weighed& word) { return std::binary_search(own_.begin(), own_.end(), word.word); });
  keep_largest(sum_, kContextWords);
  std::string text;
  for (const Weighed& word : sum_) (text += text.empty() ? "" : " ") += words_.string(word.word);
  return text;
}

}  // namespace gossamer::text
