// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, cut in two at the first zero byte, as a dictd index and its text. The reader answers with
// entries of valid UTF-8 and non-empty definitions, or with bad data that has a place.
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "fuzz_source.h"
#include "learn/text/dictd.h"
#include "learn/text/gcide.h"
#include "learn/text/words.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gossamer;
  const std::span<const std::uint8_t> bytes(data, size);
  const void* zero = size == 0 ? nullptr : std::memchr(data, 0, size);
  const std::size_t cut =
      zero == nullptr ? size : static_cast<std::size_t>(static_cast<const std::uint8_t*>(zero) - data);
  const auto index = fuzz::open(bytes.first(cut));
  const auto text = fuzz::open(bytes.subspan(cut == size ? size : cut + 1));
  if (index == nullptr || text == nullptr) return 0;
  const auto report = text::read_dictd(*index, *text, [](const text::DictdEntry& entry) -> Result<void> {
    CHECK(!entry.headwords.empty());
    CHECK(text::valid_utf8_prefix(entry.text) == entry.text.size());
    for (const text::Definition& definition : text::entry_definitions(entry)) {
      CHECK(!definition.headwords.empty() && !definition.text.empty());
      CHECK(text::valid_utf8_prefix(definition.text) == definition.text.size());
      CHECK(text::normalised_text(definition.text).ok());
    }
    return {};
  });
  CHECK(report.ok() || (report.error().kind == ErrorKind::kBadData && !report.error().where.empty()));
  return 0;
}
