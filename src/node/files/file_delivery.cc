// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_delivery.h"

#include <fmt/format.h>
#include <gossamer/delivery.pb.h>

#include <algorithm>
#include <utility>

namespace gossamer::node {
Result<std::unique_ptr<FileDelivery>> FileDelivery::start(host::Disk& disk, FileExchange& exchange,
                                                          Aside aside, std::string directory) {
  std::unique_ptr<FileDelivery> delivery(
      new FileDelivery(disk, exchange, std::move(aside), std::move(directory)));
  if (auto removed = disk.remove_all(delivery->directory_); !removed.ok()) return removed.error();
  if (auto made = disk.make_directories(outgoing(delivery->directory_)); !made.ok()) return made.error();
  return delivery;
}

bool FileDelivery::under_way(host::Disk& disk, const std::string& directory) {
  const auto there = disk.exists(outgoing(directory));
  if (there.ok() && !*there) return false;
  const auto names = disk.list(outgoing(directory));
  return !names.ok() || !names->empty();
}

void FileDelivery::look() {
  const auto names = disk_.list(directory_);
  if (!names.ok()) return remark(names.error());
  for (const std::string& name : *names) {
    if (name != "outgoing" && !name.ends_with(".tmp")) take(name);
  }
}

// Moves a file to a name of its own, so that a newer one of the same name is another file.
void FileDelivery::take(const std::string& name) {
  const std::uint64_t number = ++last_number_;
  const std::string path = fmt::format("{}/{}", outgoing(directory_), number);
  if (auto moved = disk_.rename(directory_ + "/" + name, path); !moved.ok()) return remark(moved.error());
  const auto older = std::ranges::find_if(files_, [&](const auto& one) { return one.second.name == name; });
  if (older != files_.end()) forget(older);
  files_[number] = Outgoing{.name = name, .path = path};
  auto stored = std::make_shared<std::optional<Result<StoredFile>>>();
  aside_([this, stored, path, name] { *stored = describe_file(disk_, path, name); },
         [this, stored, number](Instant) { described(number, **stored); });
}

void FileDelivery::described(std::uint64_t number, Result<StoredFile> stored) {
  const auto file = files_.find(number);
  if (file == files_.end()) return;
  if (!stored.ok()) {
    remark(stored.error());
    return forget(file);
  }
  if (auto given = exchange_.give(*stored); !given.ok()) {
    remark(given.error());
    return forget(file);
  }
  file->second.stored = *std::move(stored);
}

void FileDelivery::forget(std::map<std::uint64_t, Outgoing>::iterator file) {
  if (file->second.stored) exchange_.withdraw(file->second.stored->manifest.id());
  // If the file stays, this member waits for it at the end of the run (under_way()),
  // as long as a coordinator waits.
  if (auto removed = disk_.remove_all(file->second.path); !removed.ok()) remark(removed.error());
  files_.erase(file);
}

void FileDelivery::tick(net::PeerId coordinator, net::Links& links, Instant now) {
  const net::LinkStatistics link = links.statistics(coordinator.node);
  if (link.link != link_) {
    link_ = link.link;
    for (auto& [number, file] : files_) file.next_offer = now;
  }
  if (now >= next_look_) {
    next_look_ = now + kLookEvery;
    look();
  }
  if (!link.up) return;
  for (auto& [number, file] : files_) {
    if (!file.stored || file.next_offer > now) continue;
    file.next_offer = now + kOfferEvery;
    const cluster::Manifest& manifest = file.stored->manifest;
    wire::Delivery offer;
    offer.set_kind(wire::Delivery::OFFER);
    offer.set_name(file.name);
    offer.set_manifest(manifest.id().data(), manifest.id().size());
    offer.set_bytes(manifest.bytes());
    // The next tick notices a link that is gone.
    (void)links.send(coordinator, host::Lane::kControl,
                     {.channel = kDeliveries, .body = offer.SerializeAsString(), .payload = {}}, now);
  }
}

bool FileDelivery::on(const net::Arrived& arrived, net::PeerId coordinator, net::Links& links, Instant now) {
  if (arrived.message.channel != kDeliveries) return false;
  links.consumed(arrived.receipt, now);
  wire::Delivery body;
  if (arrived.from != coordinator || !body.ParseFromString(arrived.message.body)) return true;
  if (body.kind() != wire::Delivery::TAKEN) return true;
  const auto file = std::ranges::find_if(files_, [&](const auto& one) {
    if (!one.second.stored) return false;
    const Sha256& id = one.second.stored->manifest.id();
    return one.second.name == body.name() &&
           std::ranges::equal(std::as_bytes(std::span(body.manifest())), id);
  });
  if (file != files_.end()) forget(file);
  return true;
}

}  // namespace gossamer::node
