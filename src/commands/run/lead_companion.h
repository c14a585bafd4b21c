// SPDX-License-Identifier: Apache-2.0
//
// LeadCompanion: what the lead of a run does beside leading. It gives and collects files, and does what its
// engine does beside. Thread rule: the loop thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "node/companion.h"
#include "node/supply_companion.h"

namespace gossamer::commands {

class LeadCompanion final : public node::Companion {
 public:
  LeadCompanion(std::unique_ptr<node::SupplyCompanion> supply, std::uint32_t channel,
                std::unique_ptr<node::Companion> beside)
      : supply_(std::move(supply)), channel_(channel), beside_(std::move(beside)) {}

  void connect(net::Links* links) override {
    supply_->connect(links);
    beside_->connect(links);
  }
  void placed(Epoch epoch, const std::string& decision) override { beside_->placed(epoch, decision); }
  [[nodiscard]] std::vector<node::Misdeed> take_misdeeds() override {
    std::vector<node::Misdeed> misdeeds = supply_->take_misdeeds();
    for (node::Misdeed& one : beside_->take_misdeeds()) misdeeds.push_back(std::move(one));
    return misdeeds;
  }
  void read_books(const cluster::Coordinator* books) override { supply_->read_books(books); }
  void on(net::Arrived arrived, Instant now) override {
    if (arrived.message.channel == channel_) return beside_->on(std::move(arrived), now);
    supply_->on(std::move(arrived), now);
  }
  void tick(Instant now) override {
    supply_->tick(now);
    beside_->tick(now);
  }
  [[nodiscard]] std::optional<Instant> next_wakeup() const override {
    const auto supply = supply_->next_wakeup();
    const auto beside = beside_->next_wakeup();
    return supply && beside ? std::min(*supply, *beside) : supply ? supply : beside;
  }
  [[nodiscard]] std::optional<std::string> over() const override { return supply_->over(); }
  [[nodiscard]] std::vector<std::string> take_remarks() override {
    std::vector<std::string> remarks = supply_->take_remarks();
    for (std::string& one : beside_->take_remarks()) remarks.push_back(std::move(one));
    return remarks;
  }

 private:
  const std::unique_ptr<node::SupplyCompanion> supply_;
  const std::uint32_t channel_;
  const std::unique_ptr<node::Companion> beside_;
};

}  // namespace gossamer::commands
