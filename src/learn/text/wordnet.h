// SPDX-License-Identifier: Apache-2.0
//
// Reads WordNet's data files (data.noun, data.verb, data.adj, data.adv; format: wndb(5WN)): one synset a
// line,
//
//   OFFSET LEX_FILE TYPE COUNT(hex) [LEMMA LEX_ID]... COUNT [SYMBOL OFFSET POS SOURCE_TARGET]... ... | GLOSS
//
// after a licence text with lines that start with two spaces. Only the pointers to broader synsets are kept:
// '@' (hypernym) and '@i' (instance hypernym). The gloss is a definition and quoted examples, separated by
// semicolons. A line without '|' is cut off, and an error.
//
// Errors: kBadData with FILE:LINE:COLUMN. Thread rule: the calling thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/data/read/byte_source.h"

namespace gossamer::text {

// A synset's name: its offset in the data file of its part of speech ('n', 'v', 'a', 'r').
struct SynsetKey {
  char part_of_speech = 'n';
  std::uint32_t offset = 0;
  auto operator<=>(const SynsetKey&) const = default;
};

struct Synset {
  SynsetKey key;
  std::vector<std::string> lemmas;  // spaces for underscores, without syntactic markers like "(a)"
  std::string definition;           // may be empty
  std::vector<std::string> examples;
  std::vector<SynsetKey> broader;
};

// Appends all synsets of one file, in its order; returns their number, at least 1.
[[nodiscard]] Result<std::uint64_t> read_wordnet(data::ByteSource& source, std::vector<Synset>& synsets);

}  // namespace gossamer::text
