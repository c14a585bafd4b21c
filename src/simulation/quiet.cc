// SPDX-License-Identifier: Apache-2.0
#include "simulation/quiet.h"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::simulation {
namespace {

// Ten beats a second, on clocks that run slightly wrong; one more may have been under way.
constexpr double kBeatsPerSecond = 10;
constexpr double kClockError = 0.03;
// Members come back to a new lead one after another. It asks about those that have not come yet.
constexpr Duration kAllComeBack{10'000'000'000};

}  // namespace

std::optional<std::string> disturbance(const Calm& before, const Calm& after) {
  const double seconds = (after.at - before.at).seconds();
  const auto since = [](std::uint64_t was, std::uint64_t is) { return is - was; };
  const std::uint64_t leads = since(before.generation.value, after.generation.value);
  const bool just_led = before.at - before.led_since < kAllComeBack;
  const std::uint64_t new_leads = leads + (just_led ? 1 : 0);
  const std::uint64_t changes = since(before.epoch.value, after.epoch.value);
  const std::uint64_t rebalanced = since(before.rebalanced, after.rebalanced);
  if (changes > rebalanced)
    return fmt::format("the view changed {} times, {} of them for speed", changes, rebalanced);
  // Each lead fences the coordinator before it.
  if (after.fenced > before.fenced + leads) return "somebody was fenced";
  if (after.lives != before.lives) return fmt::format("{} members began", after.lives - before.lives);
  const auto members = static_cast<double>(std::max(before.members, after.members));
  const auto beats = static_cast<double>(since(before.traffic.beats, after.traffic.beats));
  const double most_beats = members * (seconds * kBeatsPerSecond * (1 + kClockError) + 2);
  if (beats > most_beats)
    return fmt::format("{} beats in {:.1f} s, at most {:.0f}", beats, seconds, most_beats);
  const auto seen = static_cast<double>(since(before.traffic.beats_seen, after.traffic.beats_seen));
  if (seen > beats) return fmt::format("{} answers to {} beats", seen, beats);
  const std::uint64_t requests = since(before.traffic.requests, after.traffic.requests);
  const std::uint64_t answers = since(before.traffic.answers, after.traffic.answers);
  // Some requests came before, and wait for the store, which may take more than a second. A step has a few
  // requests.
  if (answers > requests + 8 * after.members)
    return fmt::format("{} answers to {} requests", answers, requests);
  // A lossy line keeps a member silent for a second now and then, perhaps at this moment. All are asked about
  // it, and told that it is heard again. A new lead asks likewise about each member that has not come to it.
  const std::uint64_t silences = since(before.traffic.silences, after.traffic.silences);
  const std::uint64_t doubted = silences + 1 + new_leads * after.members;
  const std::uint64_t doubts = since(before.traffic.doubts, after.traffic.doubts);
  if (doubts > 2 * doubted * after.members) {
    return fmt::format("{} questions about silent members in {} silences, under {} new leads", doubts,
                       silences, new_leads);
  }
  // A change may have been under way before.
  const std::uint64_t others = since(before.traffic.others, after.traffic.others);
  const std::uint64_t most_others = after.members * (3 * (changes + 1) + 2 * new_leads);
  if (others > most_others)
    return fmt::format("{} messages beside beats and requests, at most {}", others, most_others);
  return std::nullopt;
}

}  // namespace gossamer::simulation
