// SPDX-License-Identifier: Apache-2.0
//
// The structures of docs/protocols/token-file.md as they lie in the file, shared by writer and reader.
// Thread rule: plain values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace gossamer::tokens::layout {

static_assert(std::endian::native == std::endian::little, "the file is mapped as it is");

inline constexpr std::string_view kHeaderMagic = "GSMRTOKN";
inline constexpr std::string_view kTrailerMagic = "GSMRTAIL";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint64_t kBlockBytes = std::uint64_t{16} << 20;  // of tokens, for each checksum

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t token_bytes;
};
static_assert(sizeof(Header) == 16);

struct Trailer {
  char magic[8];
  std::uint32_t version;
  std::uint32_t vocabulary;
  std::uint64_t tokens;
  std::uint64_t text_bytes;
  std::uint64_t documents;
  std::uint64_t tokenizer_digest;
  std::uint64_t footer_offset;
  std::uint64_t footer_bytes;
  std::uint64_t footer_checksum;
  std::uint64_t trailer_checksum;  // over all before it
};
static_assert(sizeof(Trailer) == 80 && std::is_trivially_copyable_v<Trailer>);

// The bytes of a token: the least that hold every number below `vocabulary`.
[[nodiscard]] constexpr std::uint32_t token_bytes(std::uint32_t vocabulary) {
  return vocabulary <= (1U << 16) ? 2 : 4;
}
[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) & ~std::uint64_t{7}; }
// The token blocks of so many bytes of tokens; the last one may be shorter.
[[nodiscard]] constexpr std::uint64_t blocks(std::uint64_t bytes) {
  return bytes / kBlockBytes + (bytes % kBlockBytes != 0 ? 1 : 0);
}

}  // namespace gossamer::tokens::layout
