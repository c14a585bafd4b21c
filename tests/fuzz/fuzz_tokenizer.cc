// SPDX-License-Identifier: Apache-2.0
//
// Any text, and a library of pieces of words that is right, lies, or refuses texts. Every text comes back
// from its tokens, and cuts behind line ends do not change them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "learn/tokens/sentencepiece_tokenizer.h"
#include "learn/tokens/test_pieces_module.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace gossamer;
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  for (const char* model : {"good", "lies", "refuses"}) {
    const auto loaded = tokens::SentencePieceTokenizer::load(tokens::test_pieces::kModule,
                                                             tokens::test_pieces::model(model), "fuzz");
    CHECK(loaded.ok());
    const tokens::Tokenizer& tokenizer = **loaded;
    std::vector<tokens::TokenId> whole;
    tokenizer.encode(text, whole);
    for (const tokens::TokenId token : whole) CHECK(token < tokenizer.end_of_text());
    CHECK(tokenizer.decode(whole) == text);
    std::vector<tokens::TokenId> lines;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      tokenizer.encode(rest.substr(0, end), lines);
      rest.remove_prefix(end);
    }
    CHECK(lines == whole);
  }
  return 0;
}
