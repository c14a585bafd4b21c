// SPDX-License-Identifier: Apache-2.0
//
// Chunks over links on the simulated internet: how much several donors help, and how much a bad one costs.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/chunks/donor.h"
#include "cluster/chunks/fetcher.h"
#include "cluster/chunks/test_content.h"
#include "host/sim/internet.h"
#include "host/sim/timeline.h"
#include "net/link/test_simulated_nodes.h"

namespace gossamer::cluster {
namespace {

using host::Lane;

// A donor behind a link; a chunk is in service until the link says that it is there.
class DonorNode {
 public:
  DonorNode(host::Timeline& timeline, host::SimInternet& internet, std::uint64_t number,
            const Content& content)
      : node(timeline, internet, number),
        timeline_(timeline),
        donor_({.channels = {1, 2}, .bytes_per_second = 1e12}, timeline.now()) {
    donor_.give(
        content.manifest, std::nullopt,
        [&content](const Manifest&, std::uint64_t chunk) -> Result<Slice> { return content.chunk(chunk); });
    node.on_event = [this](net::LinkEvent event) {
      if (const auto* const arrived = std::get_if<net::Arrived>(&event)) on(*arrived);
    };
  }
  net::Node node;

 private:
  void on(const net::Arrived& arrived) {
    const auto statistics = node.links->statistics(arrived.from.node);
    while (!marks_.empty() && marks_.front() <= statistics.acknowledged_bytes) {
      marks_.pop_front();
      donor_.served(arrived.from);
    }
    std::vector<ChunkSend> out;
    EXPECT_TRUE(donor_.on(arrived.from, arrived.message, timeline_.now(), out).ok());
    for (ChunkSend& send : out) {
      sent_ += net::counted_bytes(send.message);
      if (total_bytes(send.message.payload) == 100'000) marks_.push_back(sent_);
      EXPECT_TRUE(node.send(send.to, Lane::kBulk, std::move(send.message)));
    }
  }

  host::Timeline& timeline_;
  Donor donor_;
  std::uint64_t sent_ = 0;
  std::deque<std::uint64_t> marks_;  // of sent_, behind each chunk
};

// One fetcher with a wide downlink, donors with uplinks of 10 MB/s and 10 ms away.
class Fetch {
 public:
  Fetch(const Content& content, std::size_t count)
      : content_(content), internet(timeline, 5), node_(timeline, internet, 100) {
    fetcher.emplace(Fetcher::Options{.id = content.manifest.id(), .channels = {1, 2}, .seed = 1});
    node_.on_event = [this](net::LinkEvent event) { on(std::move(event)); };
    for (std::size_t i = 0; i < count; ++i) {
      donors.push_back(std::make_unique<DonorNode>(timeline, internet, 1 + i, content));
      set_uplink(i, 10e6);
      node_.open(donors[i]->node);
    }
    run_for(0.5);
    begun_ = timeline.now();
    for (const auto& donor : donors) {
      act([&](FetchEvents& out) { fetcher->add_donor(donor->node.id, timeline.now(), out); });
    }
  }
  void set_uplink(std::size_t donor, double bytes_per_second) {
    internet.set_rates(donors[donor]->node.machine,
                       {.up_bytes_per_second = bytes_per_second, .down_bytes_per_second = 125e6});
  }
  void kill(std::size_t donor) {
    const net::PeerId gone = donors[donor]->node.id;
    donors[donor].reset();
    run_for(0.2);
    node_.fence(gone);
    act([&](FetchEvents& out) { fetcher->lost(gone, timeline.now(), out); });
  }
  void run_for(double seconds) { timeline.run_until(timeline.now() + from_seconds(seconds)); }
  // Runs until all is here; ticks as a driver does.
  double seconds() {
    for (int i = 0; i < 100'000 && !ended_.has_value(); ++i) {
      run_for(0.01);
      act([&](FetchEvents& out) { fetcher->tick(timeline.now(), out); });
    }
    EXPECT_TRUE(ended_.has_value());
    EXPECT_EQ(here_, content_.manifest.chunks());
    return (ended_.value_or(timeline.now()) - begun_).seconds();
  }

 private:
  void on(net::LinkEvent event) {
    auto* const arrived = std::get_if<net::Arrived>(&event);
    if (arrived == nullptr) return;
    act([&](FetchEvents& out) {
      fetcher->on(arrived->from, std::move(arrived->message), timeline.now(), out);
    });
  }
  template <class Action>
  void act(const Action& action) {
    FetchEvents events;
    action(events);
    for (FetchEvent& event : events) {
      if (auto* const send = std::get_if<ChunkSend>(&event)) {
        EXPECT_TRUE(node_.send(send->to, Lane::kBulk, std::move(send->message)));
      } else if (std::holds_alternative<ChunkHere>(event)) {
        ++here_;
      } else if (std::holds_alternative<FetchDone>(event)) {
        ended_ = timeline.now();
      }
    }
  }

  const Content& content_;

 public:
  host::Timeline timeline{5};
  host::SimInternet internet;
  std::vector<std::unique_ptr<DonorNode>> donors;
  std::optional<Fetcher> fetcher;

 private:
  net::Node node_;
  Instant begun_;
  std::optional<Instant> ended_;
  std::uint64_t here_ = 0;
};

// The time to fetch 20 MB in chunks of 100 kB falls with the donors. With k equal donors it is at most 70 ms
// above the time of the bytes over k uplinks. The bytes that come twice are within their bound.
TEST(SimulatedChunks, TimeFallsWithDonors) {
  const Content content = make_content(20'000'000, 100'000, 1);
  for (const std::size_t donors : {1U, 2U, 4U, 8U}) {
    Fetch fetch(content, donors);
    const double seconds = fetch.seconds();
    const double floor = 2.0 / static_cast<double>(donors);
    EXPECT_GE(seconds, floor) << donors;
    EXPECT_LE(seconds, floor + 0.040 + 0.030) << donors;
    EXPECT_LE(fetch.fetcher->wasted_bytes(), (donors - 1) * 16 * 100'000) << donors;
  }
}

// A donor with a twentieth of the uplink costs little: the others take over its requests.
TEST(SimulatedChunks, ASlowDonorIsOvertaken) {
  const Content content = make_content(20'000'000, 100'000, 1);
  Fetch fetch(content, 4);
  fetch.set_uplink(2, 0.5e6);
  const double seconds = fetch.seconds();
  EXPECT_LE(seconds, 1.2 * 20 / 30.5 + 0.06);
  EXPECT_LE(fetch.fetcher->wasted_bytes(), 3U * 16 * 100'000);
}

// The last donor finishes alone after the others died one after another.
TEST(SimulatedChunks, DonorsDie) {
  const Content content = make_content(20'000'000, 100'000, 1);
  Fetch fetch(content, 3);
  fetch.run_for(0.3);
  fetch.kill(1);
  fetch.kill(0);
  EXPECT_LE(fetch.seconds(), 2.1);
}

// Connections that break cost time. The bytes that come twice stay within one window of the fetcher.
TEST(SimulatedChunks, ConnectionsBreak) {
  const Content content = make_content(10'000'000, 100'000, 1);
  Fetch fetch(content, 2);
  for (int i = 0; i < 5; ++i) {
    fetch.run_for(0.1);
    fetch.internet.reset("m100", i % 2 == 0 ? "m1" : "m2");
  }
  EXPECT_LE(fetch.seconds(), 5);
  EXPECT_LE(fetch.fetcher->wasted_bytes(), 16U * 100'000);
}

}  // namespace
}  // namespace gossamer::cluster
