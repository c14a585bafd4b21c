// SPDX-License-Identifier: Apache-2.0
//
// FleetCompanion is what the coordinator of a sparse run does for members on other machines. It gives
// them the data. It collects the parts and reports that they deliver, in the directory where members
// on its own machine put theirs.
//
// Thread rule: the loop thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commands/train_fleet/member_job.h"
#include "host/api/disk.h"
#include "node/companion.h"
#include "node/files/file_collection.h"
#include "node/files/file_exchange.h"

namespace gossamer::node {

class FleetCompanion final : public Companion {
 public:
  // A function that is asked now and then: the reason why the run is to end, once it is to end.
  using Over = std::function<std::optional<std::string>()>;
  FleetCompanion(host::Disk& disk, const FleetLead& lead, Aside aside, Over over, Instant now);

  void connect(net::Links* links) override;
  void on(net::Arrived arrived, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return exchange_.next_wakeup(); }
  [[nodiscard]] std::optional<std::string> over() const override { return over_ ? over_() : std::nullopt; }
  [[nodiscard]] std::vector<std::string> take_remarks() override;
  // Since when files of members cannot be stored, and why.
  [[nodiscard]] const std::optional<FileCollection::Failing>& failing() const {
    return collection_.failing();
  }

 private:
  const Over over_;
  net::Links* links_ = nullptr;
  FileExchange exchange_;
  FileCollection collection_;
  std::vector<std::string> remarks_;
};

}  // namespace gossamer::node
