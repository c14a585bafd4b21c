// SPDX-License-Identifier: Apache-2.0
//
// Manifest: the chunks of something large and fixed, by their hashes (docs/protocols/chunks.md). Immutable.
// Thread rule: plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "base/slice.h"

namespace gossamer::cluster {

// Which chunks are there, by number.
using ChunkSet = std::vector<bool>;

class Manifest {
 public:
  static constexpr std::uint64_t kMaxChunkBytes = 16ULL << 20;
  static constexpr std::uint64_t kMaxEncodedBytes = 16ULL << 20;

  // The manifest of a content whose chunks have these hashes. Requires 1 <= chunk_bytes <= kMaxChunkBytes, a
  // hash for each chunk, and an encoding within kMaxEncodedBytes.
  [[nodiscard]] static Manifest of(std::string name, std::uint64_t bytes, std::uint64_t chunk_bytes,
                                   const std::vector<Sha256>& hashes);
  // Reads encoded(). The error is kBadData, without `where`, for bytes that are no manifest.
  [[nodiscard]] static Result<Manifest> decode(const Slices& encoded);

  [[nodiscard]] const Sha256& id() const { return id_; }
  [[nodiscard]] const Slice& encoded() const { return encoded_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t chunks() const { return hashes_.size(); }
  // Where a chunk lies. Requires chunk < chunks().
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t chunk) const { return chunk * chunk_bytes_; }
  [[nodiscard]] std::uint64_t size_of(std::uint64_t chunk) const;
  // Whether these are the chunk's bytes: right size, right hash.
  [[nodiscard]] bool matches(std::uint64_t chunk, const Slices& content) const;

 private:
  Manifest() = default;

  Sha256 id_{};
  Slice encoded_;
  std::string name_;
  std::uint64_t bytes_ = 0;
  std::uint64_t chunk_bytes_ = 1;
  std::vector<Sha256> hashes_;
};

}  // namespace gossamer::cluster
