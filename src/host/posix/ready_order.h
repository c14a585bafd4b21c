// SPDX-License-Identifier: Apache-2.0
//
// The order of events that are ready together. A Network promises an order within each connection and none
// among connections (host/api/network.h). Threads and sockets mostly keep the same order, and code would come
// to depend on it. So sanitized builds draw the order, as the simulator does in every build
// (host/sim/timeline.h).
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "base/rng.h"
#include "host/api/network.h"

namespace gossamer::host {

enum class ReadyOrder { kArrival, kDrawn };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr ReadyOrder kReadyOrder = ReadyOrder::kDrawn;
#else
inline constexpr ReadyOrder kReadyOrder = ReadyOrder::kArrival;
#endif

// Events of one source keep their order.
using EventSource = std::pair<std::uint64_t, std::uint64_t>;

// Each connection is a source, and so is each question.
[[nodiscard]] inline EventSource source_of(const NetworkEvent& event) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.connection; })
          return EventSource{1, one.connection.value};
        else
          return EventSource{2, one.question.value};
      },
      event);
}

// The batch in an order drawn from all orders that keep each source's own; source_of(item) names the source.
template <class Item, class SourceOf>
[[nodiscard]] std::vector<Item> in_drawn_order(std::vector<Item> batch, Rng& rng, SourceOf&& source_of) {
  std::map<EventSource, std::deque<std::size_t>> waiting;
  std::vector<EventSource> turns;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    turns.push_back(source_of(batch[i]));
    waiting[turns.back()].push_back(i);
  }
  for (std::size_t i = turns.size(); i > 1; --i) std::swap(turns[i - 1], turns[rng.below(i)]);
  std::vector<Item> ordered;
  ordered.reserve(batch.size());
  for (const EventSource& source : turns) {
    ordered.push_back(std::move(batch[waiting[source].front()]));
    waiting[source].pop_front();
  }
  return ordered;
}

}  // namespace gossamer::host
