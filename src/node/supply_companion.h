// SPDX-License-Identifier: Apache-2.0
//
// SupplyCompanion: the coordinator's side of a Supply. It gives the files to members on other machines. It
// collects what they deliver in the directory where members on its own machine put theirs. It takes reports
// of all members.
//
// Thread rule: the loop thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/api/disk.h"
#include "node/companion.h"
#include "node/files/file_collection.h"
#include "node/files/file_exchange.h"
#include "node/files/supply.h"
#include "node/reports/report_inbox.h"

namespace gossamer::node {

class SupplyCompanion final : public Companion {
 public:
  struct Run {
    ReportInbox& reports;  // these two outlive this object
    DeliveryRules& rules;
    // Gets the books of each lead before each message and at every tick; null when none is left.
    std::function<void(const cluster::Coordinator*)> books;
    // Asked now and then: why the run is to end, once it is.
    std::function<std::optional<std::string>()> over;
  };
  SupplyCompanion(host::Disk& disk, const Supply& supply, Aside aside, Run run, Instant now);
  ~SupplyCompanion() override { run_.books(nullptr); }
  SupplyCompanion(const SupplyCompanion&) = delete;
  SupplyCompanion& operator=(const SupplyCompanion&) = delete;

  void connect(net::Links* links) override;
  void read_books(const cluster::Coordinator* books) override;
  void on(net::Arrived arrived, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override {
    if (links_ == nullptr) return std::nullopt;  // nothing can be done
    return sooner(exchange_.next_wakeup(), collection_.next_wakeup());
  }
  [[nodiscard]] std::optional<std::string> over() const override { return run_.over(); }
  [[nodiscard]] std::vector<Misdeed> take_misdeeds() override;
  [[nodiscard]] std::vector<std::string> take_remarks() override;
  // When deliveries or reports could not be stored for the last time, and why; nothing while they can.
  struct Failing {
    Instant at;
    Error last;
  };
  [[nodiscard]] std::optional<Failing> failing() const;

 private:
  const Run run_;
  net::Links* links_ = nullptr;
  const cluster::Coordinator* books_ = nullptr;
  FileExchange exchange_;
  FileCollection collection_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
