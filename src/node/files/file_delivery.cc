// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_delivery.h"

#include <fmt/format.h>
#include <gossamer/delivery.pb.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace gossamer::node {
namespace {

// NUMBER-NAME of a file that waits; nothing for any other name.
std::optional<std::pair<std::uint64_t, std::string>> waiting(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, text.data() + text.size());
  if (error != std::errc() || number == 0 || !rest.starts_with('-')) return std::nullopt;
  std::string name(rest.substr(1));
  if (!is_plain_name(name)) return std::nullopt;
  return std::pair(number, std::move(name));
}

// Whether a file in the directory is whole, and waits for a delivery.
bool is_to_go(const std::string& name) { return name != "outgoing" && !name.ends_with(".tmp"); }

}  // namespace

Result<std::unique_ptr<FileDelivery>> FileDelivery::start(host::Disk& disk, FileExchange& exchange,
                                                          Aside aside, std::string directory) {
  std::unique_ptr<FileDelivery> delivery(
      new FileDelivery(disk, exchange, std::move(aside), std::move(directory)));
  if (auto made = disk.make_directories(outgoing(delivery->directory_)); !made.ok()) return made.error();
  if (auto taken = delivery->take_up_earlier(); !taken.ok()) return taken.error();
  return delivery;
}

// What is half written, or has no name, is of no use.
Result<void> FileDelivery::take_up_earlier() {
  const auto aside = disk_.list(outgoing(directory_));
  if (!aside.ok()) return aside.error();
  std::map<std::uint64_t, std::string> found;
  for (const std::string& text : *aside) {
    if (auto one = waiting(text)) {
      found.insert(*std::move(one));
    } else if (auto removed = disk_.remove_all(outgoing(directory_) + "/" + text); !removed.ok()) {
      return removed;
    }
  }
  for (const auto& [number, name] : found) add(last_number_ = number, name);
  const auto names = disk_.list(directory_);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    if (!name.ends_with(".tmp")) continue;
    if (auto removed = disk_.remove_all(directory_ + "/" + name); !removed.ok()) return removed;
  }
  look();
  last_earlier_ = last_number_;
  return {};
}

bool FileDelivery::under_way(host::Disk& disk, const std::string& directory) {
  const auto there = disk.exists(outgoing(directory));
  if (there.ok() && !*there) return false;
  const auto names = disk.list(outgoing(directory));
  return !names.ok() || !names->empty();
}

bool FileDelivery::has_to_take(host::Disk& disk, const std::string& directory) {
  const auto there = disk.exists(directory);
  if (there.ok() && !*there) return false;
  const auto names = disk.list(directory);
  return !names.ok() || std::ranges::any_of(*names, is_to_go);
}

Result<std::optional<std::string>> FileDelivery::set_aside(host::Disk& disk, const std::string& directory) {
  using Moved = std::optional<std::string>;
  if (!has_to_take(disk, directory) && !under_way(disk, directory)) return Moved();
  for (std::uint64_t number = 1;; ++number) {
    std::string other = fmt::format("{}.{}", directory, number);
    const auto there = disk.exists(other);
    if (!there.ok()) return there.error();
    if (*there) continue;
    if (auto moved = disk.rename(directory, other); !moved.ok()) return moved.error();
    return Moved(std::move(other));
  }
}

void FileDelivery::look() {
  const auto names = disk_.list(directory_);
  if (!names.ok()) return remark(names.error());
  for (const std::string& name : *names) {
    if (is_to_go(name)) take(name);
  }
}

std::string FileDelivery::path_of(std::uint64_t number, const std::string& name) const {
  return fmt::format("{}/{}-{}", outgoing(directory_), number, name);
}

// Moves a file to a name of its own, so that a newer one of the same name is another file.
void FileDelivery::take(const std::string& name) {
  const std::uint64_t number = ++last_number_;
  if (auto moved = disk_.rename(directory_ + "/" + name, path_of(number, name)); !moved.ok())
    return remark(moved.error());
  add(number, name);
}

void FileDelivery::add(std::uint64_t number, const std::string& name) {
  const std::string path = path_of(number, name);
  const auto older = std::ranges::find_if(files_, [&](const auto& one) { return one.second.name == name; });
  if (older != files_.end()) forget(older);
  describe(number, files_[number] = Outgoing{.name = name, .path = path});
}

void FileDelivery::describe(std::uint64_t number, Outgoing& file) {
  file.describe_at.reset();
  auto stored = std::make_shared<std::optional<Result<StoredFile>>>();
  aside_([this, stored, path = file.path, name = file.name] { *stored = describe_file(disk_, path, name); },
         [this, stored, number](Instant now) { described(number, **stored, now); });
}

void FileDelivery::described(std::uint64_t number, Result<StoredFile> stored, Instant now) {
  const auto found = files_.find(number);
  if (found == files_.end()) return;
  Outgoing& file = found->second;
  const Result<void> given = stored.ok() ? exchange_.give(*stored) : Result<void>(stored.error());
  if (given.ok()) {
    file.stored = *std::move(stored);
    return;
  }
  if (!file.unread_since) {
    file.unread_since = now;
    remark(given.error());
  }
  // No coordinator takes a file that is too large. Any other may be the only copy of what was learnt, and a
  // lack of memory or of descriptors passes.
  if (given.error().kind == ErrorKind::kUsage) return forget(found);
  file.describe_at = now + kDescribeEvery;
  if (now - *file.unread_since >= kReadTime) give_up_reading(found);
}

// The file stays on this machine, as no other node may have it. What cannot be moved is read on.
void FileDelivery::give_up_reading(std::map<std::uint64_t, Outgoing>::iterator file) {
  const std::string unread = directory_ + ".unread";
  const std::string& name = file->second.name;
  std::uint64_t number = 1;
  const auto place = [&] { return fmt::format("{}/{}-{}", unread, number, name); };
  for (auto there = disk_.exists(place()); !there.ok() || *there; there = disk_.exists(place())) {
    if (!there.ok()) return;
    ++number;
  }
  if (!disk_.make_directories(unread).ok() || !disk_.rename(file->second.path, place()).ok()) return;
  remark(Error{.where = place(),
               .what = fmt::format("this file could not be read for {:.0f} minutes, and is not brought",
                                   kReadTime.seconds() / 60),
               .fix = fmt::format("once it can be read, move it to {}/{}", directory_, name)});
  files_.erase(file);
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
  const std::uint64_t acknowledged = link.lane(host::Lane::kBulk).acknowledged_bytes;
  if (link.link != link_) {
    link_ = link.link;
    for (auto& [number, file] : files_) file.next_offer = now;
  } else if (acknowledged > acknowledged_ && !files_.empty()) {
    moved_ = now;
  }
  acknowledged_ = acknowledged;
  if (now >= next_look_) {
    next_look_ = now + kLookEvery;
    look();
  }
  for (auto& [number, file] : files_) {
    if (file.describe_at && *file.describe_at <= now) describe(number, file);
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
  const bool refused = body.kind() == wire::Delivery::REFUSED;
  if (body.kind() != wire::Delivery::TAKEN && !refused) return true;
  const auto file = std::ranges::find_if(files_, [&](const auto& one) {
    if (!one.second.stored) return false;
    const Sha256& id = one.second.stored->manifest.id();
    return one.second.name == body.name() &&
           std::ranges::equal(std::as_bytes(std::span(body.manifest())), id);
  });
  if (file == files_.end()) return true;
  if (refused) {
    remark(Error{.kind = ErrorKind::kRefused,
                 .where = file->second.path,
                 .what = "the coordinator refuses this file, and it is removed",
                 .expected = "what this node has to deliver, undamaged",
                 .fix = "look after this machine's disk"});
  }
  forget(file);
  return true;
}

}  // namespace gossamer::node
