// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_collection.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/hex.h"
#include "base/printable.h"
#include "host/api/durable_directories.h"

namespace gossamer::node {
namespace {

// The name survives a loss of power once the directory is synced, and so do the bytes: they were synced
// before.
Result<void> put_durably(host::Disk& disk, const std::string& from, const std::string& directory,
                         const std::string& name) {
  if (auto made = host::make_durable_directories(disk, directory); !made.ok()) return made;
  if (auto moved = disk.rename(from, directory + "/" + name); !moved.ok()) return moved;
  if (auto synced = disk.sync_directory(directory); !synced.ok()) return synced;
  static_cast<void>(disk.remove_all(manifest_path(from)));  // only room is lost if it stays
  return {};
}

}  // namespace

Result<void> FileCollection::check_name(const std::string& name, NodeId from) {
  const auto refused = [&](std::string got, std::string expected) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = fmt::format("node {}", from.value),
                 .what = "it delivers a file under a name that cannot be",
                 .got = std::move(got),
                 .expected = std::move(expected),
                 .fix = "look whether it runs this version"};
  };
  if (!is_plain_name(name))
    return refused(printable(name.substr(0, kMostPlainName)), "letters, digits, '-' and '.'");
  const auto owner = owners_.find(name);
  if (owner != owners_.end() && owner->second != from)
    return refused(name, fmt::format("one of its own, not node {}'s", owner->second.value));
  remember(name, from);
  return {};
}

// Notes that the node has used the name, and forgets the name that it has not used for longest.
void FileCollection::remember(const std::string& name, NodeId from) {
  std::deque<std::string>& names = names_[from];
  std::erase(names, name);
  names.push_back(name);
  owners_[name] = from;
  if (names.size() <= kMostNames) return;
  const std::string old = std::move(names.front());
  names.pop_front();
  owners_.erase(old);
  taken_.erase(old);
  std::erase_if(arriving_, [&](const auto& one) {
    const bool drop = one.second.name == old && !one.second.here;
    if (drop) exchange_.drop(one.first);
    return drop;
  });
  // A file that is wanted has moved on. What cannot be removed takes room alone.
  static_cast<void>(disk_.remove_all(path(old)));
}

bool FileCollection::on(const net::Arrived& arrived, net::Links& links, Instant now) {
  if (arrived.message.channel != kDeliveries) return false;
  links.consumed(arrived.receipt, now);
  wire::Delivery body;
  if (!body.ParseFromString(arrived.message.body)) return true;
  if (body.kind() != wire::Delivery::OFFER) return true;
  if (auto good = check_name(body.name(), arrived.from.node); good.ok()) {
    offered(arrived.from, body, links, now);
  } else {
    remark(good.error());
  }
  return true;
}

void FileCollection::offered(net::PeerId from, const wire::Delivery& body, net::Links& links, Instant now) {
  Sha256 id{};
  const auto bytes = std::as_bytes(std::span(body.manifest()));
  if (bytes.size() != id.size()) return;
  std::ranges::copy(bytes, id.begin());
  const auto here = taken_.find(body.name());
  if (here != taken_.end() && here->second == id) return taken(body.name(), id, from, links, now);
  // A newer file of that name replaces an older one.
  std::erase_if(arriving_, [&](const auto& one) {
    const bool older = one.second.name == body.name() && one.first != id && !one.second.here;
    if (older) exchange_.drop(one.first);
    return older;
  });
  if (const auto same = arriving_.find(id); same != arriving_.end() && same->second.here) return;
  arriving_[id] = {.name = body.name(), .from = from};
  if (!exchange_.gets(id)) {
    exchange_.get(
        {.id = id, .path = fmt::format("{}/{}", incoming(), to_hex(id)), .most_bytes = options_.most_bytes});
  }
  exchange_.donors(id, {from});
}

void FileCollection::taken(const std::string& name, const Sha256& id, net::PeerId to, net::Links& links,
                           Instant now) {
  wire::Delivery body;
  body.set_kind(wire::Delivery::TAKEN);
  body.set_name(name);
  body.set_manifest(id.data(), id.size());
  // A node that is gone asks again.
  (void)links.send(to, host::Lane::kControl,
                   {.channel = kDeliveries, .body = body.SerializeAsString(), .payload = {}}, now);
}

void FileCollection::fails(const Error& error, Instant now) {
  remark(error);
  // Other errors do not count: a member may offer for ever what it should not.
  if (error.kind == ErrorKind::kFailed)
    failing_ = Failing{.since = failing_ ? failing_->since : now, .last = error};
}

void FileCollection::tick(net::Links& links, Instant now) {
  for (const auto& [id, file] : std::exchange(untold_, {})) taken(file.name, id, file.from, links, now);
  for (FileExchange::Got& got : exchange_.take_got()) arrived(got.id, std::move(got.file), now);
}

// A file that did not come is offered again.
void FileCollection::arrived(const Sha256& id, Result<StoredFile> file, Instant now) {
  const auto found = arriving_.find(id);
  if (found == arriving_.end()) return;
  if (file.ok()) {
    found->second.here = true;
    return put(id, *file);
  }
  arriving_.erase(found);
  fails(file.error(), now);
}

void FileCollection::put(const Sha256& id, const StoredFile& file) {
  auto done = std::make_shared<Result<void>>();
  options_.aside([&disk = disk_, from = file.path, directory = options_.directory,
                  name = arriving_.at(id).name, done] { *done = put_durably(disk, from, directory, name); },
                 [this, id, done](Instant now) { is_put(id, *done, now); });
}

void FileCollection::is_put(const Sha256& id, const Result<void>& done, Instant now) {
  const auto found = arriving_.find(id);
  if (found == arriving_.end()) return;
  const Arriving arriving = found->second;
  arriving_.erase(found);
  if (!done.ok()) return fails(done.error(), now);
  failing_.reset();
  taken_[arriving.name] = id;
  untold_.emplace_back(id, arriving);
}

}  // namespace gossamer::node
