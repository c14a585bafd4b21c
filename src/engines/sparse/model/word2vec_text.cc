// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/word2vec_text.h"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "learn/text/words.h"
#include "tensors/buffered_file.h"

namespace gossamer::sparse_engine {

Result<Word2vecReport> write_word2vec(host::WritableFile& file, const NamedRows& named) {
  CHECK(named.count <= named.rows.rows(), named.count, named.rows.rows());
  std::unordered_set<std::string> seen;
  std::vector<bool> kept(named.count);
  for (std::size_t i = 0; i < named.count; ++i) {
    kept[i] = seen.insert(text::without_blanks(named.name(i))).second;
  }
  const Word2vecReport report{.vectors = seen.size(), .repeated = named.count - seen.size()};
  seen.clear();
  tensors::BufferedFile out(file);
  const std::size_t width = named.rows.width();
  if (auto done = out.append(fmt::format("{} {}\n", report.vectors, width)); !done.ok()) return done.error();
  std::string line;
  for (std::size_t i = 0; i < named.count; ++i) {
    if (!kept[i]) continue;
    line = text::without_blanks(named.name(i));
    const float* const row = named.rows.weights(i);
    for (std::size_t c = 0; c < width; ++c) fmt::format_to(std::back_inserter(line), " {}", row[c]);
    line += '\n';
    if (auto done = out.append(line); !done.ok()) return done.error();
  }
  if (auto done = out.flush(); !done.ok()) return done.error();
  return report;
}

}  // namespace gossamer::sparse_engine
