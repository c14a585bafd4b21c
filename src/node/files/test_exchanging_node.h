// SPDX-License-Identifier: Apache-2.0
//
// A node on the simulated internet with a disk and a FileExchange, for tests. Thread rule: the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/api/files.h"
#include "host/sim/disk.h"
#include "host/sim/internet.h"
#include "host/sim/timeline.h"
#include "net/link/test_simulated_nodes.h"
#include "node/files/file_exchange.h"

namespace gossamer::node::testing {

// Bytes that repeat nowhere near.
inline std::string make_bytes(std::size_t size, std::size_t seed = 0) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i + seed) * 31 + i / 977);
  return bytes;
}

class ExchangingNode {
 public:
  ExchangingNode(host::Timeline& timeline, host::SimInternet& internet, std::uint64_t number,
                 std::uint64_t incarnation = 1, std::shared_ptr<host::SimDisk> lasting = nullptr)
      : disk(lasting != nullptr ? std::move(lasting) : std::make_shared<host::SimDisk>()),
        node(timeline, internet, number, incarnation),
        timeline_(timeline) {
    node.consumes = false;
    aside = [this](std::function<void()> work, std::function<void(Instant)> then) {
      work_.emplace_back(std::move(work), std::move(then));
    };
    exchange.emplace(*disk, FileExchange::Options{.aside = aside, .seed = number}, timeline.now());
    exchange->connect(node.links.get());
    node.on_event = [this](const net::LinkEvent& event) {
      if (const auto* const arrived = std::get_if<net::Arrived>(&event)) on(*arrived);
    };
  }

  // Does what a driver does between events. One piece of work is done in each tick.
  void tick() {
    if (!work_.empty()) {
      auto [work, then] = std::move(work_.front());
      work_.pop_front();
      work();
      then(timeline_.now());
    }
    exchange->tick(timeline_.now());
    if (on_tick) on_tick();
    for (FileExchange::Got& one : exchange->take_got()) got.push_back(std::move(one));
    for (std::string& one : exchange->take_remarks()) remarks.push_back(std::move(one));
  }
  StoredFile store(const std::string& path, const std::string& bytes) {
    EXPECT_TRUE(host::replace_file(*disk, path, bytes).ok());
    auto file = describe_file(*disk, path, path);
    EXPECT_TRUE(file.ok());
    return *std::move(file);
  }
  void give(const StoredFile& file) { EXPECT_TRUE(exchange->give(file).ok()); }

  std::shared_ptr<host::SimDisk> disk;
  net::Node node;
  Aside aside;
  std::optional<FileExchange> exchange;
  std::vector<FileExchange::Got> got;
  std::vector<std::string> remarks;
  std::function<void()> on_tick;
  std::function<bool(const net::Arrived&)> on_other;  // whether it has consumed it

 private:
  void on(const net::Arrived& arrived) {
    if (exchange->on(arrived, timeline_.now())) return;
    if (on_other && on_other(arrived)) return;
    node.links->consumed(arrived.receipt, timeline_.now());
  }

  host::Timeline& timeline_;
  std::deque<std::pair<std::function<void()>, std::function<void(Instant)>>> work_;
};

}  // namespace gossamer::node::testing
