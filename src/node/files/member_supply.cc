// SPDX-License-Identifier: Apache-2.0
#include "node/files/member_supply.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/human_bytes.h"

namespace gossamer::node {

MemberSupply::MemberSupply(host::Disk& disk, Supply told, Aside aside, Options options, Instant now)
    : disk_(disk),
      aside_(std::move(aside)),
      options_(std::move(options)),
      supplied_{.supply = std::move(told)},
      exchange_(disk, {.aside = aside_, .seed = options_.seed, .bytes_per_second = options_.bytes_per_second},
                now),
      began_(now),
      next_say_(now + kSayEvery) {
  if (options_.in_place && find_in_place()) {
    for (const StoredFile& file : stored_) static_cast<void>(exchange_.give(file));
    return;
  }
  supplied_.elsewhere = true;
  supplied_.supply.directory = own("data");
  supplied_.supply.deliver = deliveries(options_.directory);
  for (Supply::File& file : supplied_.supply.files) file.path.clear();
  look_for_own();
}

MemberSupply::~MemberSupply() {
  if (!over_ || delivery_ == nullptr) return;
  static_cast<void>(disk_.remove_all(own("data")));
  // What the coordinator does not have yet may be nowhere else.
  const std::string deliver = deliveries(options_.directory);
  if (FileDelivery::has_to_take(disk_, deliver) || FileDelivery::under_way(disk_, deliver)) return;
  static_cast<void>(disk_.remove_all(deliver));
}

// The coordinator has described these files as they lie there now, so they are not read again.
bool MemberSupply::find_in_place() {
  const Supply& supply = supplied_.supply;
  const auto deliver = disk_.exists(supply.deliver);
  if (!deliver.ok() || !*deliver) return false;
  for (const Supply::File& file : supply.files) {
    auto found = find_stored(disk_, supply.place_of(file), file.manifest);
    if (!found) {
      stored_.clear();
      return false;
    }
    stored_.push_back(*std::move(found));
  }
  return true;
}

// A file of an earlier process may have been damaged since. This member would train with it, and give its
// bytes to others. So its content counts, and not its size.
void MemberSupply::look_for_own() {
  missing_ = supplied_.supply.files;
  for (const Supply::File& file : supplied_.supply.files) {
    if (find_stored(disk_, supplied_.supply.place_of(file), file.manifest)) {
      verify(file);
    } else {
      fetch(file);
    }
  }
  if (missing_.empty()) all_here();
}

void MemberSupply::verify(const Supply::File& file) {
  const std::string path = supplied_.supply.place_of(file).path;
  auto found = std::make_shared<std::optional<Result<StoredFile>>>();
  aside_([&disk = disk_, path, name = file.name, found] { *found = describe_file(disk, path, name); },
         [this, file, found](Instant) { verified(file, std::move(**found)); });
}

void MemberSupply::verified(const Supply::File& file, Result<StoredFile> found) {
  if (found.ok() && found->manifest.id() == file.manifest) return here(file.manifest, *std::move(found));
  remarks_.push_back(fmt::format("data: {} is damaged, and fetched again{}",
                                 supplied_.supply.place_of(file).path,
                                 found.ok() ? std::string() : ": " + found.error().message()));
  fetch(file);
}

void MemberSupply::fetch(const Supply::File& file) {
  exchange_.get(
      {.id = file.manifest, .path = supplied_.supply.place_of(file).path, .most_bytes = file.bytes});
}

void MemberSupply::here(const Sha256& id, StoredFile file) {
  stored_.push_back(std::move(file));
  std::erase_if(missing_, [&](const Supply::File& one) { return one.manifest == id; });
  if (missing_.empty()) all_here();
}

void MemberSupply::connect(net::Links* links) {
  links_ = links;
  exchange_.connect(links);
}

bool MemberSupply::on(const net::Arrived& arrived, net::PeerId coordinator, Instant now) {
  if (exchange_.on(arrived, now)) return true;
  return delivery_ != nullptr && links_ != nullptr && delivery_->on(arrived, coordinator, *links_, now);
}

void MemberSupply::donors(const std::set<net::PeerId>& donors) {
  for (const Supply::File& file : missing_) exchange_.donors(file.manifest, donors);
}

void MemberSupply::tick(net::PeerId coordinator, Instant now) {
  if (links_ != nullptr) {
    if (!missing_.empty() && next_say_ <= now) say_progress(now);
    exchange_.tick(now);
    if (delivery_ != nullptr) delivery_->tick(coordinator, *links_, now);
    if (brings_) brings_since_ = std::max(std::optional(brings_since_.value_or(now)), delivery_->moved());
    brings_ = brings_ && delivery_->brings_earlier() && now - *brings_since_ < kBringTime;
  }
  for (FileExchange::Got& got : exchange_.take_got()) fetched(std::move(got), now);
}

void MemberSupply::fetched(FileExchange::Got got, Instant now) {
  if (failure_) return;
  if (!got.file.ok()) {
    failure_ = got.file.error();
    return;
  }
  fetched_bytes_ += got.file->manifest.bytes();
  here(got.id, *std::move(got.file));
  if (missing_.empty())
    remarks_.push_back(
        fmt::format("data: all here, {} in {:.1f} s", human_bytes(fetched_bytes_), (now - began_).seconds()));
}

void MemberSupply::all_here() {
  for (const StoredFile& file : stored_) {
    if (auto given = exchange_.give(file); !given.ok()) {
      failure_ = given.error();
      return;
    }
  }
  auto delivery = FileDelivery::start(disk_, exchange_, aside_, supplied_.supply.deliver);
  if (delivery.ok()) {
    delivery_ = *std::move(delivery);
    brings_ = delivery_->brings_earlier();
    if (brings_) remarks_.emplace_back("brings to the coordinator what was saved here before");
  } else {
    failure_ = delivery.error();
  }
}

void MemberSupply::say_progress(Instant now) {
  next_say_ = now + kSayEvery;
  std::uint64_t here = fetched_bytes_;
  std::uint64_t all = fetched_bytes_;
  for (const Supply::File& file : missing_) {
    here += exchange_.progress(file.manifest).here;
    all += file.bytes;
  }
  remarks_.push_back(fmt::format("data: {} of {} here", human_bytes(here), human_bytes(all)));
}

// Without links there is nothing to do at any time.
std::optional<Instant> MemberSupply::next_wakeup() const {
  if (links_ == nullptr) return std::nullopt;
  std::optional<Instant> wake = exchange_.next_wakeup();
  const auto sooner = [&](Instant other) {
    if (!wake || other < *wake) wake = other;
  };
  if (delivery_ != nullptr) sooner(delivery_->next_wakeup());
  if (!missing_.empty()) sooner(next_say_);
  return wake;
}

std::vector<std::string> MemberSupply::take_remarks() {
  std::vector<std::string> remarks = std::exchange(remarks_, {});
  for (std::string& one : exchange_.take_remarks()) remarks.push_back(std::move(one));
  if (delivery_ != nullptr) {
    for (std::string& one : delivery_->take_remarks()) remarks.push_back(std::move(one));
  }
  return remarks;
}

}  // namespace gossamer::node
