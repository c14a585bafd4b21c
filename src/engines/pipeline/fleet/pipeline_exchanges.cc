// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/pipeline_exchanges.h"

#include <utility>

#include "base/check.h"
#include "engines/pipeline/fleet/step_message.h"
#include "net/link/channels.h"

namespace gossamer::pipeline {
namespace {

// Parts of a sum are cut at multiples of so many numbers.
constexpr std::uint64_t kSumMultiple = 64;

cluster::Collectives::Options exchange_options(net::PeerId self, std::uint32_t channel,
                                               std::function<bool(net::PeerId)> gone) {
  return {.self = self,
          .channel = channel,
          .follows = [](cluster::OperationId earlier, cluster::OperationId later) { return earlier < later; },
          .formed = cluster::SumsFormed::kAside,
          .gone = std::move(gone)};
}

}  // namespace

PipelineExchanges::PipelineExchanges(net::PeerId self, std::function<bool(net::PeerId)> gone)
    : self_(self),
      sums_(exchange_options(self, net::kPipelineSums, gone)),
      records_(exchange_options(self, net::kPipelineRecords, gone)) {}

bool PipelineExchanges::install(const cluster::View& view, Epoch epoch, const Stages& stages) {
  stop();
  peers_.clear();
  members_.clear();
  const std::uint32_t own = stages.at(self_.node);
  for (const auto& [node, stage] : stages) {
    const auto record = view.members().find(node);
    if (record == view.members().end()) return false;
    members_.push_back(cluster::peer_of(record->second));
    if (stage == own) peers_.push_back(members_.back());
  }
  cluster::CollectiveEvents nobody_asks;
  sums_.install({.epoch = epoch, .members = peers_}, {}, nobody_asks);
  records_.install({.epoch = epoch, .members = members_}, {}, nobody_asks);
  return true;
}

void PipelineExchanges::stop() {
  cluster::CollectiveEvents nobody_asks;
  sums_.lost(self_, nobody_asks);
  records_.lost(self_, nobody_asks);
}

void PipelineExchanges::lost(net::PeerId peer, Events& out) {
  cluster::CollectiveEvents events;
  sums_.lost(peer, events);
  translate(true, std::exchange(events, {}), out);
  records_.lost(peer, events);
  translate(false, std::move(events), out);
}

void PipelineExchanges::sum(const Attempt& attempt, std::uint64_t numbers, cluster::SumNumbers type,
                            Slices contribution, Events& out) {
  CHECK(!sums_alone());
  cluster::CollectiveEvents events;
  sums_.begin(number_of(attempt),
              {.kind = cluster::OperationKind::kAllReduce,
               .parts = cluster::equal_parts(numbers, peers_.size(), kSumMultiple),
               .numbers = type},
              std::move(contribution), events);
  translate(true, std::move(events), out);
}

void PipelineExchanges::gather(const Attempt& attempt, Slice record, Events& out) {
  cluster::CollectiveEvents events;
  records_.begin(number_of(attempt),
                 {.kind = cluster::OperationKind::kAllGather,
                  .parts = std::vector<std::uint64_t>(members_.size(), record.size())},
                 {std::move(record)}, events);
  translate(false, std::move(events), out);
}

void PipelineExchanges::on(const net::Arrived& event, Events& out) {
  const bool of_sums = event.message.channel == net::kPipelineSums;
  cluster::CollectiveEvents events;
  (of_sums ? sums_ : records_).on(event.from, event.message, events);
  translate(of_sums, std::move(events), out);
}

void PipelineExchanges::translate(bool of_sums, cluster::CollectiveEvents events, Events& out) {
  for (cluster::CollectiveEvent& event : events) {
    if (auto* const send = std::get_if<cluster::Send>(&event)) {
      const host::Lane lane = of_sums ? host::Lane::kBulk : host::Lane::kControl;
      out.emplace_back(Send{.to = send->to, .lane = lane, .message = std::move(send->message)});
    } else if (auto* const broken = std::get_if<cluster::RuleBroken>(&event)) {
      out.emplace_back(Broken{.peer = broken->peer, .error = std::move(broken->error)});
    } else if (std::holds_alternative<cluster::Failed>(event)) {
      out.emplace_back(Failed{});
    } else if (auto& done = std::get<cluster::Completed>(event); of_sums) {
      out.emplace_back(Summed{.id = done.id, .sum = std::move(done.result.front())});
    } else {
      Gathered all{.id = done.id, .records = {}};
      for (std::size_t rank = 0; rank < members_.size(); ++rank)
        all.records[members_[rank].node] = std::move(done.result[rank]);
      out.emplace_back(std::move(all));
    }
  }
}

cluster::Engine::Work PipelineExchanges::take_side_work() {
  auto work = sums_.take_work();
  if (work) return work;
  return {};
}

void PipelineExchanges::side_worked(Events& out) {
  cluster::CollectiveEvents events;
  sums_.worked(events);
  translate(true, std::move(events), out);
}

std::optional<cluster::Awaited> PipelineExchanges::awaits() const {
  auto missing = sums_.missing();
  if (!missing) missing = records_.missing();
  if (!missing) return std::nullopt;
  cluster::Awaited awaited{.exchange = missing->id.value, .messages = missing->chunks};
  for (const net::PeerId peer : missing->members) awaited.nodes.insert(peer.node);
  return awaited;
}

}  // namespace gossamer::pipeline
