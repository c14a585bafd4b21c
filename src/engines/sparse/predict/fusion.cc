// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/fusion.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engines/sparse/model/instance_index.h"

namespace gossamer::sparse_engine {
namespace {

// The net's scores stop this far below its best score.
constexpr float kNetRange = 20;

// Whether only one view takes part. That view keeps its own order: it alone has a weight, and votes have no
// floor.
bool single_view(const PredictParts& parts) {
  return int{parts.net} + int{parts.input_neighbours} + int{parts.hidden_neighbours} + int{parts.centroids} ==
         1;
}

// The weights of the terms that the parts provide.
FusionVector weights_of(const FusionOptions& options, const PredictParts& parts) {
  FusionVector weights = options.weights;
  const auto keep = [&weights](FusionTerm term, bool on) {
    if (!on) weights[term] = 0;
  };
  keep(FusionTerm::kNet, parts.net);
  keep(FusionTerm::kCentroid, parts.centroids);
  keep(FusionTerm::kInput, parts.input_neighbours);
  keep(FusionTerm::kHidden, parts.hidden_neighbours);
  keep(FusionTerm::kMixed, parts.input_neighbours && parts.hidden_neighbours);
  keep(FusionTerm::kSharp, parts.input_neighbours && !single_view(parts));
  if (single_view(parts)) {
    weights[parts.net                ? FusionTerm::kNet
            : parts.input_neighbours ? FusionTerm::kInput
                                     : FusionTerm::kHidden] = 1;
  }
  return weights;
}

}  // namespace

Fusion::Fusion(const FusionOptions& options, const PredictParts& parts, const Sources& sources)
    : options_(options), parts_(parts), sources_(sources) {
  CHECK(parts.net || parts.input_neighbours || parts.hidden_neighbours);
  options_.weights = weights_of(options, parts);
  if (single_view(parts)) options_.vote_floor = 0;
}

Fusion::Candidate& Fusion::candidate(std::uint32_t label) {
  const std::uint32_t slot = slots_.insert(label);
  if (slot == candidates_.size()) candidates_.emplace_back();
  return candidates_[slot];
}

std::span<const std::uint32_t> Fusion::labels_of(std::uint32_t row, const QueryViews& views) const {
  if (views.answers != nullptr) return views.answers->labels_of(row);
  CHECK(sources_.instances != nullptr);
  return sources_.instances->labels().row(row);
}

float Fusion::net_score(std::uint32_t label, const QueryViews& views) const {
  if (views.answers != nullptr) return views.answers->net_score(label);
  CHECK(sources_.network != nullptr);
  const sparse::Network& network = *sources_.network;
  return dot(*sources_.kernels, network.output.weights(label), views.layer, network.output.stride()) +
         network.bias[label];
}

float Fusion::centroid_cosine(std::uint32_t label, const QueryViews& views) const {
  if (views.answers != nullptr) return views.answers->centroid_cosine(label);
  CHECK(sources_.index != nullptr);
  return sources_.index->centroid_cosine(label, views.cosines);
}

void Fusion::add_votes(const QueryViews& views, std::span<const Scored> rows, float power,
                       float Candidate::* view) {
  votes_.clear();
  double sum = 0;
  for (const Scored& row : rows) {
    votes_.push_back(row.score > 0 ? std::pow(static_cast<double>(row.score), static_cast<double>(power))
                                   : 0.0);
    sum += votes_.back();
  }
  if (sum <= 0) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto share = static_cast<float>(votes_[i] / sum);
    if (share <= 0) continue;
    for (const std::uint32_t label : labels_of(rows[i].id, views)) candidate(label).*view += share;
  }
}

FusionVector Fusion::terms_of(std::size_t slot, const QueryViews& views) const {
  const std::uint32_t label = slots_.ids()[slot];
  const Candidate& found = candidates_[slot];
  FusionVector terms;
  if (parts_.net && !views.net.empty()) {
    float score = found.net;
    if (std::isnan(score)) score = net_score(label, views);
    const float least = parts_.need_instances() ? -kNetRange : std::numeric_limits<float>::lowest();
    terms[FusionTerm::kNet] = std::max(score - views.net.front().score, least);
  }
  if (parts_.centroids) terms[FusionTerm::kCentroid] = centroid_cosine(label, views);
  const auto vote = [this](float share) { return std::log(share + options_.vote_floor); };
  if (parts_.input_neighbours) {
    terms[FusionTerm::kInput] = vote(found.input);
    terms[FusionTerm::kSharp] = vote(found.sharp);
  }
  if (parts_.hidden_neighbours) terms[FusionTerm::kHidden] = vote(found.hidden);
  if (mixes(options_, parts_)) terms[FusionTerm::kMixed] = vote(found.mixed);
  return terms;
}

double Fusion::softmax_scale() const {
  const float weight = options_.weights[FusionTerm::kNet];
  return parts_.need_instances() || !(weight > 0) ? 1 : 1 / static_cast<double>(weight);
}

// The net alone may have named more candidates for a long list: those beyond the usual number do not count.
void Fusion::sum_up_candidates() {
  const std::size_t most = parts_.need_instances() ? ranked_.size() : options_.candidates;
  const std::size_t count = std::min<std::size_t>(most, ranked_.size());
  if (count < ranked_.size()) {
    const auto middle = ranked_.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(ranked_.begin(), middle, ranked_.end(), ranks_before);
  }
  const double scale = softmax_scale();
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i)
    best = std::max(best, scale * static_cast<double>(ranked_[i].score));
  double sum = 0;
  // In the order of labels, so that the sum does not depend on how candidates were found.
  std::sort(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Scored& a, const Scored& b) { return a.id < b.id; });
  for (std::size_t i = 0; i < count; ++i)
    sum += std::exp(scale * static_cast<double>(ranked_[i].score) - best);
  log_partition_ = count > 0 ? best + std::log(sum) : 0;
}

float Fusion::share(float score) const {
  const double share = std::exp(softmax_scale() * static_cast<double>(score) - log_partition_);
  return std::isnan(share) ? 0 : static_cast<float>(std::min(1.0, share));
}

std::optional<float> Fusion::probability(float score) const {
  const bool all = parts_ == PredictParts();
  const auto& calibration = all ? options_.calibration : options_.net_calibration;
  if (!calibration || !(all || parts_ == kNetAlone)) return std::nullopt;
  return calibration->probability(share(score));
}

std::size_t Fusion::rank(const QueryViews& views, std::size_t top_k, std::span<Scored> out,
                         std::span<FusionVector> terms) {
  CHECK(top_k >= 1 && out.size() >= top_k, top_k, out.size());
  CHECK(terms.empty() || terms.size() >= top_k, top_k, terms.size());
  slots_.clear();
  candidates_.clear();
  for (const Scored& label : views.net) candidate(label.id).net = label.score;
  add_votes(views, views.input, options_.input_vote_power, &Candidate::input);
  if (options_.weights[FusionTerm::kSharp] != 0) {
    add_votes(views, views.input, options_.sharp_vote_power, &Candidate::sharp);
  }
  add_votes(views, views.hidden, options_.hidden_vote_power, &Candidate::hidden);
  add_votes(views, views.mixed, options_.mixed_vote_power, &Candidate::mixed);
  ranked_.clear();
  terms_.clear();
  for (std::size_t slot = 0; slot < candidates_.size(); ++slot) {
    const FusionVector of_label = terms_of(slot, views);
    float score = 0;
    for (std::size_t term = 0; term < kFusionTerms; ++term) {
      if (options_.weights.value[term] != 0) score += options_.weights.value[term] * of_label.value[term];
    }
    // What is no number has no place in an order.
    if (std::isnan(score)) score = -std::numeric_limits<float>::infinity();
    ranked_.push_back({slots_.ids()[slot], score});
    if (!terms.empty()) terms_.push_back(of_label);
  }
  sum_up_candidates();
  const std::size_t count = std::min(top_k, ranked_.size());
  const auto middle = ranked_.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(ranked_.begin(), middle, ranked_.end(), ranks_before);
  std::copy(ranked_.begin(), middle, out.begin());
  if (!terms.empty()) {
    for (std::size_t i = 0; i < count; ++i) terms[i] = terms_[slots_.insert(ranked_[i].id)];
  }
  return count;
}

}  // namespace gossamer::sparse_engine
