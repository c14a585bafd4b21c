// SPDX-License-Identifier: Apache-2.0
//
// Two members of a view of three, and strangers, send the third what the input chooses. It does not crash. A
// peer that is named for breaking a rule has spoken. Each operation ends at most once, and certainly when
// another view comes. The bytes that it holds for others stay within its limits.
#include <gossamer/collective.pb.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "cluster/collective/collectives.h"

namespace {

using namespace gossamer;
using namespace gossamer::cluster;
using fuzz::Choices;

constexpr CollectiveLimits kLimits{.chunk_bytes = 16,
                                   .least_chunk_bytes = 16,
                                   .waiting_bytes = 192,
                                   .most_window = 4,
                                   .direct_extra_bytes = 64,
                                   .early_bytes = 4096,
                                   .all_early_bytes = 6000};
constexpr std::size_t kRanks = 3;
constexpr std::size_t kPeers = 5;  // the third member and later ones are in no view
constexpr std::size_t kMostSteps = 300;

net::PeerId peer(std::size_t number) { return {NodeId(10 + number), Incarnation(100 + number)}; }

class Bench {
 public:
  explicit Bench(Choices& choices) : choices_(choices) {
    me_ = choices_.below(kRanks);
    self_.emplace(Collectives::Options{.self = peer(me_), .channel = 7, .limits = kLimits});
  }

  void step() {
    switch (choices_.below(10)) {
      case 0: return install();
      case 1: return begin();
      case 2:
        if (choices_.below(4) == 0) self_->lost(peer(choices_.below(kPeers)), out_);
        return hear({});
      default: return arrive();
    }
  }
  void install() {
    epoch_ += 1 + choices_.below(2);
    ExchangeView view{.epoch = Epoch(epoch_), .members = {}};
    for (std::size_t rank = 0; rank < kRanks; ++rank) view.members.push_back(peer(rank));
    self_->install(std::move(view), {}, out_);
    hear({});
    CHECK(running_.empty());
    used_.clear();
  }

 private:
  void begin() {
    const OperationId id(choices_.below(6));
    if (epoch_ == 0 || !used_.insert(id).second) return;
    const auto kind = static_cast<OperationKind>(choices_.below(3));
    Operation operation{.kind = kind, .parts = {}};
    std::uint64_t whole = 0;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      operation.parts.push_back(choices_.below(40));
      whole += operation.parts.back();
    }
    const bool gathers = kind == OperationKind::kAllGather;
    const std::uint64_t bytes = gathers ? operation.parts[me_] : whole * sizeof(float);
    running_.insert(id);
    self_->begin(id, operation, {Slice::of(std::string(bytes, 'x'))}, out_);
    hear({});
  }
  void arrive() {
    std::size_t from = choices_.below(kPeers);
    if (from == me_) from = kPeers - 1;
    said_.insert(peer(from));
    net::Message message{.channel = 7, .body = choices_.text(), .payload = {}};
    if (choices_.below(8) != 0) {
      wire::Collective body;
      body.set_view(choices_.below(8) == 0 ? choices_.number() : epoch_);
      body.set_id(choices_.below(8) == 0 ? choices_.number() : choices_.below(6));
      body.set_operation(static_cast<wire::Collective::Operation>(choices_.below(5)));
      body.set_kind(static_cast<wire::Collective::Kind>(choices_.below(5)));
      body.set_number(choices_.number());
      message.body = body.SerializeAsString();
    }
    // In pieces, as a network may cut them.
    std::size_t bytes = choices_.flip() ? kLimits.chunk_bytes : choices_.below(64);
    while (bytes > 0) {
      const std::size_t piece = 1 + choices_.below(bytes);
      message.payload.push_back(Slice::of(std::string(piece, 'y')));
      bytes -= piece;
    }
    self_->on(peer(from), std::move(message), out_);
    hear(peer(from));
  }
  void hear(std::optional<net::PeerId> from) {
    for (const CollectiveEvent& event : std::exchange(out_, {})) {
      if (const auto* const done = std::get_if<Completed>(&event)) CHECK(running_.erase(done->id) == 1);
      if (const auto* const failed = std::get_if<Failed>(&event)) CHECK(running_.erase(failed->id) == 1);
      if (const auto* const broke = std::get_if<RuleBroken>(&event)) {
        CHECK(said_.contains(broke->peer));
        CHECK(broke->error.where == "node-" + std::to_string(broke->peer.node.value));
        CHECK(!from || *from == broke->peer);
      }
      if (const auto* const much = std::get_if<TooMuchKept>(&event)) CHECK(said_.contains(much->peer));
      if (const auto* const send = std::get_if<Send>(&event)) CHECK(send->to != peer(me_));
    }
    CHECK(self_->held_bytes() <= kLimits.all_early_bytes + self_->under_way() * kLimits.waiting_bytes);
  }

  Choices& choices_;
  std::size_t me_ = 0;
  std::optional<Collectives> self_;
  CollectiveEvents out_;
  std::uint64_t epoch_ = 0;
  std::set<OperationId> used_;
  std::set<OperationId> running_;
  std::set<net::PeerId> said_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  Bench bench(choices);
  for (std::size_t i = 0; choices.left() && i < kMostSteps; ++i) bench.step();
  bench.install();
  return 0;
}
