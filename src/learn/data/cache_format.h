// SPDX-License-Identifier: Apache-2.0
//
// The structures of docs/protocols/dataset-cache.md as they lie in the file, shared by writer and reader.
// Thread rule: plain values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace gossamer::data::cache {

static_assert(std::endian::native == std::endian::little, "the cache is mapped as it is");

inline constexpr std::string_view kHeaderMagic = "GSMRDATA";
inline constexpr std::string_view kTrailerMagic = "GSMRTAIL";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kMaxRecordsPerBlock = 1U << 20;
inline constexpr std::uint32_t kHasLabelNames = 1;
inline constexpr std::uint32_t kHasFeatureNames = 2;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
};
static_assert(sizeof(Header) == 16);

struct BlockHeader {
  std::uint32_t records;
  std::uint32_t feature_entries;
  std::uint32_t label_entries;
  std::uint32_t reserved;
};
static_assert(sizeof(BlockHeader) == 16);

struct BlockEntry {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t checksum;
};
static_assert(sizeof(BlockEntry) == 24);

struct Trailer {
  char magic[8];
  std::uint32_t version;
  std::uint32_t records_per_block;
  std::uint64_t records;
  std::uint64_t feature_entries;
  std::uint64_t label_entries;
  std::uint32_t features;
  std::uint32_t labels;
  std::uint32_t flags;
  std::uint32_t reserved;
  std::uint64_t blocks;
  std::uint64_t footer_offset;
  std::uint64_t footer_bytes;
  std::uint64_t footer_checksum;
  std::uint64_t trailer_checksum;  // over all before it
};
static_assert(sizeof(Trailer) == 96 && std::is_trivially_copyable_v<Trailer>);

// A string table: name i is bytes[offset[i] .. offset[i + 1]). `offset` is empty when there are no names.
struct Names {
  std::span<const std::uint64_t> offset = {};
  std::string_view bytes = {};
};

// Bytes of a block before its padding; fits in 64 bits for all 32-bit counts.
[[nodiscard]] constexpr std::uint64_t block_payload_bytes(const BlockHeader& h) {
  return sizeof(BlockHeader) + 8 * (std::uint64_t{h.records} + 1) + 8 * std::uint64_t{h.feature_entries} +
         4 * std::uint64_t{h.label_entries};
}
[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) & ~std::uint64_t{7}; }

}  // namespace gossamer::data::cache
