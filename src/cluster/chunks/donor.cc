// SPDX-License-Identifier: Apache-2.0
#include "cluster/chunks/donor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"

namespace gossamer::cluster {
namespace {

Slice packed(const ChunkSet& set) {
  std::string bits((set.size() + 7) / 8, '\0');
  for (std::size_t chunk = 0; chunk < set.size(); ++chunk) {
    if (set[chunk]) bits[chunk / 8] = static_cast<char>(bits[chunk / 8] | (1 << (chunk % 8)));
  }
  return Slice::of(std::move(bits));
}

}  // namespace

Donor::Donor(const Options& options, Instant now)
    : options_(options), bucket_(options.bytes_per_second), filled_(now) {
  CHECK(options.bytes_per_second > 0 && options.most_in_service > 0, options.bytes_per_second,
        options.most_in_service);
}

void Donor::give(Manifest manifest, std::optional<ChunkSet> has, Read read) {
  CHECK(!has.has_value() || has->size() == manifest.chunks());
  const Sha256 id = manifest.id();
  holdings_.insert_or_assign(id, Holding{std::move(manifest), std::move(has), std::move(read)});
}

Result<void> Donor::on(net::PeerId from, const net::Message& message, Instant now,
                       std::vector<ChunkSend>& out) {
  wire::Chunks body;
  if (!body.ParseFromString(message.body) || body.manifest().size() != sizeof(Sha256)) {
    return chunks_fault(from, fmt::format("{} bytes that are no request", message.body.size()), "a Chunks");
  }
  Sha256 id{};
  std::memcpy(id.data(), body.manifest().data(), id.size());
  switch (body.kind()) {
    case wire::Chunks::ASK: offer(from, id, body.with_manifest(), out); return {};
    case wire::Chunks::WANT: serve(from, id, body.chunk(), now, out); return {};
    default: break;
  }
  return chunks_fault(from, fmt::format("a request of kind {}", static_cast<int>(body.kind())),
                      "ASK or WANT");
}

void Donor::offer(net::PeerId from, const Sha256& id, bool with_manifest, std::vector<ChunkSend>& out) const {
  wire::Chunks body = chunks_body(id, wire::Chunks::OFFER);
  Slices payload;
  const auto found = holdings_.find(id);
  if (found != holdings_.end()) {
    const Holding& holding = found->second;
    if (with_manifest) {
      payload.push_back(holding.manifest.encoded());
      body.set_manifest_bytes(holding.manifest.encoded().size());
    }
    body.set_whole(!holding.has.has_value());
    if (holding.has.has_value()) payload.push_back(packed(*holding.has));
  }
  answer(from, body, std::move(payload), out);
}

void Donor::serve(net::PeerId from, const Sha256& id, std::uint64_t chunk, Instant now,
                  std::vector<ChunkSend>& out) {
  const auto found = holdings_.find(id);
  const bool has = found != holdings_.end() && chunk < found->second.manifest.chunks() &&
                   (!found->second.has.has_value() || (*found->second.has)[chunk]);
  if (!has) return answer(from, chunks_body(id, wire::Chunks::GONE, chunk), {}, out);
  if (const auto wait = admission(now); wait.has_value()) {
    wire::Chunks body = chunks_body(id, wire::Chunks::BUSY, chunk);
    // Rounded up, so that a fetcher that waits so long finds something left.
    body.set_retry_ms(static_cast<std::uint32_t>(std::min(std::floor(wait->milliseconds()) + 1, 60'000.0)));
    return answer(from, body, {}, out);
  }
  auto content = found->second.read(found->second.manifest, chunk);
  if (!content.ok()) return answer(from, chunks_body(id, wire::Chunks::GONE, chunk), {}, out);
  bucket_ -= static_cast<double>(content->size());
  ++in_service_;
  ++serving_[from];
  answer(from, chunks_body(id, wire::Chunks::CHUNK, chunk), {*std::move(content)}, out);
}

std::optional<Duration> Donor::admission(Instant now) {
  bucket_ =
      std::min(options_.bytes_per_second, bucket_ + options_.bytes_per_second * (now - filled_).seconds());
  filled_ = now;
  if (in_service_ >= options_.most_in_service) return kRetry;
  if (bucket_ <= 0) return from_seconds(-bucket_ / options_.bytes_per_second);
  return std::nullopt;
}

void Donor::answer(net::PeerId to, const wire::Chunks& body, Slices payload,
                   std::vector<ChunkSend>& out) const {
  out.push_back({to,
                 {.channel = options_.channels.answers,
                  .body = body.SerializeAsString(),
                  .payload = std::move(payload)}});
}

void Donor::served(net::PeerId peer) {
  const auto found = serving_.find(peer);
  if (found == serving_.end()) return;  // it was lost meanwhile
  --in_service_;
  if (--found->second == 0) serving_.erase(found);
}

void Donor::lost(net::PeerId peer) {
  const auto found = serving_.find(peer);
  if (found == serving_.end()) return;
  in_service_ -= found->second;
  serving_.erase(found);
}

}  // namespace gossamer::cluster
