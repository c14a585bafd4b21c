// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_collection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hex.h"
#include "base/printable.h"

namespace gossamer::node {
namespace {

constexpr std::size_t kMostNames = 10'000;  // names of a node: each checkpoint adds one

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
  if (owner != owners_.end()) return {};
  const auto names = std::ranges::count_if(owners_, [&](const auto& one) { return one.second == from; });
  if (static_cast<std::size_t>(names) >= kMostNames)
    return refused(name, fmt::format("no more than {} of them", kMostNames));
  owners_.emplace(name, from);
  return {};
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
    const bool older = one.second.name == body.name() && one.first != id;
    if (older) exchange_.drop(one.first);
    return older;
  });
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

Result<void> FileCollection::put(const std::string& name, const StoredFile& file) {
  if (auto made = disk_.make_directories(options_.directory); !made.ok()) return made;
  if (auto moved = disk_.rename(file.path, path(name)); !moved.ok()) return moved;
  static_cast<void>(disk_.remove_all(manifest_path(file.path)));  // only room is lost if it stays
  return {};
}

void FileCollection::fails(const Error& error, Instant now) {
  remark(error);
  // Other errors do not count: a member may offer for ever what it should not.
  if (error.kind == ErrorKind::kFailed)
    failing_ = Failing{.since = failing_ ? failing_->since : now, .last = error};
}

void FileCollection::tick(net::Links& links, Instant now) {
  for (FileExchange::Got& got : exchange_.take_got()) {
    const auto found = arriving_.find(got.id);
    if (found == arriving_.end()) continue;
    const Arriving arriving = found->second;
    arriving_.erase(found);
    // The member offers the file again.
    if (!got.file.ok()) {
      fails(got.file.error(), now);
      continue;
    }
    if (auto put_there = put(arriving.name, *got.file); !put_there.ok()) {
      fails(put_there.error(), now);
      continue;
    }
    failing_.reset();
    taken_[arriving.name] = got.id;
    taken(arriving.name, got.id, arriving.from, links, now);
  }
}

}  // namespace gossamer::node
