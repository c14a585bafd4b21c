// SPDX-License-Identifier: Apache-2.0
//
// Named vectors in the text form of word2vec (Mikolov et al., 2013), which gensim's
// KeyedVectors.load_word2vec_format(FILE) and many others read:
//
//   COUNT WIDTH
//   NAME V1 V2 ... VWIDTH
//
// one line each, separated by single blanks. Numbers are the shortest that give the same float.
//
// A name may hold no blank there. So every blank or control character of Unicode in it becomes '_' ("night
// owl" -> "night_owl"), and an empty name is "_". Names that are the same afterwards would be one word to a
// reader. The first keeps its line, and the others are left out and counted.
//
// Thread rule: pure function; the file has one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "host/api/disk.h"
#include "learn/sparse/network/row_table.h"

namespace gossamer::sparse_engine {

struct NamedRows {
  const sparse::RowTable& rows;
  // The name of row i < count, in UTF-8; valid until the next call.
  std::function<std::string_view(std::size_t)> name;
  std::size_t count = 0;  // at most rows.rows()
};

struct Word2vecReport {
  std::uint64_t vectors = 0;   // written
  std::uint64_t repeated = 0;  // left out: without blanks their names repeat another's
};

// Appends a whole file; neither syncs nor closes.
[[nodiscard]] Result<Word2vecReport> write_word2vec(host::WritableFile& file, const NamedRows& named);

}  // namespace gossamer::sparse_engine
