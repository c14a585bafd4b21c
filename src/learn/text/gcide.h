// SPDX-License-Identifier: Apache-2.0
//
// Takes the entries of a dictd database apart into definitions. Made for GCIDE (the GNU Collaborative
// International Dictionary of English as Debian's dict-gcide packs it), and mild enough for databases of
// plain layout: a heading that starts at the left margin, then indented paragraphs. The rules:
//  - The heading is the first line, and further ones while a bracket, brace or \pronunciation\ is open or the
//    line does not end like a heading. Its words are those before each \pronunciation\.
//  - A paragraph is a sense, several senses ("1.", "2.", "(a)", "(b)" at the start of a line), or, starting
//    with names in {braces}, the definition of those names (a collocation). Quotations (indented by 7 or
//    more), notes, synonyms and all after a source tag ("[1913 Webster]") are left out.
//  - Of a sense are dropped: its number, its field in parentheses ("(Bot.)"), everything in brackets
//    (etymology, usage), the author behind "--" at the end, derived forms ("-- {Calmly}, adv."), and the
//    braces of cross references, whose words stay. Bracketed letters become plain ones: "[ae]" is "ae",
//    "['e]" is "e".
//  - Definitions that only refer ("See Calk.") are left out.
// A sense belongs to the heading's words; if the heading has none of the entry's headwords, to all of these.
// Other headwords of the entry (inflected and derived forms that it merely lists) get no definition: they
// would stand beside their base word in every answer.
//
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "learn/text/dictd.h"

namespace gossamer::text {

// What some words mean, in one sentence or so. Both never empty.
struct Definition {
  std::vector<std::string> headwords;
  std::string text;
};

// The definitions of one entry, in their order; none for an entry without any.
[[nodiscard]] std::vector<Definition> entry_definitions(const DictdEntry& entry);

// Replaces GCIDE's bracketed letters: "caf['e]" is "cafe".
[[nodiscard]] std::string plain_letters(std::string_view text);

}  // namespace gossamer::text
