// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_collection.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "base/hex.h"
#include "base/printable.h"
#include "host/api/durable_directories.h"
#include "net/link/connection.h"

namespace gossamer::node {
namespace {

// A member that beats is heard more often. Time in which this process did not run does not count.
constexpr Duration kHeardWithin{300'000'000};
constexpr Duration kMostCounted{100'000'000};
// Enough for a Ping and its Pong, as not all that can repeat an offer beats. The limit is far below the time
// after which a silent connection ends. So a link that is silent again and again costs no offer.
constexpr Duration kThereWithin{2'000'000'000};
static_assert(kThereWithin > net::Connection::kPingEvery && kThereWithin < net::Connection::kSilence);

// Offers and marks come over the control lane.
bool heard_within(const net::LinkStatistics& link, Duration time, Instant now) {
  const auto& heard = link.lane(host::Lane::kControl).last_heard;
  return link.up && heard && now - *heard <= time;
}

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

// Removes a file on its way, in whatever state it is. Only room is lost if something stays.
void remove_incoming(host::Disk& disk, const std::string& path) {
  for (const std::string& one : {path, path + ".incoming", path + ".tmp", manifest_path(path)})
    static_cast<void>(disk.remove_all(one));
}

std::optional<Sha256> id_of(const wire::Delivery& body) {
  Sha256 id{};
  const auto bytes = std::as_bytes(std::span(body.manifest()));
  if (bytes.size() != id.size()) return std::nullopt;
  std::ranges::copy(bytes, id.begin());
  return id;
}

}  // namespace

bool FileCollection::on(const net::Arrived& arrived, net::Links& links, Instant now) {
  if (arrived.message.channel != kDeliveries) return false;
  links.consumed(arrived.receipt, now);
  wire::Delivery body;
  if (body.ParseFromString(arrived.message.body) && body.kind() == wire::Delivery::OFFER) {
    offered(arrived.from, body, links, now);
  } else {
    blamed_.push_back({arrived.from, "it says of deliveries what no member can say"});
  }
  return true;
}

void FileCollection::offered(net::PeerId from, const wire::Delivery& body, net::Links& links, Instant now) {
  const auto id = id_of(body);
  if (!id || !is_plain_name(body.name())) {
    blamed_.push_back({from, fmt::format("it offers '{}', which is no name of a file, or has no hash",
                                         printable(body.name(), kMostPlainName))});
    return;
  }
  Node& node = nodes_[from.node];
  Offer offer{.name = body.name(), .id = *id, .from = from};
  for (const Known& one : node.known) {
    if (one.name != offer.name || one.id != offer.id) continue;
    return answer(one.good ? wire::Delivery::TAKEN : wire::Delivery::REFUSED, offer, links, now);
  }
  const auto same = std::ranges::find(node.offers, offer.name, &Offer::name);
  if (same != node.offers.end() && (same->id == offer.id || same->here)) {
    same->from = from;
    same->unrepeated = {};
    if (!same->as.empty() && same->id == offer.id) exchange_.donors(*id, {from});
  } else if (same != node.offers.end()) {  // a newer file of that name
    forget(*same);
    *same = std::move(offer);
  } else if (node.offers.size() < kMostOffers) {
    node.offers.push_back(std::move(offer));
  }
  judge_of(node, links, now);
}

void FileCollection::judge_all(net::Links& links, Instant now) {
  if (now < next_judge_) return;
  next_judge_ = now + kJudgeEvery;
  const Duration since = std::min(now - std::exchange(judged_, now), kMostCounted);
  for (auto& [number, node] : nodes_) {
    const net::LinkStatistics link = links.statistics(number);
    forget_old(node, heard_within(link, kThereWithin, now), since);
    if (!heard_within(link, kHeardWithin, now)) continue;
    for (Offer& offer : node.offers) {
      const auto verdict = rules_.judge(offer.from, offer.name);
      const auto* const early = std::get_if<DeliveryRules::Early>(&verdict);
      offer.early = early != nullptr && early->own && offer.as.empty() ? offer.early + since : Duration();
    }
    judge_of(node, links, now);
  }
  std::erase_if(nodes_,
                [](const auto& one) { return one.second.offers.empty() && one.second.known.empty(); });
}

// A link that is silent or down costs no offer: what has come of a large file would have to come again. What
// the books do not need any more goes also while its sender is away.
void FileCollection::forget_old(Node& node, bool hears, Duration since) {
  node.away = hears ? Duration() : node.away + since;
  const bool gone = node.away > kAwayTime;
  if (gone) node.known.clear();
  std::erase_if(node.offers, [&](Offer& offer) {
    if (offer.here) return false;
    if (hears) offer.unrepeated = offer.unrepeated + since;
    const bool old =
        gone || offer.unrepeated > kOfferTime ||
        (!hears && std::holds_alternative<DeliveryRules::Unneeded>(rules_.judge(offer.from, offer.name)));
    if (old) forget(offer);
    return old;
  });
}

// Goes through the offers of a node until one of them is asked for.
void FileCollection::judge_of(Node& node, net::Links& links, Instant now) {
  if (std::ranges::any_of(node.offers, [](const Offer& one) { return !one.as.empty(); })) return;
  for (auto offer = node.offers.begin(); offer != node.offers.end();) {
    const auto verdict = rules_.judge(offer->from, offer->name);
    const auto* const awaited = std::get_if<DeliveryRules::Awaited>(&verdict);
    if (awaited != nullptr && asked(offer->id) == nullptr) return ask(*offer, awaited->name);
    const auto* const refused = std::get_if<DeliveryRules::Refused>(&verdict);
    const auto* const early = std::get_if<DeliveryRules::Early>(&verdict);
    const bool late = offer->early >= kEarlyTime;
    if (refused != nullptr) {
      refuse(*offer, refused->why, links, now);
    } else if (late && (early == nullptr || !early->former)) {
      refuse(*offer, "by its own marks it has not come so far", links, now);
    } else if (late || std::holds_alternative<DeliveryRules::Unneeded>(verdict)) {
      answer(wire::Delivery::TAKEN, *offer, links, now);
    } else {
      ++offer;
      continue;
    }
    offer = node.offers.erase(offer);
  }
}

void FileCollection::ask(Offer& offer, std::string as) {
  offer.as = std::move(as);
  exchange_.get(
      {.id = offer.id, .path = incoming(offer), .most_bytes = options_.most_bytes, .ends_with_donor = true});
  exchange_.donors(offer.id, {offer.from});
}

// A node that is gone asks again.
void FileCollection::answer(wire::Delivery::Kind kind, const Offer& offer, net::Links& links, Instant now) {
  wire::Delivery body;
  body.set_kind(kind);
  body.set_name(offer.name);
  body.set_manifest(offer.id.data(), offer.id.size());
  (void)links.send(offer.from, host::Lane::kControl,
                   {.channel = kDeliveries, .body = body.SerializeAsString(), .payload = {}}, now);
}

void FileCollection::refuse(const Offer& offer, const std::string& why, net::Links& links, Instant now) {
  forget(offer);
  answer(wire::Delivery::REFUSED, offer, links, now);
  remember(offer, false);
  blamed_.push_back({offer.from, fmt::format("it delivers {}: {}", offer.name, why)});
}

void FileCollection::remember(const Offer& offer, bool good) {
  std::deque<Known>& known = nodes_[offer.from.node].known;
  std::erase_if(known, [&](const Known& one) { return one.good && good && one.name == offer.name; });
  known.push_back({.name = offer.name, .id = offer.id, .good = good});
  if (known.size() > kMostNames) known.pop_front();
}

// What has come of a file that is wanted no more goes.
void FileCollection::forget(const Offer& offer) {
  if (offer.as.empty()) return;
  exchange_.drop(offer.id);
  options_.aside([&disk = disk_, path = incoming(offer)] { remove_incoming(disk, path); }, [](Instant) {});
}

FileCollection::Offer* FileCollection::asked(const Sha256& id) {
  for (auto& [number, node] : nodes_) {
    for (Offer& offer : node.offers) {
      if (offer.id == id && !offer.as.empty()) return &offer;
    }
  }
  return nullptr;
}

std::string FileCollection::incoming(const Offer& offer) const {
  return fmt::format("{}.incoming/{}-{}", options_.directory, offer.from.node.value, to_hex(offer.id));
}

void FileCollection::fails(const Error& error, Instant now) {
  remarks_.push_back(error.message());
  failing_ = Failing{.at = now, .last = error};
}

void FileCollection::tick(net::Links& links, Instant now) {
  for (FileExchange::Got& got : exchange_.take_got()) arrived(got.id, std::move(got.file));
  for (auto& [id, done] : std::exchange(done_, {})) {
    Offer* const offer = asked(id);
    if (offer == nullptr) continue;
    if (done.ok()) {
      failing_.reset();
      answer(wire::Delivery::TAKEN, *offer, links, now);
      remember(*offer, true);
    } else if (done.error().kind == ErrorKind::kBadData) {
      refuse(*offer, done.error().message(), links, now);
    } else {
      fails(done.error(), now);
    }
    std::erase_if(nodes_[offer->from.node].offers,
                  [&id](const Offer& one) { return one.id == id && !one.as.empty(); });
  }
  judge_all(links, now);
}

// A file that the disk had no room for is offered again.
void FileCollection::arrived(const Sha256& id, Result<StoredFile> file) {
  Offer* const offer = asked(id);
  if (offer == nullptr) return;
  if (file.ok()) {
    offer->here = true;
    return put(*offer, *file);
  }
  done_.emplace_back(id, file.error());
}

void FileCollection::put(const Offer& offer, const StoredFile& file) {
  auto done = std::make_shared<Result<void>>();
  options_.aside(
      [&disk = disk_, check = rules_.check(offer.from, offer.name), from = file.path,
       directory = options_.directory, name = offer.as, done] {
        *done = check(from);
        if (done->ok()) *done = put_durably(disk, from, directory, name);
      },
      [this, id = offer.id, done](Instant) { done_.emplace_back(id, *done); });
}

std::optional<Instant> FileCollection::next_wakeup() const {
  if (!done_.empty()) return judged_;
  const bool waits = std::ranges::any_of(nodes_, [](const auto& one) { return !one.second.offers.empty(); });
  return waits ? std::optional(next_judge_) : std::nullopt;
}

}  // namespace gossamer::node
