// SPDX-License-Identifier: Apache-2.0
//
// Messages between fetchers and donors (docs/protocols/chunks.md). Thread rule: plain values and functions.
#pragma once

#include <gossamer/chunks.pb.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/sha256.h"
#include "net/link/message.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {

// Channels that donors and fetchers listen on.
struct ChunkChannels {
  std::uint32_t requests = 0;  // ASK, WANT
  std::uint32_t answers = 0;   // OFFER, CHUNK, BUSY, GONE
};

// A message to be sent, on the bulk lane.
struct ChunkSend {
  net::PeerId to;
  net::Message message;
};

[[nodiscard]] inline wire::Chunks chunks_body(const Sha256& manifest, wire::Chunks::Kind kind,
                                              std::uint64_t chunk = 0) {
  wire::Chunks body;
  body.set_manifest(manifest.data(), manifest.size());
  body.set_kind(kind);
  body.set_chunk(chunk);
  return body;
}

[[nodiscard]] Error chunks_fault(net::PeerId peer, std::string got, std::string expected);

}  // namespace gossamer::cluster
