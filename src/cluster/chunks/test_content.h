// SPDX-License-Identifier: Apache-2.0
//
// Content to send around, for tests. Thread rule: plain values.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/chunks/manifest.h"

namespace gossamer::cluster {

struct Content {
  std::string bytes;
  Manifest manifest;

  [[nodiscard]] Slice chunk(std::uint64_t number) const {
    return Slice::of(bytes.substr(manifest.offset_of(number), manifest.size_of(number)));
  }
};

inline Content make_content(std::uint64_t size, std::uint64_t chunk_bytes, std::uint64_t seed) {
  Rng rng(seed, Purpose::kTest, 77);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(rng.next_u32());
  std::vector<Sha256> hashes;
  for (std::uint64_t at = 0; at < size; at += chunk_bytes) {
    hashes.push_back(sha256({Slice::of(bytes.substr(at, chunk_bytes))}));
  }
  return {bytes, Manifest::of("weights", size, chunk_bytes, hashes)};
}

}  // namespace gossamer::cluster
