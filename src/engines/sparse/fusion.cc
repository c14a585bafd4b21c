// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "engines/sparse/instance_index.h"

namespace gossamer::engine {
namespace {

constexpr std::uint32_t kMaxListed = 10000;

bool single_view(const FusionOptions& options, const PredictParts& parts) {
  return int{parts.net} + int{parts.input_neighbours} + int{parts.hidden_neighbours} + int{parts.centroids} +
             int{mixes(options, parts)} ==
         1;
}

}  // namespace

Result<void> validate(const FusionOptions& options) {
  const auto refuse = [](const char* field, double got, const char* expected) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = fmt::format("fusion.{}", field),
                 .what = "a value out of its range",
                 .got = fmt::format("{}", got),
                 .expected = expected,
                 .fix = "choose a value in the range"};
  };
  for (const auto& [field, value] :
       {std::pair("candidates", options.candidates), {"neighbours", options.neighbours}}) {
    if (value < 1 || value > kMaxListed) return refuse(field, value, "1..10000");
  }
  for (const auto& [field, value] : {std::pair("input_vote_power", options.input_vote_power),
                                     {"hidden_vote_power", options.hidden_vote_power},
                                     {"mixed_vote_power", options.mixed_vote_power}}) {
    if (!(value >= 0 && value <= 64)) return refuse(field, static_cast<double>(value), "0..64");
  }
  for (const auto& [field, value] : {std::pair("net_weight", options.net_weight),
                                     {"centroid_weight", options.centroid_weight},
                                     {"input_vote_weight", options.input_vote_weight},
                                     {"hidden_vote_weight", options.hidden_vote_weight},
                                     {"mixed_vote_weight", options.mixed_vote_weight}}) {
    if (!(value >= 0 && value <= 1e6F)) return refuse(field, static_cast<double>(value), "0..1e6");
  }
  for (const auto& [field, value] :
       {std::pair("net_floor", options.net_floor), {"vote_floor", options.vote_floor}}) {
    if (!(value >= 1e-30F && value <= 1)) return refuse(field, static_cast<double>(value), "1e-30..1");
  }
  return {};
}

Fusion::Fusion(const FusionOptions& options, const PredictParts& parts, const Sources& sources)
    : options_(options), parts_(parts), sources_(sources) {
  CHECK(parts.net || parts.input_neighbours || parts.hidden_neighbours);
  CHECK(sources.instances != nullptr || !(parts.input_neighbours || parts.hidden_neighbours));
  CHECK(sources.index != nullptr || !parts.centroids);
  if (single_view(options, parts)) {
    options_.net_floor = 0;
    options_.vote_floor = 0;
  }
}

Fusion::Terms& Fusion::terms_of(std::uint32_t label) {
  const std::uint32_t slot = slots_.insert(label);
  if (slot == terms_.size()) terms_.emplace_back();
  return terms_[slot];
}

void Fusion::add_net(std::span<const Scored> net) {
  if (net.empty()) return;
  double sum = 0;
  for (const Scored& label : net) sum += std::exp(static_cast<double>(label.score - net.front().score));
  const auto log_sum = static_cast<float>(std::log(sum));
  for (const Scored& label : net) terms_of(label.id).log_net = label.score - net.front().score - log_sum;
}

void Fusion::add_votes(std::span<const Scored> rows, float power, float Terms::* view) {
  const auto weight = [power](const Scored& row) {
    return row.score > 0 ? std::pow(static_cast<double>(row.score), static_cast<double>(power)) : 0.0;
  };
  double sum = 0;
  for (const Scored& row : rows) sum += weight(row);
  if (sum <= 0) return;
  for (const Scored& row : rows) {
    const auto share = static_cast<float>(weight(row) / sum);
    if (share <= 0) continue;
    for (const std::uint32_t label : sources_.instances->labels().row(row.id)) terms_of(label).*view += share;
  }
}

float Fusion::score(std::uint32_t label, const Terms& terms, std::span<const float> cosines) const {
  float total = 0;
  if (parts_.net) {
    const float log_net =
        options_.net_floor > 0 ? std::log(std::exp(terms.log_net) + options_.net_floor) : terms.log_net;
    total += options_.net_weight * log_net;
  }
  if (parts_.centroids) total += options_.centroid_weight * sources_.index->centroid_cosine(label, cosines);
  const auto vote = [this](float weight, float share) {
    return weight == 0 ? 0.0F : weight * std::log(share + options_.vote_floor);
  };
  if (parts_.input_neighbours) total += vote(options_.input_vote_weight, terms.input);
  if (parts_.hidden_neighbours) total += vote(options_.hidden_vote_weight, terms.hidden);
  if (mixes(options_, parts_)) total += vote(options_.mixed_vote_weight, terms.mixed);
  return total;
}

std::size_t Fusion::rank(const QueryViews& views, std::size_t top_k, std::span<Scored> out) {
  CHECK(top_k >= 1 && out.size() >= top_k, top_k, out.size());
  slots_.clear();
  terms_.clear();
  add_net(views.net);
  add_votes(views.input, options_.input_vote_power, &Terms::input);
  add_votes(views.hidden, options_.hidden_vote_power, &Terms::hidden);
  add_votes(views.mixed, options_.mixed_vote_power, &Terms::mixed);
  ranked_.clear();
  for (std::size_t slot = 0; slot < terms_.size(); ++slot) {
    const std::uint32_t label = slots_.ids()[slot];
    ranked_.push_back({label, score(label, terms_[slot], views.cosines)});
  }
  const std::size_t count = std::min(top_k, ranked_.size());
  const auto middle = ranked_.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(ranked_.begin(), middle, ranked_.end(), ranks_before);
  std::copy(ranked_.begin(), middle, out.begin());
  return count;
}

}  // namespace gossamer::engine
