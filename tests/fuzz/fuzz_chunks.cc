// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a manifest; a donor before any requests; a fetcher before three donors, of which two lie as
// the input chooses. Nothing crashes. Each chunk that the fetcher believes has the right hash and comes once.
// A donor that it drops has spoken and is named. In the end the fetcher gets all from the good donor,
// whatever the others did.
#include <gossamer/chunks.pb.h>

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "cluster/chunks/donor.h"
#include "cluster/chunks/fetcher.h"
#include "cluster/chunks/test_content.h"

namespace {

using namespace gossamer;
using namespace gossamer::cluster;
using fuzz::Choices;

constexpr ChunkChannels kChannels{.requests = 1, .answers = 2};
constexpr std::size_t kLiars = 2;
constexpr std::size_t kMostSteps = 300;
constexpr net::PeerId kMe{NodeId(2), Incarnation(2)};
constexpr net::PeerId kGood{NodeId(9), Incarnation(9)};

const Content& content() {
  static const Content made = make_content(700, 100, 1);
  return made;
}
net::PeerId liar(std::size_t number) { return {NodeId(10 + number), Incarnation(100 + number)}; }

void decode(const std::string& bytes) {
  const auto manifest = Manifest::decode({Slice::of(std::string(bytes))});
  if (!manifest.ok()) {
    CHECK(manifest.error().kind == ErrorKind::kBadData);
    return;
  }
  std::uint64_t all = 0;
  for (std::uint64_t chunk = 0; chunk < manifest->chunks(); ++chunk) {
    CHECK(manifest->offset_of(chunk) == all);
    all += manifest->size_of(chunk);
  }
  CHECK(all == manifest->bytes());
}

class Bench {
 public:
  explicit Bench(Choices& choices)
      : choices_(choices),
        donor_({.channels = kChannels, .most_in_service = 4, .bytes_per_second = 1000}, now_),
        fetcher_({.id = content().manifest.id(), .channels = kChannels, .window = 4}) {
    donor_.give(content().manifest, std::nullopt,
                [](const Manifest&, std::uint64_t chunk) -> Result<Slice> { return content().chunk(chunk); });
    for (std::size_t i = 0; i < kLiars; ++i) add(liar(i));
  }

  void step() {
    const net::PeerId from = liar(choices_.below(kLiars));
    switch (choices_.below(10)) {
      case 0: lose(from); break;
      case 1: add(from); break;
      case 2:
        now_ = now_ + from_milliseconds(static_cast<double>(choices_.below(60'000)));
        fetcher_.tick(now_, out_);
        break;
      case 3: request(from); break;
      default: fetcher_.on(from, answer(), now_, out_);
    }
    hear(from);
  }
  void finish() {
    for (std::size_t i = 0; i < kLiars; ++i) lose(liar(i));
    add(kGood);
    for (int i = 0; !fetcher_.done(); ++i) {
      CHECK(i < 1000, fetcher_.unavailable());
      hear(kGood);
      while (!wanted_.empty()) {
        std::vector<ChunkSend> answers;
        CHECK(donor_.on(kMe, wanted_.front(), now_, answers).ok());
        wanted_.pop_front();
        for (ChunkSend& one : answers) fetcher_.on(kGood, std::move(one.message), now_, out_);
        donor_.served(kMe);
      }
      hear(kGood);
      now_ = now_ + from_milliseconds(60);
      fetcher_.tick(now_, out_);
    }
    hear(kGood);
    CHECK(done_ && here_.size() == content().manifest.chunks());
    CHECK(donors_.contains(kGood));
  }

 private:
  void add(net::PeerId donor) {
    if (donors_.insert(donor).second) fetcher_.add_donor(donor, now_, out_);
    hear(donor);
  }
  void lose(net::PeerId donor) {
    fetcher_.lost(donor, now_, out_);
    donors_.erase(donor);
    donor_.lost(donor);
    hear(donor);
  }
  void hear(net::PeerId from) {
    for (FetchEvent& event : std::exchange(out_, {})) {
      if (auto* const send = std::get_if<ChunkSend>(&event)) {
        CHECK(donors_.contains(send->to));
        if (send->to == kGood) wanted_.push_back(std::move(send->message));
      } else if (const auto* const here = std::get_if<ChunkHere>(&event)) {
        CHECK(here_.insert(here->chunk).second && content().manifest.matches(here->chunk, here->content));
      } else if (const auto* const dropped = std::get_if<DonorDropped>(&event)) {
        CHECK(dropped->donor == from && donors_.erase(from) == 1);
        CHECK(dropped->error.where == "node-" + std::to_string(from.node.value));
      } else if (std::holds_alternative<FetchDone>(event)) {
        CHECK(!std::exchange(done_, true));
      }
    }
  }

  wire::Chunks body() {
    wire::Chunks said;
    const Sha256& id = content().manifest.id();
    said.set_manifest(id.data(), id.size());
    if (choices_.below(16) == 0) said.set_manifest(choices_.text(40));
    said.set_kind(static_cast<wire::Chunks::Kind>(choices_.below(8)));
    said.set_chunk(choices_.number());
    said.set_with_manifest(choices_.flip());
    said.set_whole(choices_.flip());
    said.set_retry_ms(static_cast<std::uint32_t>(choices_.number()));
    return said;
  }
  void request(net::PeerId from) {
    std::vector<ChunkSend> answers;
    const std::string bytes = choices_.below(4) == 0 ? choices_.text() : body().SerializeAsString();
    const auto good =
        donor_.on(from, {.channel = kChannels.requests, .body = bytes, .payload = {}}, now_, answers);
    if (!good.ok()) CHECK(good.error().where == "node-" + std::to_string(from.node.value));
    for (const ChunkSend& one : answers) CHECK(one.to == from);
    CHECK(donor_.in_service() <= 4);
  }
  net::Message answer() {
    net::Message said{.channel = kChannels.answers, .body = choices_.text(), .payload = {}};
    if (choices_.below(8) == 0) return said;
    wire::Chunks answer = body();
    const Slice& manifest = content().manifest.encoded();
    switch (choices_.below(4)) {
      case 0:
        answer.set_kind(wire::Chunks::OFFER);
        answer.set_manifest_bytes(choices_.below(8) == 0 ? choices_.number() : manifest.size());
        said.payload = {manifest};
        break;
      case 1:
        answer.set_kind(wire::Chunks::CHUNK);
        answer.set_chunk(choices_.below(content().manifest.chunks()));
        said.payload = {content().chunk(answer.chunk())};
        break;
      default: break;
    }
    if (choices_.below(4) == 0) said.payload.push_back(Slice::of(choices_.text()));
    said.body = answer.SerializeAsString();
    return said;
  }

  Choices& choices_;
  Instant now_;
  Donor donor_;
  Fetcher fetcher_;
  FetchEvents out_;
  std::set<net::PeerId> donors_;
  std::set<std::uint64_t> here_;
  std::deque<net::Message> wanted_;
  bool done_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  decode({reinterpret_cast<const char*>(data), size});
  Choices choices(data, size);
  Bench bench(choices);
  for (std::size_t i = 0; choices.left() && i < kMostSteps; ++i) bench.step();
  bench.finish();
  return 0;
}
