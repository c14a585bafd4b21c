// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/evaluation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::array<std::size_t, 3> kCuts = {1, 3, 5};
constexpr std::array<std::size_t, 2> kRecallCuts = {10, 20};
constexpr std::array<std::size_t, 2> kHitCuts = {1, 10};
constexpr std::uint32_t kReciprocalCut = 20;

double discount(std::size_t rank) { return 1 / std::log2(static_cast<double>(rank) + 2); }  // 0-based

// The median: of an even number of ranks, the mean of the two middle ones. 0 stands for infinity.
double median(std::vector<std::uint32_t> ranks) {
  if (ranks.empty()) return 0;
  const auto value = [&ranks](std::size_t i) {
    const auto nth = ranks.begin() + static_cast<std::ptrdiff_t>(i);
    std::nth_element(ranks.begin(), nth, ranks.end(),
                     [](std::uint32_t a, std::uint32_t b) { return a - 1 < b - 1; });  // 0 is last
    return *nth == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(*nth);
  };
  return (value((ranks.size() - 1) / 2) + value(ranks.size() / 2)) / 2;
}

}  // namespace

std::vector<std::pair<std::string_view, double>> Metrics::named() const {
  std::vector<std::pair<std::string_view, double>> all = {
      {"P@1", precision[0]},    {"P@3", precision[1]},    {"P@5", precision[2]},
      {"nDCG@1", ndcg[0]},      {"nDCG@3", ndcg[1]},      {"nDCG@5", ndcg[2]},
      {"PSP@1", propensity[0]}, {"PSP@3", propensity[1]}, {"PSP@5", propensity[2]},
      {"recall@10", recall[0]}, {"recall@20", recall[1]}, {"MRR@20", reciprocal_rank},
      {"hit@1", hit[0]},        {"hit@10", hit[1]},       {"median_rank", median_rank}};
  if (retrieval) {
    all.emplace_back("retrieval@10", retrieval->at10);
    all.emplace_back("retrieval@100", retrieval->at100);
  }
  return all;
}

Evaluator::Evaluator(std::span<const std::uint32_t> label_count, std::uint64_t training_rows,
                     const PropensityOptions& options) {
  // Below e records the formula would turn negative. Then all labels weigh the same.
  const double log_rows = training_rows > 0 ? std::log(static_cast<double>(training_rows)) : 0;
  const double c = std::max(0.0, log_rows - 1) * std::pow(options.b + 1, options.a);
  const auto inverse = [&](double count) { return 1 + c * std::pow(count + options.b, -options.a); };
  seen_.reserve(label_count.size());
  for (const std::uint32_t count : label_count) seen_.push_back(count > 0);
  inverse_propensity_.reserve(label_count.size());
  for (const std::uint32_t count : label_count) inverse_propensity_.push_back(inverse(count));
  unseen_inverse_propensity_ = inverse(0);
}

double Evaluator::inverse_propensity(std::uint32_t label) const {
  return label < inverse_propensity_.size() ? inverse_propensity_[label] : unseen_inverse_propensity_;
}

void Evaluator::add(std::span<const Scored> ranked, std::span<const std::uint32_t> truth) {
  ranks_.assign(truth.size(), 0);
  for (std::size_t rank = 0; rank < ranked.size(); ++rank) {
    const auto at = std::ranges::lower_bound(truth, ranked[rank].id);
    if (at == truth.end() || *at != ranked[rank].id) continue;
    ranks_[static_cast<std::size_t>(at - truth.begin())] = static_cast<std::uint32_t>(rank + 1);
  }
  add_ranks(ranks_, truth);
}

void Evaluator::add_ranks(std::span<const std::uint32_t> ranks, std::span<const std::uint32_t> truth) {
  CHECK(ranks.size() == truth.size(), ranks.size(), truth.size());
  if (truth.empty()) {
    ++sums_.without_labels;
    return;
  }
  ++sums_.samples;
  sums_.labels += truth.size();
  for (const std::uint32_t label : truth) {
    if (label >= seen_.size() || !seen_[label]) ++sums_.unseen_labels;
  }
  scratch_.clear();
  for (const std::uint32_t label : truth) scratch_.push_back(inverse_propensity(label));
  std::sort(scratch_.begin(), scratch_.end(), std::greater<>());
  std::array<double, kCuts.size()> dcg{};
  std::array<double, kCuts.size()> ideal{};
  for (std::size_t c = 0; c < kCuts.size(); ++c) {
    for (std::size_t rank = 0; rank < std::min(kCuts[c], truth.size()); ++rank) {
      ideal[c] += discount(rank);
      best_propensity_[c] += scratch_[rank] / static_cast<double>(kCuts[c]);
    }
  }
  hits_.clear();
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (ranks[i] > 0) hits_.emplace_back(ranks[i], truth[i]);
  }
  std::ranges::sort(hits_);
  for (const auto& [rank, label] : hits_) {
    for (std::size_t c = 0; c < kCuts.size(); ++c) {
      if (rank > kCuts[c]) continue;
      const auto cut = static_cast<double>(kCuts[c]);
      sums_.precision[c] += 1 / cut;
      sums_.propensity[c] += inverse_propensity(label) / cut;
      dcg[c] += discount(rank - 1);
    }
    for (std::size_t c = 0; c < kRecallCuts.size(); ++c) {
      if (rank <= kRecallCuts[c]) sums_.recall[c] += 1 / static_cast<double>(truth.size());
    }
  }
  const std::uint32_t best_rank = hits_.empty() ? 0 : hits_.front().first;
  for (std::size_t c = 0; c < kCuts.size(); ++c) sums_.ndcg[c] += dcg[c] / ideal[c];
  for (std::size_t c = 0; c < kHitCuts.size(); ++c) {
    if (best_rank != 0 && best_rank <= kHitCuts[c]) sums_.hit[c] += 1;
  }
  if (best_rank != 0 && best_rank <= kReciprocalCut) sums_.reciprocal_rank += 1.0 / best_rank;
  best_rank_.push_back(best_rank);
}

Metrics Evaluator::metrics() const {
  Metrics result;
  result.samples = sums_.samples;
  result.without_labels = sums_.without_labels;
  result.labels = sums_.labels;
  result.unseen_labels = sums_.unseen_labels;
  if (sums_.samples == 0) return result;
  const double percent = 100 / static_cast<double>(sums_.samples);
  for (std::size_t c = 0; c < kCuts.size(); ++c) {
    result.precision[c] = sums_.precision[c] * percent;
    result.ndcg[c] = sums_.ndcg[c] * percent;
    result.propensity[c] = 100 * sums_.propensity[c] / best_propensity_[c];
  }
  for (std::size_t c = 0; c < kRecallCuts.size(); ++c) result.recall[c] = sums_.recall[c] * percent;
  for (std::size_t c = 0; c < kHitCuts.size(); ++c) result.hit[c] = sums_.hit[c] * percent;
  result.reciprocal_rank = sums_.reciprocal_rank * percent;
  result.median_rank = median(best_rank_);
  return result;
}

}  // namespace gossamer::sparse_engine
