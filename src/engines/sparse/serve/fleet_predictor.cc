// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/fleet_predictor.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engines/sparse/predict/fusion.h"
#include "engines/sparse/predict/row_search.h"
#include "host/api/compute.h"
#include "learn/text/weighting.h"

namespace gossamer::sparse_engine {
namespace {

// Features of a block: 400 MB of the GiB that a message may have.
constexpr std::size_t kMostFeatures = std::size_t{1} << 25;

class FleetPredictor final : public Predictor {
 public:
  FleetPredictor(const Model& model, PartInstances instances, AskFleet ask)
      : model_(model),
        fuses_(instances == PartInstances::kShare),
        ask_(std::move(ask)),
        comparison_(text::comparison_weighting(model.weighting, model.neighbours)),
        fusion_(model.fusion, fuses_ ? PredictParts() : kNetAlone, Fusion::Sources()) {}

  Result<void> predict(const data::SparseRows& queries, std::size_t top_k, PredictionBlock& out) override {
    CHECK(top_k >= 1 && !out.with_terms, top_k);
    out.top_k = top_k;
    out.count.assign(queries.rows(), 0);
    out.entries.assign(queries.rows() * top_k, {});
    out.terms.clear();
    out.share.assign(out.entries.size(), 0);
    const bool known =
        has_probabilities({.fusion = model_.fusion, .parts = fuses_ ? PredictParts() : kNetAlone});
    out.probability.assign(known ? out.entries.size() : 0, 0);
    for (std::size_t first = 0; first < queries.rows(); first += kQueryBlock) {
      const std::size_t end = std::min(first + kQueryBlock, queries.rows());
      if (auto answered = answer(queries, {first, end}, out); !answered.ok()) return answered;
    }
    return {};
  }

 private:
  // Answers a range of queries. They are asked in halves when they have too many labels to rank together, or
  // too many features for a message. The answer to a query does not depend on the others.
  Result<void> answer(const data::SparseRows& queries, const host::Range& range, PredictionBlock& out) {
    if (range.end - range.begin > 1 && queries.begin[range.end] - queries.begin[range.begin] > kMostFeatures)
      return answer_halves(queries, range, out);
    weigh(queries, range.begin, range.end - range.begin);
    auto found = ask_({.rows = {begin_, index_, value_},
                       .labels = candidates(out.top_k),
                       .compared = compared_,
                       .neighbours = fuses_ ? model_.fusion.neighbours : 0});
    if (!found.ok() && found.error().kind == ErrorKind::kRefused && range.end - range.begin > 1)
      return answer_halves(queries, range, out);
    if (!found.ok()) return found.error();
    for (std::size_t q = 0; q < found->net.size(); ++q) {
      const auto mine = std::span(out.entries).subspan((range.begin + q) * out.top_k, out.top_k);
      out.count[range.begin + q] = static_cast<std::uint32_t>(rank(*found, q, mine));
      out.take_shares(fusion_, range.begin + q);
    }
    return {};
  }
  Result<void> answer_halves(const data::SparseRows& queries, const host::Range& range,
                             PredictionBlock& out) {
    const std::size_t middle = range.begin + (range.end - range.begin) / 2;
    auto half = answer(queries, {range.begin, middle}, out);
    return half.ok() ? answer(queries, {middle, range.end}, out) : half;
  }
  // The number of candidates: as many as one process looks at.
  [[nodiscard]] std::size_t candidates(std::size_t top_k) const {
    const std::size_t wished = model_.fusion.candidates;
    return std::min(fuses_ ? wished : std::max(wished, top_k), model_.network.shape.labels);
  }
  std::size_t rank(const FleetQueries::Answer& found, std::size_t q, std::span<Scored> out) {
    if (found.fused) return found.fused->rank(fusion_, model_.fusion, q, found.net[q], out);
    return fusion_.rank({.net = found.net[q]}, out.size(), out);
  }
  // Weighs queries [first, first + count) in two ways: as the network sees them, and
  // as training rows are compared.
  void weigh(const data::SparseRows& queries, std::size_t first, std::size_t count) {
    begin_.assign(1, 0);
    index_.clear();
    value_.clear();
    compared_.clear();
    for (std::size_t q = first; q < first + count; ++q) {
      const data::SparseRow query = queries.row(q);
      index_.insert(index_.end(), query.index.begin(), query.index.end());
      const std::size_t at = value_.size();
      value_.resize(index_.size());
      model_.weighting.apply(query, std::span(value_).subspan(at));
      begin_.push_back(static_cast<std::uint32_t>(index_.size()));
      if (!fuses_) continue;
      compared_.resize(index_.size());
      comparison_.apply(query, std::span(compared_).subspan(at));
    }
  }

  const Model& model_;
  const bool fuses_;
  const AskFleet ask_;
  const text::FeatureWeighting comparison_;
  Fusion fusion_;
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
  std::vector<float> compared_;
};

}  // namespace

std::unique_ptr<Predictor> fleet_predictor(const Model& model, PartInstances instances, AskFleet ask) {
  return std::make_unique<FleetPredictor>(model, instances, std::move(ask));
}

}  // namespace gossamer::sparse_engine
