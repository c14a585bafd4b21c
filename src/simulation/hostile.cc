// SPDX-License-Identifier: Apache-2.0
#include "simulation/hostile.h"

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <limits>
#include <string>

#include "cluster/control/control_message.h"
#include "cluster/membership/request_budget.h"
#include "cluster/membership/word_budget.h"

namespace gossamer::simulation {
namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMany = std::size_t{1} << 16;

net::Message bytes(std::string body, std::string payload) {
  net::Message message{.channel = cluster::kControlChannel, .body = std::move(body), .payload = {}};
  if (!payload.empty()) message.payload.push_back(Slice::of(std::move(payload)));
  return message;
}

membership::ToCoordinator lease(std::uint64_t begin, std::uint64_t end, std::int64_t duration_ns) {
  membership::ToCoordinator said;
  membership::LeaseAsk& ask = *said.mutable_lease();
  ask.set_number(kHuge);
  ask.mutable_keys()->set_space(7);
  ask.mutable_keys()->set_begin(begin);
  ask.mutable_keys()->set_end(end);
  ask.set_duration_ns(duration_ns);
  return said;
}

membership::ToCoordinator mark(std::uint64_t track, std::uint64_t next) {
  membership::ToCoordinator said;
  membership::Progress& progress = *said.mutable_beat()->add_progress();
  progress.set_track(track);
  progress.set_next(next);
  return said;
}

}  // namespace

net::Message nonsense(Rng& rng) {
  using cluster::pack;
  switch (rng.below(8)) {
    case 0: return bytes(std::string(1 + rng.below(40), '\xff'), {});
    case 1: return bytes({}, {});  // a message of no kind
    case 2: return bytes(membership::ToCoordinator().SerializeAsString(), "a body is not there twice");
    case 3: return bytes({}, std::string(kMany << rng.below(6), '\xff'));
    case 4: return pack(lease(5, 5, 1'000'000'000));
    case 5: return pack(lease(5, 6, -1));
    case 6: return pack(mark(0, kHuge));
    default: return pack(mark(kHuge, 1));
  }
}

std::vector<net::Message> too_many() {
  membership::ToCoordinator said;
  said.mutable_commit()->set_number(kHuge);
  said.mutable_commit()->set_track(kHuge);
  constexpr double kAsks = cluster::RequestBudget::kAtOnce + cluster::RequestBudget::kPerSecond;
  return {static_cast<std::size_t>(kAsks), cluster::pack(said)};
}

std::vector<net::Message> too_many_beats() {
  membership::ToCoordinator said;
  said.mutable_beat()->set_sent_ns(1);
  constexpr double kBeats = cluster::WordBudget::kAtOnce + cluster::WordBudget::kPerSecond;
  return {static_cast<std::size_t>(kBeats), cluster::pack(said)};
}

Slices much(std::uint64_t bytes) {
  static constexpr std::uint64_t kOne = std::uint64_t{1} << 20;
  const Slice one = Slice::of(std::string(kOne, 'x'));
  return Slices(bytes / kOne, one);
}

net::Message oddity(Rng& rng) {
  membership::ToCoordinator said;
  switch (rng.below(5)) {
    case 0: {
      membership::ClaimAsk& ask = *said.mutable_claim();
      ask.set_number(rng.next_u64());
      ask.set_step(kHuge);
      ask.set_begin(kHuge - 1);
      ask.set_end(kHuge);
      break;
    }
    case 1:
      said.mutable_commit()->set_number(rng.next_u64());
      said.mutable_commit()->set_track(kHuge);
      break;
    case 2: said.mutable_here()->set_epoch(kHuge); break;
    case 3:
      said.mutable_beat()->set_speed(std::numeric_limits<double>::quiet_NaN());
      said.mutable_beat()->set_own_work(-std::numeric_limits<double>::infinity());
      for (std::size_t i = 0; i < kMany; ++i) said.mutable_beat()->add_unreachable(1000 + i);
      break;
    default:
      said.mutable_frozen()->set_epoch(kHuge);
      said.mutable_frozen()->set_report(std::string(kMany, 'x'));
      for (std::size_t i = 0; i < kMany; ++i) said.mutable_frozen()->add_copies(i);
  }
  return cluster::pack(said);
}

}  // namespace gossamer::simulation
