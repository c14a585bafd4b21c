// SPDX-License-Identifier: Apache-2.0
#include "node/supply_companion.h"

#include <utility>

namespace gossamer::node {
namespace {

Result<void> give(host::Disk& disk, const Supply& supply, const Supply::File& file, FileExchange& exchange) {
  const StoredPlace place = supply.place_of(file);
  const auto stored = find_stored(disk, place, file.manifest);
  if (stored) return exchange.give(*stored);
  return Error{.kind = ErrorKind::kBadData,
               .where = place.path,
               .what = "the file, or its manifest, has changed",
               .expected = "a file of the run as its members were told of it",
               .fix = "leave the run's files alone while it runs"};
}

}  // namespace

SupplyCompanion::SupplyCompanion(host::Disk& disk, const Supply& supply, Aside aside, Run run, Instant now)
    : run_(std::move(run)),
      exchange_(disk, {.aside = aside}, now),
      collection_(disk, exchange_, run_.rules,
                  {.directory = supply.deliver, .most_bytes = supply.most_bytes, .aside = std::move(aside)}) {
  for (const Supply::File& file : supply.files) {
    if (auto given = give(disk, supply, file, exchange_); !given.ok())
      remarks_.push_back(given.error().message());
  }
}

void SupplyCompanion::connect(net::Links* links) {
  links_ = links;
  exchange_.connect(links);
}

void SupplyCompanion::read_books(const cluster::Coordinator* books) {
  books_ = books;
  run_.books(books_);
}

void SupplyCompanion::on(net::Arrived arrived, Instant now) {
  if (links_ == nullptr) return;
  run_.books(books_);
  const bool known = exchange_.on(arrived, now) || collection_.on(arrived, *links_, now) ||
                     run_.reports.on(arrived, *links_, now);
  if (!known) links_->consumed(arrived.receipt, now);
}

void SupplyCompanion::tick(Instant now) {
  if (links_ == nullptr) return;
  run_.books(books_);
  exchange_.tick(now);
  collection_.tick(*links_, now);
}

std::optional<SupplyCompanion::Failing> SupplyCompanion::failing() const {
  const auto& reports = run_.reports.failing();
  const auto& files = collection_.failing();
  if (reports && (!files || files->at <= reports->at))
    return Failing{.at = reports->at, .last = reports->last};
  return files ? std::optional(Failing{.at = files->at, .last = files->last}) : std::nullopt;
}

std::vector<Misdeed> SupplyCompanion::take_misdeeds() {
  std::vector<Misdeed> misdeeds;
  for (FileExchange::Blamed& one : exchange_.take_blamed())
    misdeeds.push_back({one.peer, std::move(one.error)});
  for (FileCollection::Blamed& one : collection_.take_blamed())
    misdeeds.push_back({one.peer, Error{.what = std::move(one.why)}});
  for (ReportInbox::Blamed& one : run_.reports.take_blamed())
    misdeeds.push_back({one.peer, Error{.what = std::move(one.why)}});
  return misdeeds;
}

std::vector<std::string> SupplyCompanion::take_remarks() {
  std::vector<std::string> remarks = std::exchange(remarks_, {});
  for (std::string& one : exchange_.take_remarks()) remarks.push_back(std::move(one));
  for (std::string& one : collection_.take_remarks()) remarks.push_back(std::move(one));
  for (std::string& one : run_.reports.take_remarks()) remarks.push_back(std::move(one));
  return remarks;
}

}  // namespace gossamer::node
