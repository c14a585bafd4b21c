// SPDX-License-Identifier: Apache-2.0
#include "simulation/sparse/sparse_measuring.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/time.h"
#include "engines/sparse/predict/evaluation.h"
#include "engines/sparse/predict/row_search.h"

namespace gossamer::simulation {
namespace {

using sparse_engine::FleetQueries;
using sparse_engine::kEvaluationDepth;

constexpr Duration kMeasureEvery{10'000'000};

}  // namespace

SparseMeasuring::SparseMeasuring(const TinyProblem& problem, Fleet& fleet)
    : problem_(problem),
      fleet_(fleet),
      fusion_({}, sparse_engine::kNetAlone, sparse_engine::Fusion::Sources()) {}

void SparseMeasuring::on(const net::Arrived& arrived) {
  if (arrived.message.channel != sparse_engine::kQueryChannel) return;
  if (follow_lead()) {
    if (const auto good = queries_->on(arrived.from, arrived.message); !good.ok())
      blame(arrived.from, good.error());
  }
  if (!std::exchange(looking_, true)) fleet_.timeline().after(kMeasureEvery, [this] { look(); });
}

// As a coordinator's companion does, once the message is dealt with.
void SparseMeasuring::blame(net::PeerId peer, const Error& error) {
  fleet_.timeline().after(Duration(), [this, peer, error] {
    if (fleet_.leader() != nullptr) fleet_.leader()->blame(peer, error, fleet_.timeline().now());
  });
}

// Returns whether there is a lead, and forgets what was asked of another one. A lead that was paused knows
// its members still.
bool SparseMeasuring::follow_lead() {
  cluster::Coordinator* const leader = fleet_.leader();
  if (leader == nullptr) return false;
  if (leader->generation() == lead_) {
    tell_placement(*leader);
    return true;
  }
  lead_ = leader->generation();
  placed_ = Epoch();
  queries_.emplace(sparse_engine::ModelInParts{.shape = problem_.shape(), .order = problem_.order()});
  tell_placement(*leader);
  epoch_ = Epoch();
  begin_anew();
  return true;
}

void SparseMeasuring::tell_placement(const cluster::Coordinator& leader) {
  if (leader.installed() == placed_) return;
  placed_ = leader.installed();
  queries_->placed(placed_, leader.decision());
}

// Does what is due, as a loop does that is woken now and then.
void SparseMeasuring::look() {
  if (follow_lead()) {
    while (const auto work = queries_->take_work()) {
      work();
      queries_->worked();
    }
    if (auto answer = queries_->take_answer()) {
      CHECK(answer->ok(), answer->error().message());
      take(**answer);
    }
    if (queries_->epoch() != epoch_) begin_anew();
    for (FleetQueries::Sending& each : queries_->take_out())
      fleet_.send(each.to, each.lane, std::move(each.message));
  }
  fleet_.timeline().after(kMeasureEvery, [this] { look(); });
}

void SparseMeasuring::begin_anew() {
  told_.reset();
  ranks_.clear();
  next_ = 0;
  if (queries_->epoch() == Epoch()) return;
  epoch_ = queries_->epoch();
  ask();
}

void SparseMeasuring::ask() {
  const data::InMemoryDataset& records = problem_.test_records();
  std::vector<std::uint32_t> begin = {0};
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  const std::uint64_t end = std::min<std::uint64_t>(next_ + sparse_engine::kQueryBlock, records.size());
  for (std::uint64_t i = next_; i < end; ++i) {
    const data::SparseRow row = records.record(RecordIndex{i}).features;
    index.insert(index.end(), row.index.begin(), row.index.end());
    value.resize(index.size());
    text::FeatureWeighting().apply(row, std::span(value).subspan(begin.back()));
    begin.push_back(static_cast<std::uint32_t>(index.size()));
  }
  queries_->ask({.rows = {begin, index, value},
                 .labels = std::min<std::size_t>(kEvaluationDepth, problem_.shape().network.labels)});
}

void SparseMeasuring::take(const FleetQueries::Answer& answer) {
  std::vector<sparse_engine::Scored> best(kEvaluationDepth);
  for (const std::vector<sparse_engine::Scored>& list : answer.net) {
    best.resize(kEvaluationDepth);
    best.resize(fusion_.rank({.net = list}, kEvaluationDepth, best));
    for (const std::uint32_t label : problem_.test_records().record(RecordIndex{next_}).labels) {
      const auto at = std::ranges::find(best, label, &sparse_engine::Scored::id);
      ranks_.push_back(at == best.end() ? 0 : static_cast<std::uint32_t>(at - best.begin()) + 1);
    }
    ++next_;
  }
  if (next_ < problem_.test_records().size()) return ask();
  told_ = std::move(ranks_);
  ++ended_;
}

}  // namespace gossamer::simulation
