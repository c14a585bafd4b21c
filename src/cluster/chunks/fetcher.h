// SPDX-License-Identifier: Apache-2.0
//
// Fetcher: gets a large content, named by its manifest's id, from several donors at once
// (docs/protocols/chunks.md). Donors may have parts of it, be slow, busy, die or lie. The fetcher believes
// only bytes with the right hash.
//
//   Fetcher fetcher({.id = id, .channels = channels, .seed = node});
//   fetcher.add_donor(peer, now, out);
//   ... ChunkHere: write it; DonorDropped: tell membership; tick() at next_wakeup() ...
//
// A pure state machine. The caller keeps what a later fetcher resumes from: the manifest, and the chunks it
// has written.
//
// Cost: a hash over each chunk inside on(). Thread rule: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "base/slice.h"
#include "base/time.h"
#include "cluster/chunks/chunk_messages.h"
#include "cluster/chunks/manifest.h"

namespace gossamer::cluster {

// The manifest came and has the right hash; chunks follow.
struct ManifestHere {};
// A chunk with the right content came. Each chunk comes once.
struct ChunkHere {
  std::uint64_t chunk = 0;
  Slices content;
};
// A donor lied or broke the rules. It is asked no more. `nonsense`: what it sent is no answer at all. A bad
// disk or an earlier question of this node may explain anything else.
struct DonorDropped {
  net::PeerId donor;
  Error error;
  bool nonsense = false;
};
// All chunks are here.
struct FetchDone {};
using FetchEvent = std::variant<ChunkSend, ManifestHere, ChunkHere, DonorDropped, FetchDone>;
using FetchEvents = std::vector<FetchEvent>;

class Fetcher {
 public:
  struct Options {
    Sha256 id{};
    ChunkChannels channels;
    std::uint64_t seed = 0;     // differs among the fetchers of one id
    std::uint64_t window = 16;  // requests out to one donor
  };

  explicit Fetcher(const Options& options) : options_(options) {}
  // A fetcher that knows the manifest and has the chunks `here`. Requires a manifest of options.id, and a bit
  // for each chunk.
  Fetcher(const Options& options, Manifest manifest, ChunkSet here);

  // Asks a peer what it has. The peer may be one that was lost and is back. Requires that it is no donor now.
  void add_donor(net::PeerId donor, Instant now, FetchEvents& out);
  void lost(net::PeerId donor, Instant now, FetchEvents& out);
  // Takes a message on the channel of answers. Messages about other ids, or from peers that are no donors,
  // change nothing.
  void on(net::PeerId from, net::Message message, Instant now, FetchEvents& out);
  void tick(Instant now, FetchEvents& out);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  [[nodiscard]] bool done() const { return manifest_.has_value() && missing_ == 0; }
  // Null until it is known.
  [[nodiscard]] const Manifest* manifest() const { return manifest_.has_value() ? &*manifest_ : nullptr; }
  [[nodiscard]] const ChunkSet& here() const { return here_; }
  // How many missing chunks no donor has. While it is above 0, the fetch cannot end without another donor.
  [[nodiscard]] std::uint64_t unavailable() const;
  // Payload bytes of chunks that came twice or with wrong bytes.
  [[nodiscard]] std::uint64_t wasted_bytes() const { return wasted_bytes_; }

 private:
  struct Source {
    bool offered = false;
    bool asked_for_manifest = false;
    ChunkSet has;                      // empty: nothing
    std::vector<std::uint64_t> asked;  // oldest first
    std::uint64_t window = 0;
    std::optional<Instant> paused_until;
    std::size_t cursor = 0;  // in order_
  };

  void know(Manifest manifest, ChunkSet here);
  void drop(DonorDropped dropped, FetchEvents& out);
  void release(Source& source);
  void let_go(Source& source, std::uint64_t chunk);
  void reorder();
  [[nodiscard]] bool open(std::uint64_t chunk) const { return !here_[chunk] && askers_[chunk] == 0; }
  [[nodiscard]] std::optional<std::uint64_t> pick(Source& source);
  void want(net::PeerId donor, Source& source, std::uint64_t chunk, FetchEvents& out);
  void ask_all(Instant now, FetchEvents& out);
  void take_over(net::PeerId idle, Source& source, FetchEvents& out);
  [[nodiscard]] Result<void> on_offer(net::PeerId from, Source& source, const wire::Chunks& body,
                                      Slices payload, FetchEvents& out);
  [[nodiscard]] Result<void> on_chunk(net::PeerId from, Source& source, std::uint64_t chunk, Slices payload,
                                      FetchEvents& out);

  const Options options_;
  std::optional<Manifest> manifest_;
  ChunkSet here_;
  std::uint64_t missing_ = 0;
  std::vector<std::uint8_t> askers_;  // by chunk: donors that were asked and have not answered, at most 2
  std::vector<std::uint64_t> order_;  // chunks that were open at the last reorder(), the rarest first
  std::set<std::uint64_t> returned_;  // chunks that became open again since
  std::map<net::PeerId, Source> sources_;
  std::uint64_t wasted_bytes_ = 0;
};

}  // namespace gossamer::cluster
