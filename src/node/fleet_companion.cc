// SPDX-License-Identifier: Apache-2.0
#include "node/fleet_companion.h"

#include <utility>

#include "commands/train_fleet/fleet_data.h"
#include "commands/train_fleet/fleet_plan.h"

namespace gossamer::node {
namespace {

// Bytes that a part has beside its numbers, at most.
constexpr std::uint64_t kHeaderRoom = std::uint64_t{64} << 20;

}  // namespace

FleetCompanion::FleetCompanion(host::Disk& disk, const FleetLead& lead, Aside aside, Over over, Instant now)
    : over_(std::move(over)),
      exchange_(disk, {.aside = std::move(aside)}, now),
      collection_(disk, exchange_,
                  {.directory = lead.configuration.deliver,
                   .growing = growing_files(),
                   .most_bytes = trained_bytes(lead.shape.network) + kHeaderRoom}) {
  for (const StoredFile& file : lead.data) {
    if (auto given = exchange_.give(file); !given.ok()) remarks_.push_back(given.error().message());
  }
}

void FleetCompanion::connect(net::Links* links) {
  links_ = links;
  exchange_.connect(links);
}

void FleetCompanion::on(net::Arrived arrived, Instant now) {
  if (links_ == nullptr) return;
  const bool known = exchange_.on(arrived, now) || collection_.on(arrived, *links_, now);
  if (!known) links_->consumed(arrived.receipt, now);
}

void FleetCompanion::tick(Instant now) {
  if (links_ == nullptr) return;
  exchange_.tick(now);
  collection_.tick(*links_, now);
}

std::vector<std::string> FleetCompanion::take_remarks() {
  std::vector<std::string> remarks = std::exchange(remarks_, {});
  for (std::string& one : exchange_.take_remarks()) remarks.push_back(std::move(one));
  for (std::string& one : collection_.take_remarks()) remarks.push_back(std::move(one));
  return remarks;
}

}  // namespace gossamer::node
