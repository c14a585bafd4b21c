// SPDX-License-Identifier: Apache-2.0
//
// Takes the entries of a dictd database apart into definitions. Made for GCIDE (the GNU Collaborative
// International Dictionary of English as Debian's dict-gcide packs it). It is mild enough for databases of
// plain layout: a heading that starts at the left margin, then indented paragraphs. The rules:
// - The heading is the first line. It goes on while a bracket, brace or \pronunciation\ is open, or a line
//   does not end like a heading. Its words are those before each \pronunciation\.
// - A paragraph is a sense, or several senses ("1.", "2.", "(a)", "(b)" at the start of a line). One that
//   starts with names in {braces} is the definition of those names (a collocation).
// - Left out are quotations (indented by 7 or more), notes, synonyms and all after a source tag ("[1913
//   Webster]").
// - A sense loses its number, its field in parentheses ("(Bot.)") and everything in brackets (etymology,
//   usage). It also loses the author behind "--" at the end, and derived forms ("-- {Calmly}, adv."). Cross
//   references lose their braces and keep their words. Bracketed letters become plain ones: "[ae]" is "ae",
//   "['e]" is "e".
// - Definitions that only refer ("See Calk.") are left out.
// A sense belongs to the heading's words; if the heading has none of the entry's headwords, to all of these.
// Other headwords of the entry are inflected and derived forms that it merely lists. They get no definition:
// they would stand beside their base word in every answer.
//
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "learn/text/dictd.h"

namespace gossamer::text {

// The meaning of some words, in one sentence or so. Neither field is ever empty.
struct Definition {
  std::vector<std::string> headwords;
  std::string text;
};

// The definitions of one entry, in their order; none for an entry without any.
[[nodiscard]] std::vector<Definition> entry_definitions(const DictdEntry& entry);

// Replaces GCIDE's bracketed letters: "caf['e]" is "cafe".
[[nodiscard]] std::string plain_letters(std::string_view text);

}  // namespace gossamer::text
