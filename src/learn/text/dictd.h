// SPDX-License-Identifier: Apache-2.0
//
// Reads dictionary databases in the format of dictd (the server of RFC 2229). The index has one line a
// headword,
//
//   HEADWORD <tab> OFFSET <tab> LENGTH [<tab> ANYTHING]
//
// OFFSET and LENGTH say where in the text file (plain, .dz or .gz) the entry stands. They are base-64 digits
// (A-Z a-z 0-9 + /, most significant first, as dictfmt(1) writes them). Several headwords may lead to one
// entry. Headwords that start with "00-database" or "00database" and the like describe the database.
//
// A byte of the text that is no UTF-8 becomes U+FFFD, as Unicode recommends (section 3.9): GCIDE itself has
// three of them in 40 million. The report counts the entries with such bytes.
//
// Errors: those of the sources, and kBadData with FILE:LINE. The latter is for a broken line of the index
// (invalid UTF-8 too), an entry outside the text, or an index without an entry. Thread rule: the calling
// thread. Memory: the whole text and index (GCIDE: 44 MB), during the call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "learn/data/read/byte_source.h"

namespace gossamer::text {

// One entry; valid only during the call of the sink.
struct DictdEntry {
  std::span<const std::string_view> headwords;  // in the order of the index, at least one, not distinct
  std::string_view text;                        // as in the file, valid UTF-8
};
using DictdSink = FunctionRef<Result<void>(const DictdEntry& entry)>;

struct DictdReport {
  std::uint64_t headwords = 0;  // lines of the index, without those that describe the database
  std::uint64_t entries = 0;
  std::uint64_t repaired = 0;  // entries with bytes that are no UTF-8
};

// Hands over all entries in the order of the text. An error of the sink ends the read and is returned.
[[nodiscard]] Result<DictdReport> read_dictd(data::ByteSource& index, data::ByteSource& text, DictdSink sink);

// Reads base-64 digits into `number`. False if there is none, another character, or a value above 2^48.
[[nodiscard]] bool parse_dictd_number(std::string_view digits, std::uint64_t& number);

}  // namespace gossamer::text
