// SPDX-License-Identifier: Apache-2.0
//
// Which of the steps that members report cannot be true beside those of the others. Members that hold things
// apply a step only when all of them have begun it, and they begin it after the one before. So they are a
// step apart at most.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "base/ids.h"

namespace gossamer::engine {

// The members that are not together with the middle one. If some are a step before it and some a step behind
// it, the fewer of the two are not, either. Among two the one that is ahead is not believed: it took part in
// no step that the other has begun.
[[nodiscard]] std::set<NodeId> not_together(const std::map<NodeId, std::uint64_t>& applied);

}  // namespace gossamer::engine
