// SPDX-License-Identifier: Apache-2.0
#include "learn/text/dictionary.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "host/api/files.h"
#include "learn/text/definition_context.h"
#include "learn/text/dictionary_reader.h"
#include "learn/text/phrase_index.h"
#include "learn/text/string_index.h"

namespace gossamer::text {
namespace {

// Headwords as numbers, and how many definitions that are not held out have each.
class HeadwordCounts {
 public:
  explicit HeadwordCounts(const std::vector<DictionaryEntry>& entries) {
    for (const DictionaryEntry& entry : entries) {
      for (const std::string& word : entry.headwords) {
        const std::uint32_t id = names_.add(word);
        if (id == count_.size()) count_.push_back(0);
        ++count_[id];
      }
    }
  }
  [[nodiscard]] std::uint32_t size() const { return names_.size(); }
  [[nodiscard]] bool has(const std::string& word) const { return names_.find(word) != StringIndex::kNone; }
  // Whether all headwords are known without this entry.
  [[nodiscard]] bool can_spare(const DictionaryEntry& entry) const {
    return std::all_of(entry.headwords.begin(), entry.headwords.end(),
                       [this](const std::string& word) { return count_[names_.find(word)] > 1; });
  }
  void take(const DictionaryEntry& entry) {
    for (const std::string& word : entry.headwords) --count_[names_.find(word)];
  }

 private:
  StringIndex names_;
  std::vector<std::uint32_t> count_;
};

// The entries that may be held out, in the order in which they are tried.
std::vector<std::uint32_t> candidates(const std::vector<DictionaryEntry>& entries,
                                      const DictionarySplitOptions& options) {
  const auto kept = [&options](const std::string& word) {
    return std::find(options.keep.begin(), options.keep.end(), word) != options.keep.end();
  };
  std::vector<std::pair<std::uint64_t, std::uint32_t>> drawn;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    const std::vector<std::string>& words = entries[i].headwords;
    if (!entries[i].may_test || std::any_of(words.begin(), words.end(), kept)) continue;
    drawn.emplace_back(Rng(options.seed, Purpose::kSplit, i).next_u64(), i);
  }
  std::sort(drawn.begin(), drawn.end());
  std::vector<std::uint32_t> order(drawn.size());
  std::transform(drawn.begin(), drawn.end(), order.begin(), [](const auto& pair) { return pair.second; });
  return order;
}

std::vector<std::string> unknown_words(const std::vector<std::string>& words, const HeadwordCounts& known) {
  std::vector<std::string> unknown;
  std::ranges::copy_if(words, std::back_inserter(unknown),
                       [&known](const std::string& word) { return !known.has(word); });
  return unknown;
}

void append_record(std::string& lines, const DictionaryEntry& entry, std::string_view context) {
  nlohmann::json record{{"text", entry.definition}, {"labels", entry.headwords}};
  if (!context.empty()) record["context"] = context;
  lines += record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  lines += '\n';
}

// The context of an entry: hypernyms, examples, and what other definitions say about its words.
Result<std::string> context_of(const DictionaryEntry& entry, DefinitionContext& contexts) {
  Result<std::string> words = contexts.of(entry.definition);
  if (!words.ok()) return words;
  std::string text;
  const auto add = [&text](std::string_view more) {
    if (!more.empty()) (text += text.empty() ? "" : "; ") += more;
  };
  for (const std::string& name : entry.broader) add(name);
  for (const std::string& example : entry.examples) add(example);
  add(*words);
  return text;
}

}  // namespace

Result<DictionarySplit> split_dictionary(const std::vector<DictionaryEntry>& entries,
                                         const DictionarySplitOptions& options) {
  DictionarySplit split;
  if (options.test == 0) return split;
  PhraseIndex phrases;
  for (const DictionaryEntry& entry : entries) {
    if (Result<void> added = phrases.add(entry.definition); !added.ok()) return added.error();
  }
  phrases.freeze();
  HeadwordCounts counts(entries);
  for (const std::uint32_t i : candidates(entries, options)) {
    if (split.test.size() == options.test) break;
    if (!counts.can_spare(entries[i])) continue;
    if (phrases.largest_share(i) >= options.max_share) {
      ++split.near_copies;
      continue;
    }
    counts.take(entries[i]);
    split.test.push_back(i);
  }
  std::sort(split.test.begin(), split.test.end());
  return split;
}

Result<DictionaryReport> import_dictionary(host::Disk& disk, const DictionaryImport& import) {
  const Result<ReadDictionaries> read = read_dictionaries(disk, import.sources);
  if (!read.ok()) return read.error();
  const std::vector<DictionaryEntry>& entries = read->entries;
  Result<DictionarySplit> split = split_dictionary(entries, import.split);
  if (!split.ok()) return split.error();

  std::optional<DefinitionContext> contexts;
  if (import.context) {
    Result<DefinitionContext> learnt = DefinitionContext::learn(entries, split->test);
    if (!learnt.ok()) return learnt.error();
    contexts = std::move(*learnt);
  }

  std::string train;
  std::string test;
  std::size_t next_test = 0;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    const DictionaryEntry& entry = entries[i];
    if (next_test < split->test.size() && split->test[next_test] == i) {
      ++next_test;
      append_record(test, entry, {});
      continue;
    }
    append_record(train, entry, {});
    if (!contexts.has_value()) continue;
    Result<std::string> context = context_of(entry, *contexts);
    if (!context.ok()) return context.error();
    if (!context->empty()) append_record(train, entry, *context);
  }
  if (Result<void> made = disk.make_directories(import.directory); !made.ok()) return made.error();
  for (const auto& [name, lines] : {std::pair("/test.jsonl", &test), std::pair("/records.jsonl", &train)}) {
    Result<void> written = host::replace_file(disk, import.directory + name, std::string_view(*lines));
    if (!written.ok()) return written.error();
  }
  const HeadwordCounts counts(entries);
  return DictionaryReport{.definitions = entries.size(),
                          .headwords = counts.size(),
                          .train = entries.size() - split->test.size(),
                          .test = split->test.size(),
                          .near_copies = split->near_copies,
                          .left_out = read->left_out,
                          .keep_unknown = unknown_words(import.split.keep, counts)};
}

}  // namespace gossamer::text
