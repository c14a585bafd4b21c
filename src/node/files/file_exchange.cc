// SPDX-License-Identifier: Apache-2.0
#include "node/files/file_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

namespace gossamer::node {
namespace {

constexpr cluster::ChunkChannels kChannels{.requests = kChunkRequests, .answers = kChunkAnswers};

// A fetcher has at most 16 questions about chunks out, and asks once for each file and link what there is. A
// question for a manifest costs the donor as much as many others.
constexpr double kQuestionsPerSecond = 4096;
constexpr double kQuestionsAtOnce = 8192;
constexpr double kManifestCosts = 64;

std::uint64_t bytes_here(const cluster::Fetcher& fetcher) {
  std::uint64_t bytes = 0;
  for (std::uint64_t chunk = 0; chunk < fetcher.here().size(); ++chunk)
    bytes += fetcher.here()[chunk] ? fetcher.manifest()->size_of(chunk) : 0;
  return bytes;
}

}  // namespace

FileExchange::FileExchange(host::Disk& disk, Options options, Instant now)
    : disk_(disk),
      options_(std::move(options)),
      donor_({.channels = kChannels, .bytes_per_second = options_.bytes_per_second}, now) {}

void FileExchange::connect(net::Links* links) {
  ++life_;
  links_ = links;
  rooms_.clear();
  for (const auto& [peer, served] : std::exchange(served_, {})) donor_.lost(peer);
  for (auto& [id, getting] : gettings_) {
    cluster::FetchEvents nobody_is_asked;
    for (const auto& [donor, link] : std::exchange(getting.asked, {}))
      getting.fetcher->lost(donor, Instant{}, nobody_is_asked);
  }
}

Result<void> FileExchange::give(const StoredFile& file) {
  auto read = chunk_reader(disk_, file);
  if (!read.ok()) return read.error();
  donor_.give(file.manifest, std::nullopt, *std::move(read));
  return {};
}

void FileExchange::get(const Wanted& wanted) {
  const std::uint64_t number = ++last_number_;
  gettings_.erase(wanted.id);
  gettings_.emplace(wanted.id, Getting{.wanted = wanted, .number = number});
  auto opened_file = std::make_shared<Result<std::shared_ptr<IncomingFile>>>(nullptr);
  options_.aside(
      [this, opened_file, wanted] { *opened_file = IncomingFile::open(disk_, wanted.path, wanted.id); },
      [this, opened_file, number](Instant now) { opened(number, *opened_file, now); });
}

void FileExchange::donors(const Sha256& id, std::set<net::PeerId> donors) {
  const auto found = gettings_.find(id);
  if (found != gettings_.end()) found->second.donors = std::move(donors);
}

FileExchange::Progress FileExchange::progress(const Sha256& id) const {
  const auto found = gettings_.find(id);
  if (found == gettings_.end() || !found->second.fetcher) return {};
  const cluster::Manifest* const manifest = found->second.fetcher->manifest();
  return {.here = found->second.here_bytes, .bytes = manifest == nullptr ? 0 : manifest->bytes()};
}

FileExchange::Getting* FileExchange::find(std::uint64_t number) {
  const auto found =
      std::ranges::find_if(gettings_, [&](const auto& one) { return one.second.number == number; });
  return found == gettings_.end() ? nullptr : &found->second;
}

void FileExchange::opened(std::uint64_t number, Result<std::shared_ptr<IncomingFile>> file, Instant now) {
  Getting* const getting = find(number);
  if (getting == nullptr) return;
  if (!file.ok()) return fail(number, file.error());
  getting->file = *std::move(file);
  const cluster::Fetcher::Options options{
      .id = getting->wanted.id, .channels = kChannels, .seed = options_.seed};
  const auto& manifest = getting->file->manifest();
  if (!manifest) {
    getting->fetcher.emplace(options);
    return meet_donors(*getting, now);
  }
  getting->fetcher.emplace(options, *manifest, getting->file->here());
  getting->here_bytes = bytes_here(*getting->fetcher);
  if (getting->fetcher->done()) return finish(*getting);
  meet_donors(*getting, now);
}

// Asks the donors of a file. A link that ended has lost the requests that went over it.
void FileExchange::meet_donors(Getting& getting, Instant now) {
  if (!getting.fetcher || getting.fetcher->done() || links_ == nullptr) return;
  cluster::FetchEvents events;
  std::erase_if(getting.asked, [&](const auto& one) {
    const bool gone =
        links_->statistics(one.first.node).link != one.second || !getting.donors.contains(one.first);
    if (gone) getting.fetcher->lost(one.first, now, events);
    return gone;
  });
  for (const net::PeerId donor : getting.donors) {
    const net::LinkStatistics link = links_->statistics(donor.node);
    if (!link.up || getting.asked.contains(donor)) continue;
    getting.asked[donor] = link.link;
    getting.fetcher->add_donor(donor, now, events);
  }
  carry_out(getting, std::move(events), std::nullopt, now);
}

bool FileExchange::on(net::Arrived arrived, Instant now) {
  if (arrived.message.channel == kChunkRequests) return on_request(arrived, now), true;
  if (arrived.message.channel == kChunkAnswers) return on_answer(std::move(arrived), now), true;
  return false;
}

void FileExchange::on_request(const net::Arrived& arrived, Instant now) {
  if (links_ == nullptr) return;
  links_->consumed(arrived.receipt, now);
  wire::Chunks asked;
  const bool whole = asked.ParseFromString(arrived.message.body) && asked.with_manifest();
  if (!may_ask(arrived.from, whole ? kManifestCosts : 1, now)) return;
  std::vector<cluster::ChunkSend> answers;
  if (auto good = donor_.on(arrived.from, arrived.message, now, answers); !good.ok()) {
    remarks_.push_back(good.error().message());
    blamed_.push_back({arrived.from, good.error()});
  }
  for (cluster::ChunkSend& answer : answers) {
    wire::Chunks body;
    const bool in_service = body.ParseFromString(answer.message.body) && body.kind() == wire::Chunks::CHUNK;
    const auto ticket = links_->send(answer.to, host::Lane::kBulk, std::move(answer.message), now);
    if (!in_service) continue;
    if (!ticket) {
      donor_.served(answer.to);
      continue;
    }
    Served& served = served_[answer.to];
    served.link = ticket->link;
    served.chunks.push_back(*ticket);
  }
}

// A peer is blamed for each question that goes beyond the limit, as no fetcher asks so many.
bool FileExchange::may_ask(net::PeerId peer, double questions, Instant now) {
  const auto [found, fresh] = rooms_.try_emplace(peer, Room{.questions = kQuestionsAtOnce, .since = now});
  Room& room = found->second;
  const double more = (now - std::exchange(room.since, now)).seconds() * kQuestionsPerSecond;
  room.questions = std::min(kQuestionsAtOnce, room.questions + more);
  if (room.questions >= questions) {
    room.questions -= questions;
    return true;
  }
  blamed_.push_back({peer, cluster::chunks_fault(peer, "more questions than files have chunks",
                                                 fmt::format("{} a second", kQuestionsPerSecond))});
  return false;
}

void FileExchange::on_answer(net::Arrived arrived, Instant now) {
  if (links_ == nullptr) return;
  wire::Chunks body;
  Sha256 id{};
  const bool read = body.ParseFromString(arrived.message.body) && body.manifest().size() == id.size();
  if (!read) {
    links_->consumed(arrived.receipt, now);
    blamed_.push_back(
        {arrived.from, cluster::chunks_fault(arrived.from, "bytes that are no answer", "a Chunks")});
    return;
  }
  std::ranges::copy(std::as_bytes(std::span(body.manifest())), id.begin());
  const auto getting = gettings_.find(id);
  if (getting == gettings_.end() || !getting->second.fetcher) return links_->consumed(arrived.receipt, now);
  cluster::FetchEvents events;
  getting->second.fetcher->on(arrived.from, std::move(arrived.message), now, events);
  const bool keeps = std::ranges::any_of(
      events, [](const auto& event) { return std::holds_alternative<cluster::ChunkHere>(event); });
  if (!keeps) links_->consumed(arrived.receipt, now);
  carry_out(getting->second, std::move(events), keeps ? std::optional(arrived.receipt) : std::nullopt, now);
}

void FileExchange::carry_out(Getting& getting, cluster::FetchEvents events,
                             std::optional<net::Receipt> receipt, Instant now) {
  for (cluster::FetchEvent& event : events) {
    if (auto* const send = std::get_if<cluster::ChunkSend>(&event)) {
      // The next tick notices a link that is gone.
      (void)links_->send(send->to, host::Lane::kBulk, std::move(send->message), now);
    } else if (std::holds_alternative<cluster::ManifestHere>(event)) {
      const cluster::Manifest& manifest = *getting.fetcher->manifest();
      if (manifest.bytes() > getting.wanted.most_bytes) {
        return fail(getting.number, {.kind = ErrorKind::kBadData,
                                     .where = getting.wanted.path,
                                     .what = "a file is larger than it may be",
                                     .got = std::to_string(manifest.bytes()) + " bytes",
                                     .expected = "at most " + std::to_string(getting.wanted.most_bytes),
                                     .fix = "see who offers it"});
      }
      do_for(getting, [manifest](IncomingFile& file) { return file.know(manifest); }, std::nullopt);
    } else if (auto* const chunk = std::get_if<cluster::ChunkHere>(&event)) {
      getting.here_bytes += total_bytes(chunk->content);
      write(getting, std::move(*chunk), receipt);
    } else if (auto* const dropped = std::get_if<cluster::DonorDropped>(&event)) {
      if (dropped->nonsense) blamed_.push_back({dropped->donor, dropped->error});
      if (getting.wanted.ends_with_donor) {
        dropped->error.kind = ErrorKind::kBadData;
        return fail(getting.number, dropped->error);
      }
      remarks_.push_back(dropped->error.message());
    } else {
      finish(getting);
    }
  }
}

void FileExchange::write(const Getting& getting, cluster::ChunkHere chunk,
                         const std::optional<net::Receipt>& receipt) {
  do_for(
      getting,
      [chunk = std::move(chunk)](IncomingFile& file) { return file.write(chunk.chunk, chunk.content); },
      receipt);
}

void FileExchange::do_for(const Getting& getting, std::function<Result<void>(IncomingFile&)> work,
                          const std::optional<net::Receipt>& receipt) {
  auto done = std::make_shared<Result<void>>();
  options_.aside([done, file = getting.file, work = std::move(work)] { *done = work(*file); },
                 [this, done, receipt, life = life_, number = getting.number](Instant now) {
                   if (receipt) consumed(*receipt, life, now);
                   if (!done->ok()) fail(number, done->error());
                 });
}

void FileExchange::finish(const Getting& getting) {
  auto stored = std::make_shared<std::optional<Result<StoredFile>>>();
  options_.aside([stored, file = getting.file] { *stored = file->finish(); },
                 [this, stored, number = getting.number](Instant) {
                   const Getting* const ended = find(number);
                   if (ended == nullptr) return;
                   const Sha256 id = ended->wanted.id;
                   gettings_.erase(id);
                   got_.push_back({.id = id, .file = **stored});
                 });
}

void FileExchange::fail(std::uint64_t number, const Error& error) {
  const Getting* const failed = find(number);
  if (failed == nullptr) return;
  const Sha256 id = failed->wanted.id;
  gettings_.erase(id);
  got_.push_back({.id = id, .file = error});
}

// Lets the sender go on. Receipts of earlier links mean nothing to the present ones.
void FileExchange::consumed(const net::Receipt& receipt, std::uint64_t life, Instant now) {
  if (links_ != nullptr && life == life_) links_->consumed(receipt, now);
}

void FileExchange::tick(Instant now) {
  if (links_ == nullptr) return;
  for (auto one = served_.begin(); one != served_.end();) {
    auto& [peer, served] = *one;
    if (links_->statistics(peer.node).link != served.link) {
      donor_.lost(peer);
      one = served_.erase(one);
      continue;
    }
    while (!served.chunks.empty() && links_->settled(served.chunks.front())) {
      served.chunks.pop_front();
      donor_.served(peer);
    }
    ++one;
  }
  std::vector<std::uint64_t> numbers;  // a getting may fail and go meanwhile
  for (const auto& [id, getting] : gettings_) numbers.push_back(getting.number);
  for (const std::uint64_t number : numbers) {
    if (Getting* const getting = find(number); getting != nullptr) meet_donors(*getting, now);
    Getting* const going = find(number);
    if (going == nullptr || !going->fetcher || going->fetcher->done()) continue;
    cluster::FetchEvents events;
    going->fetcher->tick(now, events);
    carry_out(*going, std::move(events), std::nullopt, now);
  }
}

std::optional<Instant> FileExchange::next_wakeup() const {
  std::optional<Instant> wake;
  for (const auto& [id, getting] : gettings_) {
    if (getting.fetcher) wake = sooner(wake, getting.fetcher->next_wakeup());
  }
  return wake;
}

}  // namespace gossamer::node
