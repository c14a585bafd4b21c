// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "base/digest.h"
#include "engines/pipeline/step/majority.h"

namespace gossamer::pipeline {
namespace {

using Row = RecordsFit::Row;

struct OfStage {
  std::size_t members = 0;
  std::size_t records = 0;
  std::uint64_t tokens = 0;
};

// Whether each stage has added the tokens of the step, as far as that is known.
bool tokens_fit(const Records& records, const Stages& stages, std::uint64_t tokens) {
  std::map<std::uint32_t, OfStage> all;
  for (const auto& [node, stage] : stages) {
    OfStage& one = all[stage];
    ++one.members;
    const auto found = records.find(node);
    if (found == records.end()) continue;
    ++one.records;
    // A liar could let a sum go around: what is too large by itself is wrong.
    if (found->second.tokens > tokens) return false;
    one.tokens += found->second.tokens;
  }
  return std::ranges::all_of(all, [&](const auto& entry) {
    const OfStage& one = entry.second;
    return one.records == one.members ? one.tokens == tokens : one.tokens <= tokens;
  });
}

bool all_finite(const Records& records, const Stages& stages) {
  const auto finite = [](const auto& entry) {
    const StepRecord& one = entry.second;
    return std::isfinite(one.squared_norm) && one.squared_norm >= 0 && std::isfinite(one.loss) &&
           one.not_finite == 0;
  };
  return std::ranges::all_of(records, finite) && std::isfinite(total_norm(records, stages));
}

// Those that differ from the peers of their stage, or from all in what they have seen of the step before.
Differing unlike(const Records& records, const Stages& stages) {
  using OfSum = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  std::map<std::uint32_t, std::map<NodeId, OfSum>> sums;
  std::map<NodeId, std::uint64_t> before;
  for (const auto& [node, record] : records) {
    const OfSum sum(record.hash, std::bit_cast<std::uint64_t>(record.squared_norm), record.root);
    sums[stages.at(node)].emplace(node, sum);
    before.emplace(node, record.records_before);
  }
  Differing found = differing(before);
  for (const auto& [stage, words] : sums) found.add(differing(words));
  return found;
}

}  // namespace

std::uint64_t hash_of(const Records& records) {
  Digest digest;
  const auto add = [&](std::uint64_t number) {
    std::array<std::byte, 8> bytes;
    for (std::byte& one : bytes) {
      one = static_cast<std::byte>(number & 0xffU);
      number >>= 8U;
    }
    digest.add(bytes);
  };
  for (const auto& [node, record] : records) {
    add(node.value);
    std::apply([&](auto... fields) { (add(fields), ...); }, record.bits());
  }
  return std::max<std::uint64_t>(1, digest.value());
}

std::uint8_t wishes_of(const Records& records) {
  unsigned wishes = 0;
  for (const auto& [node, record] : records) wishes |= record.wishes;
  return static_cast<std::uint8_t>(wishes);
}

double total_norm(const Records& records, const Stages& stages) {
  std::map<std::uint32_t, double> norms;
  for (const auto& [node, record] : records) norms.try_emplace(stages.at(node), record.squared_norm);
  double total = 0;
  for (const auto& [stage, norm] : norms) total += norm;
  return total;
}

RecordsFit look_at(const Records& records, const Stages& stages, std::optional<std::uint64_t> tokens) {
  Differing found = unlike(records, stages);
  if (!found.from_most.empty()) return {.row = Row::kDiffer, .named = std::move(found.from_most)};
  if (!found.disputed.empty()) return {.row = Row::kDispute, .named = std::move(found.disputed)};
  if (tokens && !tokens_fit(records, stages, *tokens)) return {.row = Row::kTokens};
  if (!all_finite(records, stages)) return {.row = Row::kNotFinite};
  return {};
}

}  // namespace gossamer::pipeline
