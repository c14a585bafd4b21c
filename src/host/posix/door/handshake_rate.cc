// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/handshake_rate.h"

#include <algorithm>

namespace gossamer::host {
namespace {

constexpr Duration kSweepEvery{1'000'000'000};

double filled(double left, Duration since) {
  return std::min(HandshakeRate::kBurst, left + HandshakeRate::kEachSecond * since.seconds());
}

}  // namespace

HandshakeRate::Host& HandshakeRate::find(const PeerAddress& host, Instant now) {
  Host& one = hosts_.try_emplace(host, Host{.at = now}).first->second;
  one.left = filled(one.left, now - one.at);
  one.at = now;
  return one;
}

// Hosts whose store is full again are as good as unknown.
void HandshakeRate::forget_idle(Instant now) {
  if (now - swept_ < kSweepEvery) return;
  swept_ = now;
  std::erase_if(hosts_, [now](const auto& one) {
    return one.second.waiting.empty() && filled(one.second.left, now - one.second.at) >= kBurst;
  });
}

bool HandshakeRate::take(const PeerAddress& host, Instant now) {
  forget_idle(now);
  Host& one = find(host, now);
  if (one.left < 1) return false;
  one.left -= 1;
  return true;
}

void HandshakeRate::give_back(const PeerAddress& host, Instant now) {
  if (!hosts_.contains(host)) return;  // it is full
  Host& one = find(host, now);
  one.left = std::min(kBurst, one.left + 1);
}

void HandshakeRate::wait(const PeerAddress& host, GuestId guest) {
  hosts_[host].waiting.insert(guest);
  waiting_.insert(host);
}

void HandshakeRate::forget(const PeerAddress& host, GuestId guest) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end() || found->second.waiting.erase(guest) == 0) return;
  if (found->second.waiting.empty()) waiting_.erase(host);
}

std::optional<GuestId> HandshakeRate::next(Instant now) {
  for (const PeerAddress& host : waiting_) {
    Host& one = find(host, now);
    if (one.left < 1) continue;
    one.left -= 1;
    const GuestId guest = *one.waiting.rbegin();
    forget(PeerAddress(host), guest);
    return guest;
  }
  return std::nullopt;
}

std::optional<Instant> HandshakeRate::next_turn() const {
  std::optional<Instant> next;
  for (const PeerAddress& host : waiting_) {
    const Host& one = hosts_.at(host);
    next = sooner(next, one.at + from_seconds(std::max(1 - one.left, 0.0) / kEachSecond));
  }
  return next;
}

}  // namespace gossamer::host
