// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/silent_times.h"

#include <algorithm>

namespace gossamer::cluster {

bool SilentTimes::ends(Incarnation one) {
  before_.erase(one);
  return rows_.erase(one) != 0;
}

bool SilentTimes::lasts(Incarnation one, Duration in_this_lead) {
  const auto before = before_.find(one);
  const Duration all = before == before_.end() ? in_this_lead : before->second + in_this_lead;
  const Duration whole{all.ns / kStep.ns * kStep.ns};
  const auto row = rows_.find(one);
  if (whole <= (row == rows_.end() ? Duration{} : row->second)) return false;
  rows_[one] = whole;
  return true;
}

Duration SilentTimes::left_of(Duration patience, Incarnation one) const {
  const auto before = before_.find(one);
  if (before == before_.end()) return patience;
  const Duration least = before->second.ns >= 2 * patience.ns ? kLeastAtLast : kLeastLeft;
  return std::max(patience - before->second, std::min(patience, least));
}

}  // namespace gossamer::cluster
