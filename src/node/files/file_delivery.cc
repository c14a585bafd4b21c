// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_delivery.h"

#include <fmt/format.h>
#include <gossamer/delivery.pb.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gossamer::node {
namespace {

constexpr std::size_t kMostPiece = std::size_t{64} << 10;

void send(net::Links& links, net::PeerId to, const wire::Delivery& body, Slices payload, Instant now) {
  // The next tick notices a link that is gone.
  (void)links.send(to, host::Lane::kControl,
                   {.channel = kDeliveries, .body = body.SerializeAsString(), .payload = std::move(payload)},
                   now);
}

}  // namespace

Result<std::unique_ptr<FileDelivery>> FileDelivery::start(host::Disk& disk, FileExchange& exchange,
                                                          Aside aside, Options options) {
  std::unique_ptr<FileDelivery> delivery(
      new FileDelivery(disk, exchange, std::move(aside), std::move(options)));
  const std::string& directory = delivery->options_.directory;
  if (auto made = disk.make_directories(directory); !made.ok()) return made.error();
  const auto names = disk.list(directory);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    if (has_suffix(name, delivery->options_.growing)) continue;
    if (auto removed = disk.remove_all(directory + "/" + name); !removed.ok()) return removed.error();
  }
  if (auto made = disk.make_directories(outgoing(directory)); !made.ok()) return made.error();
  return delivery;
}

bool FileDelivery::under_way(host::Disk& disk, const std::string& directory) {
  const auto there = disk.exists(outgoing(directory));
  if (there.ok() && !*there) return false;
  const auto names = disk.list(outgoing(directory));
  return !names.ok() || !names->empty();
}

void FileDelivery::look() {
  const auto names = disk_.list(options_.directory);
  if (!names.ok()) return remark(names.error());
  for (const std::string& name : *names) {
    if (name == "outgoing" || name.ends_with(".tmp")) continue;
    if (has_suffix(name, options_.growing)) {
      growing_.try_emplace(name);
    } else {
      take_whole(name);
    }
  }
}

// Moves a whole file to a name of its own, so that a newer one of the same name is another file.
void FileDelivery::take_whole(const std::string& name) {
  const std::uint64_t number = ++last_number_;
  const std::string path = fmt::format("{}/{}", outgoing(options_.directory), number);
  if (auto moved = disk_.rename(options_.directory + "/" + name, path); !moved.ok())
    return remark(moved.error());
  const auto older = std::ranges::find_if(whole_, [&](const auto& one) { return one.second.name == name; });
  if (older != whole_.end()) forget(older);
  whole_[number] = Whole{.name = name, .path = path};
  auto stored = std::make_shared<std::optional<Result<StoredFile>>>();
  aside_([this, stored, path, name] { *stored = describe_file(disk_, path, name); },
         [this, stored, number](Instant) { described(number, **stored); });
}

void FileDelivery::described(std::uint64_t number, Result<StoredFile> stored) {
  const auto whole = whole_.find(number);
  if (whole == whole_.end()) return;
  if (!stored.ok()) {
    remark(stored.error());
    return forget(whole);
  }
  if (auto given = exchange_.give(*stored); !given.ok()) {
    remark(given.error());
    return forget(whole);
  }
  whole->second.stored = *std::move(stored);
}

void FileDelivery::forget(std::map<std::uint64_t, Whole>::iterator whole) {
  if (whole->second.stored) exchange_.withdraw(whole->second.stored->manifest.id());
  // If the file stays, this member waits for it at the end of the run (under_way()),
  // as long as a coordinator waits.
  if (auto removed = disk_.remove_all(whole->second.path); !removed.ok()) remark(removed.error());
  whole_.erase(whole);
}

void FileDelivery::tick(net::PeerId coordinator, net::Links& links, Instant now) {
  const net::LinkStatistics link = links.statistics(coordinator.node);
  if (link.link != link_) {
    link_ = link.link;
    for (auto& [name, growing] : growing_) {
      growing.known = growing.caught_up = false;
      growing.waits.reset();
    }
    for (auto& [number, whole] : whole_) whole.next_offer = now;
  }
  if (now >= next_look_) {
    next_look_ = now + kLookEvery;
    look();
  }
  if (!link.up) return;
  for (auto& [name, growing] : growing_) grow(name, growing, coordinator, links, now);
  const bool caught_up = std::ranges::all_of(growing_, [](const auto& one) { return one.second.caught_up; });
  for (auto& [number, whole] : whole_) {
    if (caught_up) whole.behind = false;
    if (!whole.stored || whole.behind || whole.next_offer > now) continue;
    whole.next_offer = now + kOfferEvery;
    const cluster::Manifest& manifest = whole.stored->manifest;
    wire::Delivery offer;
    offer.set_kind(wire::Delivery::OFFER);
    offer.set_name(whole.name);
    offer.set_manifest(manifest.id().data(), manifest.id().size());
    offer.set_bytes(manifest.bytes());
    send(links, coordinator, offer, {}, now);
  }
}

// Sends a growing file, one piece at a time. The first piece is empty, and asks how much is there.
void FileDelivery::grow(const std::string& name, Growing& growing, net::PeerId to, net::Links& links,
                        Instant now) {
  if (growing.waits && *growing.waits > now) return;
  if (growing.waits) growing.known = false;
  growing.waits.reset();
  wire::Delivery append;
  append.set_kind(wire::Delivery::APPEND);
  append.set_name(name);
  Slices payload;
  if (growing.known) {
    std::vector<std::byte> piece(kMostPiece);
    const auto got = growing.file->read(piece);
    if (!got.ok()) {
      growing.waits = now + kOfferEvery;
      return remark(got.error());
    }
    growing.caught_up = *got == 0;
    if (growing.caught_up) return;
    piece.resize(*got);
    append.set_offset(growing.at);
    growing.at += *got;
    payload.push_back(Slice::of(std::move(piece)));
  }
  growing.waits = now + kOfferEvery;
  send(links, to, append, std::move(payload), now);
}

void FileDelivery::have(const std::string& name, std::uint64_t offset) {
  const auto found = growing_.find(name);
  if (found == growing_.end() || !found->second.waits) return;
  Growing& growing = found->second;
  growing.waits.reset();
  if (growing.known && growing.at == offset) return;
  auto file = disk_.open_sequential(options_.directory + "/" + name);
  if (!file.ok()) return remark(file.error());
  growing.file = *std::move(file);
  std::array<std::byte, std::size_t{1} << 14> skipped{};
  for (std::uint64_t at = 0; at < offset;) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(skipped.size(), offset - at));
    const auto got = growing.file->read(std::span(skipped).first(most));
    if (!got.ok()) return remark(got.error());
    // A crash may have cut the file here. New bytes then go behind the coordinator's.
    if (*got == 0) break;
    at += *got;
  }
  growing.at = offset;
  growing.known = true;
}

bool FileDelivery::on(const net::Arrived& arrived, net::PeerId coordinator, net::Links& links, Instant now) {
  if (arrived.message.channel != kDeliveries) return false;
  links.consumed(arrived.receipt, now);
  wire::Delivery body;
  if (arrived.from != coordinator || !body.ParseFromString(arrived.message.body)) return true;
  if (body.kind() == wire::Delivery::HAVE) have(body.name(), body.offset());
  if (body.kind() != wire::Delivery::TAKEN) return true;
  const auto whole = std::ranges::find_if(whole_, [&](const auto& one) {
    if (!one.second.stored) return false;
    const Sha256& id = one.second.stored->manifest.id();
    return one.second.name == body.name() &&
           std::ranges::equal(std::as_bytes(std::span(body.manifest())), id);
  });
  if (whole != whole_.end()) forget(whole);
  return true;
}

}  // namespace gossamer::node
