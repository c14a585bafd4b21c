// SPDX-License-Identifier: Apache-2.0
#include "cluster/chunks/manifest.h"

#include <fmt/format.h>
#include <gossamer/chunks.pb.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace gossamer::cluster {
namespace {

Error bad(std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .what = "cannot read a manifest",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "fetch it from another node"};
}

// Divides and rounds up, without overflow for any two numbers.
std::uint64_t chunks_of(std::uint64_t bytes, std::uint64_t chunk_bytes) {
  return bytes / chunk_bytes + (bytes % chunk_bytes == 0 ? 0 : 1);
}

}  // namespace

Manifest Manifest::of(std::string name, std::uint64_t bytes, std::uint64_t chunk_bytes,
                      const std::vector<Sha256>& hashes) {
  CHECK(chunk_bytes >= 1 && chunk_bytes <= kMaxChunkBytes, chunk_bytes);
  CHECK(hashes.size() == chunks_of(bytes, chunk_bytes), hashes.size(), bytes, chunk_bytes);
  wire::Manifest wire;
  wire.set_name(std::move(name));
  wire.set_bytes(bytes);
  wire.set_chunk_bytes(chunk_bytes);
  std::string& all = *wire.mutable_hashes();
  for (const Sha256& hash : hashes) all.append(reinterpret_cast<const char*>(hash.data()), hash.size());
  auto made = decode({Slice::of(wire.SerializeAsString())});
  CHECK(made.ok());
  return *std::move(made);
}

Result<Manifest> Manifest::decode(const Slices& encoded) {
  if (total_bytes(encoded) > kMaxEncodedBytes) {
    return bad(fmt::format("{} bytes", total_bytes(encoded)), fmt::format("at most {}", kMaxEncodedBytes));
  }
  Manifest manifest;
  manifest.encoded_ = Slice::of(joined(encoded));
  wire::Manifest wire;
  if (!wire.ParseFromArray(manifest.encoded_.bytes().data(), static_cast<int>(manifest.encoded_.size()))) {
    return bad(fmt::format("{} bytes that are none", manifest.encoded_.size()), "a Manifest");
  }
  if (wire.chunk_bytes() < 1 || wire.chunk_bytes() > kMaxChunkBytes) {
    return bad(fmt::format("chunks of {} bytes", wire.chunk_bytes()), fmt::format("1 to {}", kMaxChunkBytes));
  }
  const std::uint64_t chunks = chunks_of(wire.bytes(), wire.chunk_bytes());
  if (wire.hashes().size() % sizeof(Sha256) != 0 || wire.hashes().size() / sizeof(Sha256) != chunks) {
    return bad(fmt::format("{} bytes of hashes", wire.hashes().size()),
               fmt::format("{} hashes of 32 bytes", chunks));
  }
  manifest.id_ = sha256({manifest.encoded_});
  manifest.name_ = wire.name();
  manifest.bytes_ = wire.bytes();
  manifest.chunk_bytes_ = wire.chunk_bytes();
  manifest.hashes_.resize(chunks);
  if (chunks > 0) std::memcpy(manifest.hashes_.data(), wire.hashes().data(), wire.hashes().size());
  return manifest;
}

std::uint64_t Manifest::size_of(std::uint64_t chunk) const {
  CHECK(chunk < chunks(), chunk, chunks());
  return std::min(chunk_bytes_, bytes_ - offset_of(chunk));
}

bool Manifest::matches(std::uint64_t chunk, const Slices& content) const {
  return total_bytes(content) == size_of(chunk) && sha256(content) == hashes_[chunk];
}

}  // namespace gossamer::cluster
