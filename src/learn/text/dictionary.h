// SPDX-License-Identifier: Apache-2.0
//
// From dictionaries to the records of a reverse dictionary: a definition is the text, its headwords are the
// labels. import_dictionary() reads all sources and holds definitions out as a test set. It writes two files
// of JSON lines {"text", "labels"} (learn/data/read/jsonl_reader.h), each whole or not at all:
//
//   DIR/records.jsonl   training
//   DIR/test.jsonl      held out
//
// Labels are headwords in Unicode normal form NFKC with folded case and single spaces, so that "Venison" of
// one book is "venison" of another.
//
// The test set is drawn from WordNet's definitions (from all, if there is no WordNet), at random by the seed.
// A definition must meet two conditions, or it trains:
// 1. Every headword of it is known from a training definition.
// 2. It is no near copy: less than 80 % of its word 3-grams stand in one other definition. (GCIDE, for one,
//    carries entries of WordNet 1.5.)
//
// Errors: those of the readers and the disk. Thread rule: the calling thread.
// Memory: all definitions, about 400 bytes each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::text {

struct DictionarySources {
  struct Dictd {
    std::string index;  // .index
    std::string text;   // .dict or .dict.dz
  };
  std::vector<Dictd> dictd = {};
  std::vector<std::string> wordnet = {};  // data.noun, data.verb, ...
  std::vector<std::string> jsonl = {};    // {"text": definition, "labels": [headwords]}
};

struct DictionaryEntry {
  std::vector<std::string> headwords;  // label names, distinct, not empty
  std::string definition;
  // WordNet alone:
  std::vector<std::string> broader = {};  // names of hypernyms and of theirs
  std::vector<std::string> examples = {};
  bool may_test = false;  // whether it may be held out
};

struct ReadDictionaries {
  // All definitions with a headword and a word of text, in the order dictd, WordNet, JSON lines.
  std::vector<DictionaryEntry> entries;
  std::uint64_t left_out = 0;  // all others
};
// At least one source and one definition, otherwise kUsage or kBadData.
[[nodiscard]] Result<ReadDictionaries> read_dictionaries(host::Disk& disk, const DictionarySources& sources);

struct DictionarySplitOptions {
  std::uint64_t seed = 1;
  std::uint32_t test = 5000;
  double max_share = 0.8;  // a definition with this share of its 3-grams in one other is a near copy
  // Headwords, as folded_name() writes them, whose definitions all train: they are shown to people, not
  // measured.
  std::vector<std::string> keep = {};
};
struct DictionarySplit {
  std::vector<std::uint32_t> test = {};  // positions in the entries, increasing; the others train
  std::uint64_t near_copies = 0;         // definitions that met the first condition alone
};
// Draws the test set: fewer definitions than asked for where not enough qualify. The same for the same
// entries and options.
[[nodiscard]] Result<DictionarySplit> split_dictionary(const std::vector<DictionaryEntry>& entries,
                                                       const DictionarySplitOptions& options);

struct DictionaryImport {
  DictionarySources sources;
  std::string directory;  // made if it is missing
  DictionarySplitOptions split = {};
  // Whether each training definition makes a second record, with a "context": hypernyms, examples, and what
  // other definitions say about its words (definition_context.h). The first record is like a query, which has
  // no context: a network that has seen both answers both.
  bool context = true;
};
struct DictionaryReport {
  std::uint64_t definitions = 0;
  std::uint64_t headwords = 0;  // distinct
  std::uint64_t train = 0;      // definitions
  std::uint64_t test = 0;
  std::uint64_t near_copies = 0;
  std::uint64_t left_out = 0;                  // definitions without a headword or without a word of text
  std::vector<std::string> keep_unknown = {};  // words of DictionarySplitOptions::keep that are no headwords
};
[[nodiscard]] Result<DictionaryReport> import_dictionary(host::Disk& disk, const DictionaryImport& import);

}  // namespace gossamer::text
