// SPDX-License-Identifier: Apache-2.0
//
// A coordinator that collects files and a member that delivers them, for tests. Thread rule: the test's
// thread.
#pragma once

#include <gossamer/delivery.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/files/file_collection.h"
#include "node/files/file_delivery.h"
#include "node/files/test_delivery_rules.h"
#include "node/files/test_exchanging_node.h"

namespace gossamer::node::testing {

// A coordinator, which is node 1, and a member.
class Delivering : public ::testing::Test {
 protected:
  void lead(std::shared_ptr<host::SimDisk> disk = nullptr) {
    const std::uint64_t incarnation = ++leads_;
    collection_.reset();
    coordinator_.emplace(timeline_, internet_, 1, incarnation, std::move(disk));
    collection_.emplace(
        *coordinator_->disk, *coordinator_->exchange, rules_,
        FileCollection::Options{
            .directory = "/run/parts", .most_bytes = 10'000'000, .aside = coordinator_->aside});
    coordinator_->on_other = [this](const net::Arrived& arrived) {
      return collection_->on(arrived, *coordinator_->node.links, timeline_.now());
    };
    coordinator_->on_tick = [this] {
      collection_->tick(*coordinator_->node.links, timeline_.now());
      for (FileCollection::Blamed& one : collection_->take_blamed()) blamed_.push_back(std::move(one));
      for (std::string& one : collection_->take_remarks()) coordinator_->remarks.push_back(std::move(one));
    };
  }
  void join(std::shared_ptr<host::SimDisk> disk = nullptr) {
    delivery_.reset();
    member_.emplace(timeline_, internet_, 7, ++lives_, std::move(disk));
    auto delivery = FileDelivery::start(*member_->disk, *member_->exchange, member_->aside, "/own/deliver");
    ASSERT_TRUE(delivery.ok()) << delivery.error().message();
    delivery_ = *std::move(delivery);
    member_->on_other = [this](const net::Arrived& arrived) {
      return delivery_->on(arrived, coordinator_->node.id, *member_->node.links, timeline_.now());
    };
    member_->on_tick = [this] {
      delivery_->tick(coordinator_->node.id, *member_->node.links, timeline_.now());
    };
    member_->node.open(coordinator_->node);
  }
  void run_for(double seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
      timeline_.run_until(timeline_.now() + from_seconds(0.01));
      if (coordinator_) coordinator_->tick();
      if (member_) member_->tick();
    }
  }
  // The same in as few steps as count in full.
  void tick_for(double seconds) {
    for (int i = 0; i < seconds * 10; ++i) {
      timeline_.run_until(timeline_.now() + from_seconds(0.1));
      coordinator_->tick();
      if (member_) member_->tick();
    }
  }
  // Chunks of files on their way that are on the coordinator's disk.
  std::size_t chunks_here() {
    std::size_t chunks = 0;
    const auto arriving = coordinator_->disk->list("/run/parts.incoming");
    if (!arriving.ok()) return 0;
    for (const std::string& one : *arriving) {
      const auto found = coordinator_->disk->list("/run/parts.incoming/" + one);
      if (found.ok()) chunks += found->size();
    }
    return chunks;
  }
  void write(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(host::replace_file(*member_->disk, "/own/deliver/" + name, bytes).ok());
  }
  std::string collected(const std::string& name) {
    const auto text = host::read_text(*coordinator_->disk, "/run/parts/" + name);
    return text.ok() ? *text : "none";
  }

  host::Timeline timeline_{3};
  host::SimInternet internet_{timeline_, 3};
  // Whether this node was blamed, with these words, and no other.
  [[nodiscard]] bool blames(std::uint64_t node, const std::string& words) {
    const auto blamed = std::exchange(blamed_, {});
    if (blamed.empty()) return false;
    return std::ranges::all_of(blamed, [&](const auto& one) {
      return one.peer.node == NodeId(node) && one.why.find(words) != std::string::npos;
    });
  }
  void offer(net::Node& from, const std::string& name, const Sha256& id) {
    offer(from, name, std::string(reinterpret_cast<const char*>(id.data()), id.size()));
  }
  void offer(net::Node& from, const std::string& name, const std::string& hash = std::string(32, 'x')) {
    wire::Delivery body;
    body.set_kind(wire::Delivery::OFFER);
    body.set_name(name);
    body.set_manifest(hash);
    EXPECT_TRUE(from.send(coordinator_->node.id, host::Lane::kControl,
                          {.channel = kDeliveries, .body = body.SerializeAsString(), .payload = {}}));
  }

  AskedRules rules_;
  std::vector<FileCollection::Blamed> blamed_;
  std::uint64_t leads_ = 0;
  std::uint64_t lives_ = 0;
  bool written_ = false;
  std::optional<ExchangingNode> coordinator_;
  std::optional<FileCollection> collection_;
  std::optional<ExchangingNode> member_;
  std::unique_ptr<FileDelivery> delivery_;
};

}  // namespace gossamer::node::testing
