// SPDX-License-Identifier: Apache-2.0
//
// FleetCompanion: what the coordinator of a sparse run does for members on other machines: gives them the
// data, and collects what they deliver, their parts and reports, where members on its own machine put theirs.
//
// Thread rule: the loop thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/api/disk.h"
#include "node/cluster/companion.h"
#include "node/cluster/file_collection.h"
#include "node/cluster/file_exchange.h"
#include "node/fleet/member_job.h"

namespace gossamer::node {

class FleetCompanion final : public Companion {
 public:
  // Asked now and then: why the run is to end, once it is.
  using Over = std::function<std::optional<std::string>()>;
  FleetCompanion(host::Disk& disk, const FleetLead& lead, Aside aside, Over over, Instant now);

  void connect(net::Links* links) override;
  void on(net::Arrived arrived, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return exchange_.next_wakeup(); }
  [[nodiscard]] std::optional<std::string> over() const override { return over_ ? over_() : std::nullopt; }
  [[nodiscard]] std::vector<std::string> take_remarks() override;
  // Of what members deliver.
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
