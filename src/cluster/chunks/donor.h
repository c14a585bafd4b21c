// SPDX-License-Identifier: Apache-2.0
//
// Donor: gives chunks of its holdings to any peer that asks (docs/protocols/chunks.md, "Donor"). Limits keep
// this help from eating the node's own uplink.
//
// A pure state machine, but for the caller's Read, which on() calls. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "base/slice.h"
#include "base/time.h"
#include "cluster/chunks/chunk_messages.h"
#include "cluster/chunks/manifest.h"

namespace gossamer::cluster {

class Donor {
 public:
  // Reads the bytes of a chunk. The fetcher learns of an error as GONE, and nobody else does.
  using Read = std::function<Result<Slice>(const Manifest& manifest, std::uint64_t chunk)>;

  struct Options {
    ChunkChannels channels;
    std::uint64_t most_in_service = 32;
    double bytes_per_second = 0;  // above 0
  };

  Donor(const Options& options, Instant now);

  // From now on gives the chunks `has` of the manifest (nothing: all). A second call for the same id replaces
  // the first.
  void give(Manifest manifest, std::optional<ChunkSet> has, Read read);
  void withdraw(const Sha256& id) { holdings_.erase(id); }

  // Takes a message on the channel of requests. The error is for a message that a correct fetcher never
  // sends. Each CHUNK among `out` is in service until served() or lost().
  [[nodiscard]] Result<void> on(net::PeerId from, const net::Message& message, Instant now,
                                std::vector<ChunkSend>& out);
  // The link has carried one chunk to `peer`.
  void served(net::PeerId peer);
  void lost(net::PeerId peer);

  [[nodiscard]] std::uint64_t in_service() const { return in_service_; }

 private:
  static constexpr Duration kRetry{50'000'000};

  struct Holding {
    Manifest manifest;
    std::optional<ChunkSet> has;
    Read read;
  };

  void offer(net::PeerId from, const Sha256& id, bool with_manifest, std::vector<ChunkSend>& out) const;
  void serve(net::PeerId from, const Sha256& id, std::uint64_t chunk, Instant now,
             std::vector<ChunkSend>& out);
  void answer(net::PeerId to, const wire::Chunks& body, Slices payload, std::vector<ChunkSend>& out) const;
  // How long the fetcher has to wait; nothing: serve it now.
  [[nodiscard]] std::optional<Duration> admission(Instant now);

  const Options options_;
  std::map<Sha256, Holding> holdings_;
  double bucket_;  // bytes that may be given now; below 0 after a chunk that overdrew it
  Instant filled_;
  std::uint64_t in_service_ = 0;
  std::map<net::PeerId, std::uint64_t> serving_;
};

}  // namespace gossamer::cluster
