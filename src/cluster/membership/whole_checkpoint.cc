// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/whole_checkpoint.h"

#include <algorithm>
#include <utility>

namespace gossamer::cluster {
namespace {

using Has = std::map<NodeId, std::set<std::uint64_t>>;

// Who has what of the checkpoints before each step of one lineage.
std::map<StepNumber, Has> kept_of(std::uint64_t lineage,
                                  const std::map<NodeId, std::vector<KeptParts>>& all) {
  std::map<StepNumber, Has> steps;
  for (const auto& [node, kept] : all) {
    for (const KeptParts& one : kept) {
      if (one.lineage == lineage && !one.parts.empty())
        steps[one.step][node] = {one.parts.begin(), one.parts.end()};
    }
  }
  return steps;
}

bool is_whole(const Has& has, std::uint64_t parts) {
  std::set<std::uint64_t> together;
  for (const auto& [node, some] : has) together.insert(some.begin(), some.end());
  return together.size() == parts;
}

}  // namespace

bool can_be_kept(std::span<const KeptParts> kept, std::uint64_t parts) {
  const auto is_one = [parts](const KeptParts& one) {
    const bool rises =
        std::ranges::adjacent_find(one.parts, [](auto a, auto b) { return a >= b; }) == one.parts.end();
    return rises && (one.parts.empty() || one.parts.back() < parts);
  };
  return kept.size() <= kMostKept && std::ranges::all_of(kept, is_one);
}

std::optional<WholeCheckpoint> newest_whole(std::optional<WholeCheckpoint> last,
                                            const std::map<NodeId, std::vector<KeptParts>>& kept,
                                            std::uint64_t lineage, std::uint64_t parts) {
  std::optional<WholeCheckpoint> newest = std::move(last);
  if (newest) {
    // A member that rests knows best what it has. What others had may still be on their disks.
    for (const auto& [node, some] : kept) newest->has.erase(node);
    newest->has.merge(kept_of(newest->lineage, kept)[newest->step]);
  }
  for (auto& [step, has] : kept_of(lineage, kept)) {
    const bool later = !newest || newest->lineage != lineage || newest->step < step;
    if (later && is_whole(has, parts)) newest = {.lineage = lineage, .step = step, .has = std::move(has)};
  }
  return newest;
}

}  // namespace gossamer::cluster
