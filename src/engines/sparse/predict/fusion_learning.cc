// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/fusion_learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include <Eigen/Cholesky>

#include "engines/sparse/predict/predictor.h"

namespace gossamer::sparse_engine {
namespace {

// Candidates further down tell little and cost as much.
constexpr std::size_t kCandidates = 150;
// As small as it may be while a term without information stays at its prior.
constexpr double kRidge = 1e-4;
constexpr int kMostSteps = 50;
constexpr double kEnoughGain = 1e-9;

constexpr int kSize = static_cast<int>(kFusionTerms);
using Vector = Eigen::Matrix<double, kSize, 1>;
using Matrix = Eigen::Matrix<double, kSize, kSize>;

struct Objective {
  double loss = 0;  // mean over records
  Vector gradient = Vector::Zero();
  Matrix curvature = Matrix::Zero();
  std::size_t records = 0;
};

Vector vector_of(const FusionVector& terms) {
  Vector out;
  for (int i = 0; i < kSize; ++i) out[i] = static_cast<double>(terms.value[static_cast<std::size_t>(i)]);
  return out;
}

// Adds one record's part to the sums.
void add_record(std::span<const FusionVector> terms, std::span<const std::uint8_t> correct,
                const Vector& weights, std::vector<double>& scores, Objective& sums) {
  const auto hits = std::count(correct.begin(), correct.end(), 1);
  if (hits == 0) return;
  scores.clear();
  for (const FusionVector& of_label : terms) scores.push_back(weights.dot(vector_of(of_label)));
  const double best = *std::max_element(scores.begin(), scores.end());
  double partition = 0;
  for (const double s : scores) partition += std::exp(s - best);
  Vector mean = Vector::Zero();
  Vector target = Vector::Zero();
  Matrix squares = Matrix::Zero();
  double target_score = 0;
  for (std::size_t c = 0; c < terms.size(); ++c) {
    const Vector x = vector_of(terms[c]);
    const double p = std::exp(scores[c] - best) / partition;
    mean += p * x;
    squares += p * x * x.transpose();
    if (correct[c] == 0) continue;
    target += x;
    target_score += scores[c];
  }
  const auto share = 1 / static_cast<double>(hits);
  sums.loss += best + std::log(partition) - share * target_score;
  sums.gradient += mean - share * target;
  sums.curvature += squares - mean * mean.transpose();
  ++sums.records;
}

Objective evaluate(const FusionExamples& examples, const Vector& weights) {
  Objective sums;
  std::vector<double> scores;
  for (std::size_t r = 0; r < examples.records(); ++r) {
    const std::size_t begin = examples.begin[r];
    const std::size_t count = examples.begin[r + 1] - begin;
    add_record(std::span(examples.terms).subspan(begin, count),
               std::span(examples.correct).subspan(begin, count), weights, scores, sums);
  }
  const double n = static_cast<double>(std::max<std::size_t>(sums.records, 1));
  sums.loss /= n;
  sums.gradient /= n;
  sums.curvature /= n;
  return sums;
}

void add_examples_of(const RankedRecord& ranked, FusionExamples& examples) {
  for (std::size_t c = 0; c < ranked.block.row(ranked.query).size(); ++c) {
    examples.terms.push_back(ranked.block.terms[ranked.query * kCandidates + c]);
    examples.correct.push_back(ranked.correct(c) ? 1 : 0);
  }
  examples.begin.push_back(examples.terms.size());
}

bool has_finite_terms(const FusionVector& terms) {
  return std::ranges::all_of(terms.value, [](float x) { return std::isfinite(x); });
}

// For examples that teach a loss that is not finite: names the first of their records to blame.
Error no_finite_loss(const FusionExamples& examples, const data::HoldOut& hold_out) {
  const auto wrong = std::ranges::find_if_not(examples.terms, has_finite_terms) - examples.terms.begin();
  const auto end = std::ranges::upper_bound(examples.begin, static_cast<std::size_t>(wrong));
  const auto held = static_cast<std::uint64_t>(end - examples.begin.begin()) - 1;
  const std::uint64_t record = hold_out.held_record(std::min(held, hold_out.held() - 1)).value;
  return {.kind = ErrorKind::kBadData,
          .where = fmt::format("training record {}", record + 1),
          .what = "the model's scores for a held-out record are not finite",
          .got = "values that are too large",
          .expected = "values whose weighted sums a float can hold",
          .fix = "mend the record, or scale rows with data.weighting=l2, in a new run"};
}

double with_ridge(const Objective& at, const Vector& weights, const Vector& prior) {
  return at.loss + kRidge * (weights - prior).squaredNorm();
}

// A given weight has no slope, and nothing that the others do moves it.
void hold_given(const GivenTerms& given, Vector& gradient, Matrix& curvature) {
  for (int i = 0; i < kSize; ++i) {
    if (!given[static_cast<std::size_t>(i)]) continue;
    gradient[i] = 0;
    curvature.row(i).setZero();
    curvature.col(i).setZero();
    curvature(i, i) = 1;
  }
}

}  // namespace

GivenTerms given_terms(const PredictConfig& config) {
  GivenTerms given{};
  const std::array<std::optional<double>, kFusionTerms> weights = config.given_weights();
  std::ranges::transform(weights, given.begin(), [](const auto& weight) { return weight.has_value(); });
  return given;
}

FittedFusion fit_fusion_weights(const FusionExamples& examples, const FusionVector& prior,
                                const GivenTerms& given) {
  const Vector start = vector_of(prior);
  Vector weights = start;
  Objective at = evaluate(examples, weights);
  FittedFusion out{.weights = prior, .records = at.records, .loss = at.loss, .loss_before = at.loss};
  if (at.records == 0) return out;
  for (int step = 0; step < kMostSteps; ++step) {
    Vector gradient = at.gradient + 2 * kRidge * (weights - start);
    Matrix curvature = at.curvature + 2 * kRidge * Matrix::Identity();
    hold_given(given, gradient, curvature);
    const Vector direction = -curvature.ldlt().solve(gradient);
    // Newton's step is too long if the curvature shrinks along it. It is halved until it gains.
    double length = 1;
    Vector next = weights + direction;
    Objective there = evaluate(examples, next);
    const double before = with_ridge(at, weights, start);
    while (length > 1e-6 && !(with_ridge(there, next, start) < before)) {
      length /= 2;
      next = weights + length * direction;
      there = evaluate(examples, next);
    }
    const double gain = before - with_ridge(there, next, start);
    if (!(gain > 0)) break;
    weights = next;
    at = there;
    if (gain < kEnoughGain) break;
  }
  for (int i = 0; i < kSize; ++i)
    out.weights.value[static_cast<std::size_t>(i)] = static_cast<float>(weights[i]);
  out.loss = at.loss;
  return out;
}

Result<LearntFusion> learn_fusion_weights(const Model& model, const GivenTerms& given,
                                          const data::Dataset& dataset, const data::HoldOut& hold_out,
                                          const kernels::Kernels& kernels, host::Compute& compute) {
  auto predictor = Predictor::create(model, kernels, compute, default_options(model));
  if (!predictor.ok()) return predictor.error();
  FusionExamples all;
  std::array<FusionExamples, kHalves.size()> halves;
  PredictionBlock block;
  block.with_terms = true;
  auto done =
      rank_held_out(**predictor, {.dataset = dataset, .hold_out = hold_out}, kCandidates, block,
                    [&](const RankedRecord& ranked) {
                      add_examples_of(ranked, all);
                      add_examples_of(ranked, halves[static_cast<std::size_t>(half_of_held(ranked.held))]);
                    });
  if (!done.ok()) return done.error();
  const FusionVector& prior = model.fusion.weights;
  const FittedFusion fitted = fit_fusion_weights(all, prior, given);
  if (!std::isfinite(fitted.loss)) return no_finite_loss(all, hold_out);
  return LearntFusion{.all = fitted,
                      .by_the_other = {fit_fusion_weights(halves[1], prior, given).weights,
                                       fit_fusion_weights(halves[0], prior, given).weights}};
}

}  // namespace gossamer::sparse_engine
