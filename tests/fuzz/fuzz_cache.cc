// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a dataset cache. Opening answers with bad data, or with a dataset whose every record keeps the
// promises of rows.h. Checksums are made right first, so that the fuzzer gets past them.
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "host/sim/compute.h"
#include "learn/data/cache_format.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/in_memory_dataset.h"

namespace {

using namespace gossamer;
using data::cache::BlockEntry;
using data::cache::Trailer;

// A mapped file. It lies in 64-bit words, for alignment.
class MappedWords final : public host::MappedFile {
 public:
  MappedWords(std::vector<std::uint64_t> words, std::size_t size) : words_(std::move(words)), size_(size) {}
  std::span<const std::byte> bytes() const override { return std::as_bytes(std::span(words_)).first(size_); }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_;
};

void seal(std::uint8_t* bytes, std::size_t size) {
  if (size < sizeof(Trailer)) return;
  const std::size_t end = size - sizeof(Trailer);
  Trailer trailer;
  std::memcpy(&trailer, bytes + end, sizeof trailer);
  if (trailer.footer_offset > end) return;
  const std::size_t room = (end - trailer.footer_offset) / sizeof(BlockEntry);
  for (std::size_t i = 0; i < std::min<std::uint64_t>(trailer.blocks, room); ++i) {
    std::uint8_t* at = bytes + trailer.footer_offset + i * sizeof(BlockEntry);
    BlockEntry entry;
    std::memcpy(&entry, at, sizeof entry);
    if (entry.offset > size || entry.bytes > size - entry.offset) continue;
    entry.checksum = XXH3_64bits(bytes + entry.offset, entry.bytes);
    std::memcpy(at, &entry, sizeof entry);
  }
  trailer.footer_checksum = XXH3_64bits(bytes + trailer.footer_offset, end - trailer.footer_offset);
  trailer.trailer_checksum = XXH3_64bits(&trailer, offsetof(Trailer, trailer_checksum));
  std::memcpy(bytes + end, &trailer, sizeof trailer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::vector<std::uint64_t> words(size / 8 + 1);
  if (size > 0) std::memcpy(words.data(), bytes, size);
  seal(reinterpret_cast<std::uint8_t*>(words.data()), size);
  host::SimCompute compute({.workers = 2});
  const auto set =
      data::CachedDataset::open(std::make_unique<MappedWords>(std::move(words), size), "fuzz", compute);
  if (!set.ok()) {
    CHECK(set.error().kind == ErrorKind::kBadData);
    return 0;
  }
  data::InMemoryDataset checked({.features = (*set)->features(), .labels = (*set)->labels()});
  for (std::uint64_t i = 0; i < (*set)->size(); ++i) checked.add((*set)->record(RecordIndex(i)));
  CHECK(checked.feature_entries() == (*set)->feature_entries());
  CHECK(checked.label_entries() == (*set)->label_entries());
  std::size_t name_bytes = 0;
  for (std::uint32_t i = 0; (*set)->has_label_names() && i < (*set)->labels(); ++i) {
    for (const char c : (*set)->label_name(i)) name_bytes += c != '\0';
  }
  for (std::uint32_t i = 0; (*set)->has_feature_names() && i < (*set)->features(); ++i) {
    for (const char c : (*set)->feature_name(i)) name_bytes += c != '\0';
  }
  CHECK(name_bytes <= size);
  return 0;
}
