// SPDX-License-Identifier: Apache-2.0
//
// A fetcher and donors joined by queues. Donors have parts, lie, get lost, fall silent, are busy or restart.
#include "cluster/chunks/fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/chunks/donor.h"
#include "cluster/chunks/test_content.h"

namespace gossamer::cluster {
namespace {

using ::testing::HasSubstr;
using wire::Chunks;

constexpr std::uint64_t kWindow = 4;

net::PeerId donor_id(std::uint64_t number) { return {NodeId{number}, Incarnation{number}}; }

enum class Nature { kHonest, kLiar, kSilent };

// Donors, one fetcher, and queues between them. Each chunk that the fetcher hands on is compared with the
// content.
class Transfer {
 public:
  Transfer(const Content& content, std::uint64_t seed)
      : content_(content), rng_(seed, Purpose::kTest), written(content.manifest.chunks(), false) {
    restart(Fetcher({.id = content.manifest.id(), .channels = {1, 2}, .seed = seed, .window = kWindow}));
  }

  void restart(Fetcher fresh) {
    fetcher_.emplace(std::move(fresh));
    to_donor_.clear();
    to_fetcher_.clear();
    for (auto& [id, one] : donors_) one.donor.lost(fetcher_id());
  }
  void restart() {
    restart(Fetcher({.id = content_.manifest.id(), .channels = {1, 2}, .seed = 1, .window = kWindow},
                    content_.manifest, written));
  }

  void add(std::uint64_t number, std::optional<ChunkSet> has = std::nullopt, Nature nature = Nature::kHonest,
           double bytes_per_second = 1e12, std::uint64_t most_in_service = 16) {
    Donor donor(
        {.channels = {1, 2}, .most_in_service = most_in_service, .bytes_per_second = bytes_per_second}, now);
    donor.give(content_.manifest, std::move(has),
               [this, number](const Manifest&, std::uint64_t chunk) -> Result<Slice> {
                 if (unreadable.contains({number, chunk})) return Error{.what = "cannot read"};
                 return content_.chunk(chunk);
               });
    CHECK(donors_.try_emplace(donor_id(number), One{std::move(donor), nature}).second);
    join(number);
  }
  void join(std::uint64_t number) {
    act([&](FetchEvents& out) { fetcher_->add_donor(donor_id(number), now, out); });
  }
  void lose(std::uint64_t number) {
    to_donor_.erase(donor_id(number));
    to_fetcher_.erase(donor_id(number));
    act([&](FetchEvents& out) { fetcher_->lost(donor_id(number), now, out); });
  }
  void on(std::uint64_t number, net::Message message) {
    act([&](FetchEvents& out) { fetcher_->on(donor_id(number), std::move(message), now, out); });
  }

  // Delivers one message, or lets time pass. Returns false if neither can change anything.
  bool step() {
    std::vector<std::pair<bool, net::PeerId>> pending;
    for (const auto& [peer, queue] : to_donor_) {
      if (!queue.empty()) pending.emplace_back(true, peer);
    }
    for (const auto& [peer, queue] : to_fetcher_) {
      if (!queue.empty()) pending.emplace_back(false, peer);
    }
    if (pending.empty()) {
      const auto wake = fetcher_->next_wakeup();
      if (!wake.has_value()) return false;
      now = std::max(now, *wake);
      act([&](FetchEvents& out) { fetcher_->tick(now, out); });
      return true;
    }
    const auto [request, peer] = pending[rng_.below(pending.size())];
    auto& queue = request ? to_donor_[peer] : to_fetcher_[peer];
    net::Message message = std::move(queue.front());
    queue.pop_front();
    if (request) {
      serve(peer, message);
    } else {
      if (total_bytes(message.payload) > 0) donors_.at(peer).donor.served(fetcher_id());
      act([&](FetchEvents& out) { fetcher_->on(peer, std::move(message), now, out); });
    }
    return true;
  }
  void run() {
    while (step()) {
    }
  }
  [[nodiscard]] Fetcher& fetcher() { return *fetcher_; }
  [[nodiscard]] bool complete() const { return std::ranges::count(written, false) == 0; }

 private:
  struct One {
    Donor donor;
    Nature nature;
  };
  static net::PeerId fetcher_id() { return {NodeId{1000}, Incarnation{1000}}; }

  void serve(net::PeerId peer, const net::Message& message) {
    One& one = donors_.at(peer);
    if (one.nature == Nature::kSilent && !first_of_.insert(peer).second) return;
    std::vector<ChunkSend> out;
    CHECK(one.donor.on(fetcher_id(), message, now, out).ok());
    for (ChunkSend& send : out) {
      Chunks body;
      CHECK(body.ParseFromString(send.message.body));
      if (body.kind() == Chunks::BUSY) ++busy;
      if (one.nature == Nature::kLiar && body.kind() == Chunks::CHUNK && rng_.below(3) == 0) {
        std::string bytes = joined(send.message.payload);
        bytes[rng_.below(bytes.size())] ^= 4;
        send.message.payload = {Slice::of(std::move(bytes))};
      }
      to_fetcher_[peer].push_back(std::move(send.message));
    }
  }
  template <class Action>
  void act(const Action& action) {
    FetchEvents events;
    action(events);
    for (FetchEvent& event : events) {
      if (auto* const send = std::get_if<ChunkSend>(&event)) {
        note(*send);
        to_donor_[send->to].push_back(std::move(send->message));
      } else if (const auto* const chunk = std::get_if<ChunkHere>(&event)) {
        EXPECT_FALSE(written[chunk->chunk]) << "chunk " << chunk->chunk << " twice";
        EXPECT_EQ(joined(chunk->content), joined({content_.chunk(chunk->chunk)}));
        written[chunk->chunk] = true;
      } else if (const auto* const gone = std::get_if<DonorDropped>(&event)) {
        dropped.push_back(*gone);
      } else if (std::holds_alternative<FetchDone>(event)) {
        ++done;
      }
    }
  }
  void note(const ChunkSend& send) {
    Chunks body;
    CHECK(body.ParseFromString(send.message.body) && send.message.channel == 1);
    if (body.kind() == Chunks::WANT) wants.emplace_back(send.to.node.value, body.chunk());
  }

  const Content& content_;
  Rng rng_;
  std::optional<Fetcher> fetcher_;
  std::map<net::PeerId, One> donors_;
  std::map<net::PeerId, std::deque<net::Message>> to_donor_;
  std::map<net::PeerId, std::deque<net::Message>> to_fetcher_;
  std::set<net::PeerId> first_of_;  // silent donors that have given their OFFER

 public:
  ChunkSet written;  // on disk
  Instant now;
  std::vector<DonorDropped> dropped;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> wants;    // donor, chunk, in order
  std::set<std::pair<std::uint64_t, std::uint64_t>> unreadable;  // donor, chunk
  int done = 0;
  int busy = 0;
};

ChunkSet random_set(std::uint64_t chunks, Rng& rng) {
  ChunkSet set(chunks);
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) set[chunk] = rng.below(2) == 0;
  return set;
}

// Donors with everything deliver all bytes once, for any number of chunks and any order of events. At most
// (k-1) windows of chunks come a second time.
TEST(Fetcher, WholeDonors) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest, 1);
    const std::uint64_t donors = 1 + rng.below(5);
    const Content content = make_content(rng.below(900), 10, seed);
    Transfer transfer(content, seed);
    for (std::uint64_t i = 0; i < donors; ++i) transfer.add(i);
    transfer.run();
    ASSERT_TRUE(transfer.complete());
    ASSERT_EQ(transfer.done, 1);
    ASSERT_TRUE(transfer.fetcher().done() && transfer.dropped.empty());
    ASSERT_LE(transfer.fetcher().wasted_bytes(), (donors - 1) * kWindow * 10);
  }
}

// The fetch ends exactly with the chunks that some donor has, and says how many are missing. It goes on when
// another donor brings them.
TEST(Fetcher, PartialDonors) {
  int missing = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest, 2);
    const std::uint64_t donors = 1 + rng.below(5);
    const Content content = make_content(300, 10, seed);
    Transfer transfer(content, seed);
    ChunkSet somewhere(30, false);
    for (std::uint64_t i = 0; i < donors; ++i) {
      const ChunkSet has = random_set(30, rng);
      for (std::size_t chunk = 0; chunk < 30; ++chunk) somewhere[chunk] = somewhere[chunk] || has[chunk];
      transfer.add(i, has);
    }
    transfer.run();
    ASSERT_EQ(transfer.written, somewhere);
    ASSERT_EQ(transfer.fetcher().unavailable(),
              static_cast<std::uint64_t>(std::ranges::count(somewhere, false)));
    ASSERT_LE(transfer.fetcher().wasted_bytes(), donors * (donors - 1) * kWindow * 10);
    missing += transfer.complete() ? 0 : 1;
    transfer.add(50);
    transfer.run();
    ASSERT_TRUE(transfer.complete());
  }
  EXPECT_GT(missing, 20);
}

// Chunks that only one donor has are asked for first, of that donor.
TEST(Fetcher, RarestFirst) {
  const Content content = make_content(2000, 10, 1);
  Transfer transfer(content, 1);
  ChunkSet most(200, true);
  most[70] = most[120] = false;
  transfer.add(1, most);
  transfer.add(2, most);
  const auto asked = [&](std::uint64_t donor) {
    std::vector<std::uint64_t> chunks;
    for (const auto& [of, chunk] : transfer.wants) {
      if (of == donor) chunks.push_back(chunk);
    }
    return chunks;
  };
  while (asked(1).empty() || asked(2).empty()) ASSERT_TRUE(transfer.step());
  transfer.add(3);
  transfer.run();
  const std::vector<std::uint64_t> of_third = asked(3);
  ASSERT_GE(of_third.size(), 2U);
  EXPECT_EQ((std::set{of_third[0], of_third[1]}), (std::set<std::uint64_t>{70, 120}));
}

// A chunk that a donor cannot give after all is asked of it once, and then of the next donor that has it.
TEST(Fetcher, GoneIsNotAskedAgain) {
  const Content content = make_content(200, 10, 1);
  Transfer transfer(content, 1);
  transfer.unreadable = {{1, 3}, {2, 3}};
  transfer.add(1);
  transfer.add(2);
  for (int i = 0; i < 10'000 && transfer.step(); ++i) {
  }
  EXPECT_EQ(transfer.fetcher().unavailable(), 1U);
  using Want = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(std::ranges::count(transfer.wants, Want(1, 3)), 1);
  EXPECT_EQ(std::ranges::count(transfer.wants, Want(2, 3)), 1);
  transfer.add(4);
  transfer.run();
  EXPECT_TRUE(transfer.complete());
}

// Liars are named, and nobody else is. Their bytes are not believed, and one honest donor is enough.
TEST(Fetcher, Liars) {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest, 3);
    const Content content = make_content(10 + rng.below(600), 10, seed);
    Transfer transfer(content, seed);
    const std::uint64_t liars = 1 + rng.below(4);
    for (std::uint64_t i = 0; i < liars; ++i) transfer.add(i, std::nullopt, Nature::kLiar);
    transfer.add(90);
    transfer.run();
    ASSERT_TRUE(transfer.complete());
    for (const DonorDropped& one : transfer.dropped) {
      ASSERT_LT(one.donor.node.value, liars);
      ASSERT_THAT(one.error.message(), HasSubstr("other bytes for chunk"));
    }
    found += transfer.dropped.size();
    ASSERT_LE(transfer.fetcher().wasted_bytes(), (2 * liars + 1) * kWindow * 10);
  }
  EXPECT_GT(found, 200U);
}

// A donor that sends its OFFER and then nothing, without being lost, delays no chunk that another donor has.
TEST(Fetcher, SilentDonors) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Content content = make_content(400, 10, seed);
    Transfer transfer(content, seed);
    for (std::uint64_t i = 0; i < seed % 4; ++i) transfer.add(i, std::nullopt, Nature::kSilent);
    transfer.add(90);
    transfer.run();
    ASSERT_TRUE(transfer.complete());
    ASSERT_TRUE(transfer.dropped.empty());
  }
}

// Donors with little to give make the fetcher wait as long as they say, and no request is lost over it.
TEST(Fetcher, BusyDonors) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Content content = make_content(1000, 10, seed);
    Transfer transfer(content, seed);
    transfer.add(1, std::nullopt, Nature::kHonest, 100);
    transfer.add(2, std::nullopt, Nature::kHonest, 50, 1 + seed % 3);
    transfer.run();
    ASSERT_TRUE(transfer.complete());
    ASSERT_GT(transfer.busy, 0);
    // 1000 bytes at 150 a second, 150 of them at once.
    ASSERT_NEAR((transfer.now - Instant{}).seconds(), (1000 - 150) / 150.0, 1.5);
  }
}

// Claim: a donor that is busy is asked for what it has in service and no more. Each chunk that it then sends
// lets the fetcher ask for one more at a time, up to the window.
TEST(Fetcher, AsksABusyDonorForLess) {
  const Content content = make_content(1000, 10, 1);
  const net::PeerId donor = donor_id(1);
  Fetcher fetcher({.id = content.manifest.id(), .channels = {1, 2}, .seed = 1, .window = 8}, content.manifest,
                  ChunkSet(100, false));
  std::deque<std::uint64_t> asked;  // and not answered
  const auto asks = [&](const auto& act) {
    FetchEvents events;
    act(events);
    const std::size_t before = asked.size();
    for (const FetchEvent& event : events) {
      const auto* const send = std::get_if<ChunkSend>(&event);
      Chunks body;
      if (send == nullptr || !body.ParseFromString(send->message.body)) continue;
      if (body.kind() == Chunks::WANT) asked.push_back(body.chunk());
    }
    return asked.size() - before;
  };
  const auto says = [&](Chunks body, Instant now, Slices payload = {}) {
    return asks([&](FetchEvents& out) {
      fetcher.on(donor, {.channel = 2, .body = body.SerializeAsString(), .payload = std::move(payload)}, now,
                 out);
    });
  };
  const auto of_first = [&](Chunks::Kind kind) {
    Chunks body = chunks_body(content.manifest.id(), kind, asked.front());
    if (kind == Chunks::BUSY) body.set_retry_ms(100);
    asked.pop_front();
    return body;
  };
  EXPECT_EQ(asks([&](FetchEvents& out) { fetcher.add_donor(donor, {}, out); }), 0U);
  Chunks offer = chunks_body(content.manifest.id(), Chunks::OFFER, 0);
  offer.set_whole(true);
  EXPECT_EQ(says(offer, {}), 8U);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(says(of_first(Chunks::BUSY), {}), 0U);
  const Instant later = Instant{} + from_milliseconds(100);
  EXPECT_EQ(asks([&](FetchEvents& out) { fetcher.tick(later, out); }), 0U) << "three are in service";
  for (const std::size_t more : {2U, 2U, 2U, 2U, 2U, 1U, 1U}) {
    const std::uint64_t chunk = asked.front();
    EXPECT_EQ(says(of_first(Chunks::CHUNK), later, {content.chunk(chunk)}), more) << asked.size();
  }
  EXPECT_EQ(asked.size(), 8U);
}

// Claim: fetchers of one content ask one donor for its chunks in orders of their own, by their seeds, so that
// they soon have something for each other.
TEST(Fetcher, EachInItsOwnOrder) {
  const Content content = make_content(1000, 10, 1);
  const auto first_half = [&](std::uint64_t seed) {
    Transfer transfer(content, seed);
    transfer.add(1);
    transfer.run();
    std::set<std::uint64_t> chunks;
    for (std::size_t i = 0; i < 50; ++i) chunks.insert(transfer.wants.at(i).second);
    return chunks;
  };
  const std::set<std::uint64_t> one = first_half(1);
  for (const std::uint64_t seed : {2ULL, 3ULL, 1ULL + (1ULL << 32)}) {
    const auto common =
        std::ranges::count_if(first_half(seed), [&](auto chunk) { return one.contains(chunk); });
    EXPECT_LT(common, 40) << seed << ": half of 50 by chance";
  }
}

// Donors come and go, and the fetcher is restarted from the chunks it has written. Each chunk is written once
// over all its lives, and at the end all are.
TEST(Fetcher, LossesAndRestarts) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest, 4);
    const Content content = make_content(500, 10, seed);
    Transfer transfer(content, seed);
    std::set<std::uint64_t> donors;
    std::uint64_t next = 0;
    for (int turn = 0; turn < 60; ++turn) {
      for (std::uint64_t steps = rng.below(8); steps > 0; --steps) transfer.step();
      const std::uint64_t what = rng.below(6);
      if (what < 2) {
        transfer.add(next, random_set(50, rng), rng.below(4) == 0 ? Nature::kLiar : Nature::kHonest);
        donors.insert(next++);
      } else if (what == 2 && !donors.empty()) {
        transfer.lose(*donors.begin());
        donors.erase(donors.begin());
      } else if (what == 3 && turn % 5 == 0) {
        donors.clear();
        transfer.restart();
      }
    }
    transfer.add(1000);
    transfer.run();
    ASSERT_TRUE(transfer.complete());
    ASSERT_TRUE(transfer.fetcher().done());
  }
}

// An empty content is done at once, with the manifest or without.
TEST(Fetcher, NothingToFetch) {
  const Content empty = make_content(0, 10, 1);
  Transfer transfer(empty, 1);
  transfer.add(1);
  transfer.run();
  EXPECT_EQ(transfer.done, 1);
  const Content content = make_content(30, 10, 1);
  EXPECT_TRUE(
      Fetcher({.id = content.manifest.id(), .channels = {1, 2}}, content.manifest, ChunkSet(3, true)).done());
}

// An answer that a correct donor never gives drops the donor, with its name and the reason. The fetch goes on
// with another donor.
TEST(Fetcher, FaultsAreNamed) {
  const Content content = make_content(300, 10, 1);
  const auto message = [&](const Chunks& body, const std::string& payload = {}) {
    return net::Message{.channel = 2, .body = body.SerializeAsString(), .payload = {Slice::of(payload)}};
  };
  const auto body = [&](Chunks::Kind kind, std::uint64_t chunk = 0) {
    return chunks_body(content.manifest.id(), kind, chunk);
  };
  Chunks whole = body(Chunks::OFFER);
  whole.set_whole(true);
  Chunks with_manifest = whole;
  with_manifest.set_manifest_bytes(5);
  const std::vector<std::pair<net::Message, std::string>> faults = {
      {{.channel = 2, .body = "\xff", .payload = {}}, "no answer"},
      {message(body(Chunks::OFFER)), "a second OFFER"},
      {message(body(Chunks::CHUNK, 77), "0123456789"), "an answer about chunk 77"},
      {message(body(Chunks::GONE, ~0ULL)), "an answer about chunk 18446744073709551615"},
      {message(body(Chunks::WANT, 1)), "an answer"},
  };
  for (const auto& [bad, text] : faults) {
    Transfer transfer(content, 1);
    transfer.add(1);
    for (int i = 0; i < 2; ++i) transfer.step();  // ASK, OFFER
    transfer.on(1, bad);
    ASSERT_EQ(transfer.dropped.size(), 1U) << text;
    EXPECT_THAT(transfer.dropped[0].error.message(), HasSubstr("node-1: "));
    EXPECT_THAT(transfer.dropped[0].error.message(), HasSubstr(text));
    transfer.add(2);
    transfer.run();
    EXPECT_TRUE(transfer.complete());
  }
  const std::vector<std::pair<net::Message, std::string>> offers = {
      {message(whole), "another manifest, or none"},
      {message(with_manifest, "12345"), "another manifest, or none"},
      {message(with_manifest, "1234"), "a manifest of 5 bytes"},
      {message(body(Chunks::OFFER), "1234"), "another manifest, or none"},
  };
  for (const auto& [bad, text] : offers) {
    Transfer transfer(content, 1);
    transfer.add(1);
    transfer.on(1, bad);
    ASSERT_EQ(transfer.dropped.size(), 1U) << text;
    EXPECT_THAT(transfer.dropped[0].error.message(), HasSubstr(text));
  }
}

}  // namespace
}  // namespace gossamer::cluster
