// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a WordNet data file. The reader answers with synsets that have lemmas and valid UTF-8, or with
// bad data that has a place.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz_source.h"
#include "learn/text/wordnet.h"
#include "learn/text/words.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gossamer;
  const auto source = fuzz::open({data, size});
  if (source == nullptr) return 0;
  std::vector<text::Synset> synsets;
  const auto count = text::read_wordnet(*source, synsets);
  CHECK(count.ok() || (count.error().kind == ErrorKind::kBadData && !count.error().where.empty()));
  for (const text::Synset& synset : synsets) {
    CHECK(!synset.lemmas.empty());
    for (const std::string& lemma : synset.lemmas) CHECK(text::folded_name(lemma).ok());
    CHECK(text::normalised_text(synset.definition).ok());
    for (const std::string& example : synset.examples) CHECK(text::normalised_text(example).ok());
  }
  return 0;
}
