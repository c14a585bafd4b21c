// SPDX-License-Identifier: Apache-2.0
#include "cluster/chunks/fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/hex.h"
#include "base/rng.h"

namespace gossamer::cluster {
namespace {

ChunkSet unpacked(const Slices& bits, std::uint64_t chunks) {
  const std::string bytes = joined(bits);
  ChunkSet set(chunks);
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    set[chunk] = (static_cast<unsigned char>(bytes[chunk / 8]) >> (chunk % 8) & 1) != 0;
  }
  return set;
}

bool is_answer(wire::Chunks::Kind kind) {
  return kind == wire::Chunks::OFFER || kind == wire::Chunks::CHUNK || kind == wire::Chunks::BUSY ||
         kind == wire::Chunks::GONE;
}

}  // namespace

Fetcher::Fetcher(const Options& options, Manifest manifest, ChunkSet here) : options_(options) {
  CHECK(manifest.id() == options.id);
  know(std::move(manifest), std::move(here));
}

void Fetcher::know(Manifest manifest, ChunkSet here) {
  CHECK(here.size() == manifest.chunks(), here.size(), manifest.chunks());
  manifest_ = std::move(manifest);
  missing_ = static_cast<std::uint64_t>(std::ranges::count(here, false));
  here_ = std::move(here);
  askers_.assign(here_.size(), 0);
}

void Fetcher::add_donor(net::PeerId donor, Instant, FetchEvents& out) {
  const auto [place, fresh] = sources_.try_emplace(donor);
  CHECK(fresh, donor.node.value);
  place->second.window = options_.window;
  place->second.asked_for_manifest = !manifest_.has_value();
  wire::Chunks body = chunks_body(options_.id, wire::Chunks::ASK);
  body.set_with_manifest(!manifest_.has_value());
  out.push_back(ChunkSend{
      donor, {.channel = options_.channels.requests, .body = body.SerializeAsString(), .payload = {}}});
}

void Fetcher::lost(net::PeerId donor, Instant now, FetchEvents& out) {
  const auto found = sources_.find(donor);
  if (found == sources_.end()) return;
  release(found->second);
  sources_.erase(found);
  reorder();
  ask_all(now, out);
}

void Fetcher::drop(DonorDropped dropped, FetchEvents& out) {
  const auto found = sources_.find(dropped.donor);
  release(found->second);
  sources_.erase(found);
  reorder();
  out.emplace_back(std::move(dropped));
}

void Fetcher::release(Source& source) {
  for (const std::uint64_t chunk : std::exchange(source.asked, {})) --askers_[chunk];
}

// Ends one request to a donor, answered in whichever way.
void Fetcher::let_go(Source& source, std::uint64_t chunk) {
  std::erase(source.asked, chunk);
  --askers_[chunk];
  if (open(chunk)) returned_.insert(chunk);
}

// Puts the rarest chunk first (B. Cohen: Incentives build robustness in BitTorrent, 2003). Ties stand in an
// order of this fetcher's own.
void Fetcher::reorder() {
  order_.clear();
  returned_.clear();
  for (auto& [peer, source] : sources_) source.cursor = 0;
  if (!manifest_.has_value()) return;
  std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>> ranked;
  for (std::uint64_t chunk = 0; chunk < here_.size(); ++chunk) {
    if (!open(chunk)) continue;
    std::uint64_t holders = 0;
    for (const auto& [peer, source] : sources_) holders += !source.has.empty() && source.has[chunk] ? 1 : 0;
    const auto drawn = philox4x32(
        {static_cast<std::uint32_t>(chunk), 0, 0, 0},
        {static_cast<std::uint32_t>(options_.seed), static_cast<std::uint32_t>(options_.seed >> 32)});
    ranked.emplace_back(holders, drawn[0], chunk);
  }
  std::ranges::sort(ranked);
  for (const auto& one : ranked) order_.push_back(std::get<2>(one));
}

std::optional<std::uint64_t> Fetcher::pick(Source& source) {
  const auto again = std::ranges::find_if(returned_, [&](std::uint64_t chunk) { return source.has[chunk]; });
  if (again != returned_.end()) {
    const std::uint64_t chunk = *again;
    returned_.erase(again);
    return chunk;
  }
  while (source.cursor < order_.size()) {
    const std::uint64_t chunk = order_[source.cursor++];
    if (open(chunk) && source.has[chunk]) return chunk;
  }
  return std::nullopt;
}

void Fetcher::want(net::PeerId donor, Source& source, std::uint64_t chunk, FetchEvents& out) {
  source.asked.push_back(chunk);
  ++askers_[chunk];
  returned_.erase(chunk);
  out.push_back(ChunkSend{donor,
                          {.channel = options_.channels.requests,
                           .body = chunks_body(options_.id, wire::Chunks::WANT, chunk).SerializeAsString(),
                           .payload = {}}});
}

void Fetcher::ask_all(Instant now, FetchEvents& out) {
  if (!manifest_.has_value() || missing_ == 0) return;
  std::set<std::pair<std::size_t, net::PeerId>> ready;  // the least loaded first
  for (auto& [peer, source] : sources_) {
    if (source.paused_until.has_value() && *source.paused_until <= now) source.paused_until.reset();
    if (source.has.empty() || source.paused_until.has_value()) continue;
    if (source.asked.size() < source.window) ready.emplace(source.asked.size(), peer);
  }
  std::vector<net::PeerId> idle;
  while (!ready.empty()) {
    const net::PeerId peer = ready.extract(ready.begin()).value().second;
    Source& source = sources_.at(peer);
    const auto chunk = pick(source);
    if (chunk.has_value()) {
      want(peer, source, *chunk, out);
      if (source.asked.size() < source.window) ready.emplace(source.asked.size(), peer);
    } else if (source.asked.empty()) {
      idle.push_back(peer);
    }
  }
  for (const net::PeerId peer : idle) take_over(peer, sources_.at(peer), out);
}

// The end-game: asks an idle donor for the younger half of the chunks that only the most loaded donor was
// asked for.
void Fetcher::take_over(net::PeerId idle, Source& source, FetchEvents& out) {
  std::vector<std::uint64_t> most;
  for (const auto& [peer, other] : sources_) {
    if (peer == idle) continue;
    std::vector<std::uint64_t> shared;
    for (const std::uint64_t chunk : other.asked) {
      if (askers_[chunk] == 1 && !here_[chunk] && source.has[chunk]) shared.push_back(chunk);
    }
    if (shared.size() > most.size()) most = std::move(shared);
  }
  const std::size_t half = std::min<std::size_t>((most.size() + 1) / 2, source.window);
  for (std::size_t i = 0; i < half; ++i) want(idle, source, most[most.size() - 1 - i], out);
}

void Fetcher::on(net::PeerId from, net::Message message, Instant now, FetchEvents& out) {
  const auto found = sources_.find(from);
  if (found == sources_.end()) return;
  wire::Chunks body;
  if (!body.ParseFromString(message.body)) {
    drop({.donor = from,
          .error =
              chunks_fault(from, fmt::format("{} bytes that are no answer", message.body.size()), "a Chunks"),
          .nonsense = true},
         out);
    return ask_all(now, out);
  }
  if (body.manifest() != std::string(reinterpret_cast<const char*>(options_.id.data()), options_.id.size()))
    return;
  Source& source = found->second;
  const bool asked = std::ranges::find(source.asked, body.chunk()) != source.asked.end();
  Result<void> good;
  if (!is_answer(body.kind())) {
    good = chunks_fault(from, fmt::format("an answer of kind {}", static_cast<int>(body.kind())),
                        "OFFER, CHUNK, BUSY or GONE");
  } else if (body.kind() == wire::Chunks::OFFER) {
    good = on_offer(from, source, body, std::move(message.payload), out);
  } else if (!asked) {
    good = chunks_fault(from, fmt::format("an answer about chunk {}", body.chunk()),
                        "one about what it was asked for");
  } else if (body.kind() == wire::Chunks::CHUNK) {
    good = on_chunk(from, source, body.chunk(), std::move(message.payload), out);
  } else if (body.kind() == wire::Chunks::BUSY) {
    let_go(source, body.chunk());
    source.paused_until = now + from_milliseconds(std::clamp(body.retry_ms(), 1U, 60'000U));
    source.window = std::max<std::uint64_t>(source.asked.size(), 1);
  } else {
    source.has[body.chunk()] = false;
    let_go(source, body.chunk());
  }
  if (!good.ok()) drop({.donor = from, .error = good.error(), .nonsense = !is_answer(body.kind())}, out);
  ask_all(now, out);
}

Result<void> Fetcher::on_offer(net::PeerId from, Source& source, const wire::Chunks& body, Slices payload,
                               FetchEvents& out) {
  if (source.offered) return chunks_fault(from, "a second OFFER", "one");
  source.offered = true;
  SliceReader reader(std::move(payload));
  if (body.manifest_bytes() > (source.asked_for_manifest ? reader.left() : 0)) {
    return chunks_fault(from, fmt::format("a manifest of {} bytes", body.manifest_bytes()),
                        "what was asked for");
  }
  const Slices encoded = reader.take(body.manifest_bytes());
  if (!manifest_.has_value()) {
    if (body.manifest_bytes() == 0 && !body.whole() && reader.left() == 0) return {};  // it has nothing
    auto manifest = Manifest::decode(encoded);
    if (!manifest.ok() || manifest->id() != options_.id) {
      return chunks_fault(from, "another manifest, or none", "the one with SHA-256 " + to_hex(options_.id));
    }
    const std::uint64_t chunks = manifest->chunks();
    know(*std::move(manifest), ChunkSet(chunks));
    out.push_back(ManifestHere{});
    if (missing_ == 0) out.push_back(FetchDone{});
  }
  const std::uint64_t bits = (here_.size() + 7) / 8;
  if (body.whole() ? reader.left() != 0 : reader.left() != 0 && reader.left() != bits) {
    return chunks_fault(from, fmt::format("{} bytes of set", reader.left()), fmt::format("{}", bits));
  }
  if (body.whole()) source.has.assign(here_.size(), true);
  if (reader.left() > 0) source.has = unpacked(reader.take(bits), here_.size());
  reorder();
  return {};
}

Result<void> Fetcher::on_chunk(net::PeerId from, Source& source, std::uint64_t chunk, Slices payload,
                               FetchEvents& out) {
  const std::uint64_t bytes = total_bytes(payload);
  if (here_[chunk]) {
    wasted_bytes_ += bytes;
  } else if (!manifest_->matches(chunk, payload)) {
    wasted_bytes_ += bytes;
    return chunks_fault(from, fmt::format("{} other bytes for chunk {}", bytes, chunk),
                        "bytes with the hash that the manifest names");
  } else {
    here_[chunk] = true;
    --missing_;
    out.push_back(ChunkHere{chunk, std::move(payload)});
    if (missing_ == 0) out.push_back(FetchDone{});
  }
  source.window = std::min(source.window + 1, options_.window);
  let_go(source, chunk);
  return {};
}

void Fetcher::tick(Instant now, FetchEvents& out) { ask_all(now, out); }

std::optional<Instant> Fetcher::next_wakeup() const {
  std::optional<Instant> wake;
  if (done()) return wake;
  for (const auto& [peer, source] : sources_) {
    wake = sooner(wake, source.paused_until);
  }
  return wake;
}

std::uint64_t Fetcher::unavailable() const {
  std::uint64_t count = 0;
  for (std::uint64_t chunk = 0; chunk < here_.size(); ++chunk) {
    const bool somewhere = std::ranges::any_of(
        sources_, [chunk](const auto& one) { return !one.second.has.empty() && one.second.has[chunk]; });
    count += here_[chunk] || somewhere ? 0 : 1;
  }
  return count;
}

}  // namespace gossamer::cluster
