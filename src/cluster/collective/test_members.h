// SPDX-License-Identifier: Apache-2.0
//
// Members of a view joined by queues, for tests. Events come in any order that links allow, and each member
// records how its operations ended. Thread rule: the test's thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "cluster/collective/collectives.h"

namespace gossamer::cluster {

inline net::PeerId peer_of(std::size_t rank) { return {NodeId{10 + rank}, Incarnation{100 + 7 * rank}}; }

inline ExchangeView view_of(std::size_t ranks, std::uint64_t epoch = 5) {
  ExchangeView view{.epoch = Epoch(epoch), .members = {}};
  for (std::size_t rank = 0; rank < ranks; ++rank) view.members.push_back(peer_of(rank));
  return view;
}

// Limits with chunks of four elements and windows of two to four, so that small tensors test what would
// otherwise take gigabytes.
inline CollectiveLimits small_limits() {
  return {.chunk_bytes = 16,
          .least_chunk_bytes = 16,
          .waiting_bytes = 192,
          .most_window = 4,
          .direct_extra_bytes = 64,
          .early_bytes = 1 << 20};
}

// Every second seed has its sums formed elsewhere.
inline SumsFormed formed_at(std::uint64_t seed) {
  return seed % 2 == 0 ? SumsFormed::kAtOnce : SumsFormed::kAside;
}

// An operation with everybody's input and the results that each must get, formed on one machine. In an
// all-to-all rank i gives rank j parts[(i + j) % n] bytes.
struct Job {
  [[nodiscard]] Operation operation_of(std::size_t rank) const {
    if (operation.kind != OperationKind::kAllToAll) return operation;
    Operation own = operation;
    const std::size_t ranks = operation.parts.size();
    for (std::size_t other = 0; other < ranks; ++other)
      own.parts[other] = operation.parts[(rank + other) % ranks];
    own.from = own.parts;  // the sizes are symmetric
    return own;
  }

  Operation operation;
  std::vector<std::string> inputs;                 // by rank
  std::vector<std::vector<std::string>> expected;  // by rank: result by part
};

// Floats of magnitudes from about 1e-3 to 1e3, so that another order of summation shows.
inline std::string random_floats(std::uint64_t count, Rng& rng) {
  std::string bytes(count * sizeof(float), '\0');
  for (std::uint64_t i = 0; i < count; ++i) {
    float x = rng.normal();
    for (std::uint64_t power = rng.below(7); power > 0; --power) x *= 10;
    x *= 1e-3F;
    std::memcpy(bytes.data() + i * sizeof(float), &x, sizeof(float));
  }
  return bytes;
}

inline std::string sum_by_rank(const std::vector<std::string>& inputs) {
  std::string sum = inputs[0];
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    for (std::size_t at = 0; at < sum.size(); at += sizeof(float)) {
      float a = 0;
      float b = 0;
      std::memcpy(&a, sum.data() + at, sizeof(float));
      std::memcpy(&b, inputs[rank].data() + at, sizeof(float));
      a += b;
      std::memcpy(sum.data() + at, &a, sizeof(float));
    }
  }
  return sum;
}

// Fills each rank's input and expected parts.
inline void fill_all_to_all(Job& job, Rng& rng) {
  const std::size_t ranks = job.operation.parts.size();
  job.inputs.resize(ranks);
  job.expected.assign(ranks, std::vector<std::string>(ranks));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Operation own = job.operation_of(rank);
    for (std::size_t to = 0; to < ranks; ++to) {
      std::string& bytes = job.expected[to][rank] = std::string(own.parts[to], '\0');
      for (char& c : bytes) c = static_cast<char>(rng.below(256));
      job.inputs[rank] += bytes;
    }
  }
}

inline Job make_job(OperationKind kind, std::vector<std::uint64_t> parts, Rng& rng) {
  Job job{.operation = {.kind = kind, .parts = parts}, .inputs = {}, .expected = {}};
  if (kind == OperationKind::kAllToAll) {
    fill_all_to_all(job, rng);
    return job;
  }
  const std::uint64_t whole = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
  for (const std::uint64_t part : parts) {
    if (kind != OperationKind::kAllGather) {
      job.inputs.push_back(random_floats(whole, rng));
      continue;
    }
    std::string& bytes = job.inputs.emplace_back(part, '\0');
    for (char& c : bytes) c = static_cast<char>(rng.below(256));
  }
  std::uint64_t at = 0;
  for (const std::uint64_t part : parts) {
    if (kind == OperationKind::kAllGather) job.expected.push_back(job.inputs);
    if (kind == OperationKind::kAllReduce) job.expected.push_back({sum_by_rank(job.inputs)});
    if (kind == OperationKind::kReduceScatter) {
      job.expected.push_back({sum_by_rank(job.inputs).substr(at * sizeof(float), part * sizeof(float))});
      at += part;
    }
  }
  return job;
}

// The same bytes in pieces cut anywhere, as a network may do.
inline Slices cut_anew(const Slices& payload, Rng& rng) {
  SliceReader reader(payload);
  Slices cut;
  while (reader.left() > 0) {
    for (Slice& slice : reader.take(1 + rng.below(reader.left())))
      cut.push_back(Slice::copy_of(slice.bytes()));
  }
  return cut;
}

// How an operation ended at a member.
struct Outcome {
  int times = 0;
  bool completed = false;
  std::vector<std::string> result;
  std::optional<net::PeerId> lost;
};

// Counts of what a member has sent.
struct Sent {
  std::uint64_t payload = 0;
  std::map<int, std::uint64_t> messages;  // by kind
};

class Members {
 public:
  Members(std::size_t ranks, std::uint64_t seed, const CollectiveLimits& limits = small_limits(),
          const std::function<bool(OperationId, OperationId)>& follows = {},
          SumsFormed formed = SumsFormed::kAtOnce)
      : rng_(seed, Purpose::kTest, 1),
        queues_(ranks, std::vector<std::deque<net::Message>>(ranks)),
        works_(ranks),
        sent(ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      members_.push_back(std::make_unique<Collectives>(Collectives::Options{
          .self = peer_of(rank), .channel = 3, .limits = limits, .follows = follows, .formed = formed}));
    }
    outcomes.resize(ranks);
  }

  void install(const ExchangeView& view) {
    for (std::size_t rank = 0; rank < members_.size(); ++rank) install(rank, view);
  }
  void install(std::size_t rank, const ExchangeView& view, const std::vector<net::PeerId>& lost = {}) {
    act(rank, [&](CollectiveEvents& out) { members_[rank]->install(view, lost, out); });
  }
  void begin(std::size_t rank, std::uint64_t id, const Job& job) {
    act(rank, [&](CollectiveEvents& out) {
      const Operation operation = job.operation_of(rank);
      Slices input = {Slice::of(job.inputs[rank])};
      const bool sums =
          operation.kind == OperationKind::kReduceScatter || operation.kind == OperationKind::kAllReduce;
      if (sums && operation.parts.size() > 1) input = as_sent(operation.numbers, std::move(input));
      members_[rank]->begin(OperationId(id), operation, cut_anew(input, rng_), out);
    });
  }
  void on(std::size_t rank, net::PeerId from, net::Message message) {
    act(rank, [&](CollectiveEvents& out) { members_[rank]->on(from, std::move(message), out); });
  }
  void lost(std::size_t rank, std::size_t gone) {
    act(rank, [&](CollectiveEvents& out) { members_[rank]->lost(peer_of(gone), out); });
  }

  // Pairs (from, to) with a message under way, the lowest first.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> under_way() const {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t from = 0; from < queues_.size(); ++from) {
      for (std::size_t to = 0; to < queues_.size(); ++to) {
        if (!queues_[from][to].empty()) pairs.emplace_back(from, to);
      }
    }
    return pairs;
  }
  void deliver(std::pair<std::size_t, std::size_t> pair) {
    auto& queue = queues_[pair.first][pair.second];
    net::Message message = std::move(queue.front());
    queue.pop_front();
    message.payload = cut_anew(message.payload, rng_);
    on(pair.second, peer_of(pair.first), std::move(message));
  }
  // Members whose work is not done, the lowest first.
  [[nodiscard]] std::vector<std::size_t> at_work() const {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < works_.size(); ++rank) {
      if (works_[rank]) ranks.push_back(rank);
    }
    return ranks;
  }
  void work(std::size_t rank) {
    std::exchange(works_[rank], {})();
    act(rank, [&](CollectiveEvents& out) { members_[rank]->worked(out); });
  }
  bool deliver_any() {
    const auto pairs = under_way();
    const auto ranks = at_work();
    if (pairs.empty() && ranks.empty()) return false;
    const std::uint64_t which = rng_.below(pairs.size() + ranks.size());
    if (which < pairs.size()) {
      deliver(pairs[which]);
    } else {
      work(ranks[which - pairs.size()]);
    }
    return true;
  }
  void deliver_all() {
    while (deliver_any()) {
    }
  }
  // Stops a member. Messages under way from it and to it are gone.
  void kill(std::size_t gone) {
    for (std::size_t rank = 0; rank < queues_.size(); ++rank) {
      queues_[gone][rank].clear();
      queues_[rank][gone].clear();
    }
    works_[gone] = {};
    dead_ = gone;
  }

  [[nodiscard]] Collectives& at(std::size_t rank) { return *members_[rank]; }
  [[nodiscard]] std::size_t ranks() const { return members_.size(); }

 private:
  template <class Action>
  void act(std::size_t rank, const Action& action) {
    CollectiveEvents events;
    action(events);
    for (CollectiveEvent& event : events) {
      if (auto* const send = std::get_if<Send>(&event)) {
        note_sent(rank, send->message);
        const auto to = static_cast<std::size_t>(send->to.node.value - 10);
        CHECK(to < members_.size() && to != rank && peer_of(to) == send->to);
        if (dead_ != to) queues_[rank][to].push_back(std::move(send->message));
      } else if (auto* const completed = std::get_if<Completed>(&event)) {
        Outcome& outcome = outcomes[rank][completed->id.value];
        ++outcome.times;
        outcome.completed = true;
        for (const Slices& part : completed->result) outcome.result.push_back(joined(part));
      } else if (auto* const failed = std::get_if<Failed>(&event)) {
        Outcome& outcome = outcomes[rank][failed->id.value];
        ++outcome.times;
        outcome.lost = failed->lost;
      } else if (const auto* const much = std::get_if<TooMuchKept>(&event)) {
        kept_too_much.push_back(much->peer);
      } else {
        broken.push_back(std::move(std::get<RuleBroken>(event)));
      }
    }
    if (auto work = members_[rank]->take_work()) works_[rank] = std::move(work);
  }
  void note_sent(std::size_t rank, const net::Message& message) {
    wire::Collective body;
    CHECK(body.ParseFromString(message.body) && message.channel == 3);
    sent[rank].payload += total_bytes(message.payload);
    ++sent[rank].messages[body.kind()];
  }

  Rng rng_;
  std::vector<std::unique_ptr<Collectives>> members_;
  std::vector<std::vector<std::deque<net::Message>>> queues_;  // [from][to]
  std::vector<std::function<void()>> works_;                   // under way, by rank
  std::optional<std::size_t> dead_;

 public:
  std::vector<std::map<std::uint64_t, Outcome>> outcomes;  // by rank and operation
  std::vector<Sent> sent;                                  // by rank
  std::vector<RuleBroken> broken;
  std::vector<net::PeerId> kept_too_much;
};

}  // namespace gossamer::cluster
