// SPDX-License-Identifier: Apache-2.0
//
// SupplyCompanion: the coordinator's side of a Supply. It gives the files to members on other machines. It
// collects what they deliver in the directory where members on its own machine put theirs.
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

namespace gossamer::node {

class SupplyCompanion final : public Companion {
 public:
  // Asked now and then: why the run is to end, once it is.
  using Over = std::function<std::optional<std::string>()>;
  SupplyCompanion(host::Disk& disk, const Supply& supply, Aside aside, Over over, Instant now);

  void connect(net::Links* links) override;
  void on(net::Arrived arrived, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return exchange_.next_wakeup(); }
  [[nodiscard]] std::optional<std::string> over() const override { return over_ ? over_() : std::nullopt; }
  [[nodiscard]] std::vector<std::string> take_remarks() override;
  // Set while deliveries cannot be stored.
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
