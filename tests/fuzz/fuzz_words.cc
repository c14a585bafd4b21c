// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a plain text, packed or not. The reader answers with words without blanks, or with bad data
// that has a place. The result does not depend on the size of its buffer.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz_source.h"
#include "learn/data/read/word_reader.h"

namespace {

using namespace gossamer;

std::vector<std::string> read(std::span<const std::uint8_t> bytes, std::size_t buffer) {
  const auto source = fuzz::open(bytes);
  if (source == nullptr) return {};
  std::vector<std::string> words;
  const data::ReadOptions options{.limits = {.chunk_bytes = buffer}, .skip_bad = 1000};
  const auto report = data::read_words(*source, options, [&](std::string_view word) -> Result<void> {
    CHECK(word.size() <= data::kMaxWordBytes && word.find_first_of(" \t\r\n") == std::string_view::npos);
    words.emplace_back(word);
    return {};
  });
  CHECK(report.ok() || (report.error().kind == ErrorKind::kBadData && !report.error().where.empty()));
  if (!report.ok()) return {};
  CHECK(report->records > 0 && report->records <= words.size());
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  CHECK(read({data, size}, 1 << 16) == read({data, size}, 7));
  return 0;
}
