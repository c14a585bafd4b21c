// SPDX-License-Identifier: Apache-2.0
//
// Donor: gives chunks of what it holds to whoever asks, within limits, so that helping others does not eat
// this node's own uplink (docs/protocols/chunks.md, "Donor").
//
// A pure state machine but for Read, the caller's, which it calls from within on(). Thread rule: one owner.
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
  // The bytes of a chunk. An error is told to nobody but the fetcher, as GONE.
  using Read = std::function<Result<Slice>(const Manifest& manifest, std::uint64_t chunk)>;

  struct Options {
    ChunkChannels channels;
    std::uint64_t most_in_service = 32;
    double bytes_per_second = 0;  // above 0
  };

  Donor(const Options& options, Instant now);

  // From now on gives `has` of it (nothing: all). A second call for the same id replaces the first.
  void give(Manifest manifest, std::optional<ChunkSet> has, Read read);
  void withdraw(const Sha256& id) { holdings_.erase(id); }

  // A message on the channel of requests. An error for whatever a correct fetcher never sends. Each CHUNK
  // among `out` is in service until served() or lost().
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
  // How long to wait; nothing: serve it.
  [[nodiscard]] std::optional<Duration> admission(Instant now);

  const Options options_;
  std::map<Sha256, Holding> holdings_;
  double bucket_;  // bytes that may be given now; below 0 after a chunk that overdrew it
  Instant filled_;
  std::uint64_t in_service_ = 0;
  std::map<net::PeerId, std::uint64_t> serving_;
};

}  // namespace gossamer::cluster
