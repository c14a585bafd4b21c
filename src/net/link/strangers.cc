// SPDX-License-Identifier: Apache-2.0
#include "net/link/strangers.h"

#include "base/check.h"

namespace gossamer::net {
namespace {

using Counts = std::map<std::string, std::size_t>;

std::size_t count(const Counts& counts, const std::string& whose) {
  const auto found = counts.find(whose);
  return found == counts.end() ? 0 : found->second;
}

void add_one(Counts& counts, const std::string& whose) {
  if (!whose.empty()) ++counts[whose];
}

void remove_one(Counts& counts, const std::string& whose) {
  const auto found = counts.find(whose);
  if (found != counts.end() && --found->second == 0) counts.erase(found);
}

}  // namespace

bool Strangers::has_room(const Origin& origin) const {
  return all_.size() < limits_.in_all && count(of_host_, origin.host) < limits_.of_host &&
         count(of_certificate_, origin.certificate) < limits_.of_certificate;
}

void Strangers::add(host::ConnectionId id, Origin origin, Instant deadline) {
  add_one(of_host_, origin.host);
  add_one(of_certificate_, origin.certificate);
  by_deadline_.insert({deadline, id});
  CHECK(all_.insert({id, {std::move(origin), deadline}}).second, id.value);
}

void Strangers::remove(host::ConnectionId id) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  remove_one(of_host_, found->second.origin.host);
  remove_one(of_certificate_, found->second.origin.certificate);
  by_deadline_.erase({found->second.deadline, id});
  all_.erase(found);
}

std::optional<std::pair<Instant, host::ConnectionId>> Strangers::next() const {
  if (by_deadline_.empty()) return std::nullopt;
  return *by_deadline_.begin();
}

}  // namespace gossamer::net
