// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <Eigen/Cholesky>

#include "base/check.h"

namespace gossamer::sparse_engine {
namespace {

constexpr int kMostNewtonSteps = 100;
// Keeps the fit finite where the shares part right from wrong labels.
constexpr double kCalibrationRidge = 1e-4;
constexpr double kShareMargin = 1e-7;  // as Calibration::probability() has it

using Triple = Eigen::Vector3d;
using TripleSquare = Eigen::Matrix3d;
using UsedInputs = std::array<bool, 3>;  // log, rest, offset

Triple calibration_inputs(float share) {
  const double q = std::clamp(static_cast<double>(share), kShareMargin, 1 - kShareMargin);
  return {std::log(q), -std::log1p(-q), 1};
}

struct LogLoss {
  double loss = 0;
  Triple gradient = Triple::Zero();
  TripleSquare curvature = TripleSquare::Zero();
};

LogLoss log_loss(const CalibrationExamples& examples, const Triple& weights) {
  LogLoss at;
  for (std::size_t i = 0; i < examples.share.size(); ++i) {
    const Triple x = calibration_inputs(examples.share[i]);
    const double z = weights.dot(x);
    const double p = 1 / (1 + std::exp(-z));
    const double y = examples.correct[i];
    at.loss += std::max(z, 0.0) - y * z + std::log1p(std::exp(-std::abs(z)));
    at.gradient += (p - y) * x;
    at.curvature += p * (1 - p) * x * x.transpose();
  }
  const auto n = static_cast<double>(examples.share.size());
  at.loss = at.loss / n + kCalibrationRidge * weights.squaredNorm();
  at.gradient = at.gradient / n + 2 * kCalibrationRidge * weights;
  at.curvature = at.curvature / n + 2 * kCalibrationRidge * TripleSquare::Identity();
  return at;
}

// Newton's method over the inputs that are used; the others' weights stay 0.
Triple fit_logistic(const CalibrationExamples& examples, const UsedInputs& used) {
  Triple weights = Triple::Zero();
  LogLoss at = log_loss(examples, weights);
  for (int step = 0; step < kMostNewtonSteps; ++step) {
    Triple gradient = at.gradient;
    TripleSquare curvature = at.curvature;
    for (int i = 0; i < 3; ++i) {
      if (used[static_cast<std::size_t>(i)]) continue;
      gradient[i] = 0;
      curvature.row(i).setZero();
      curvature.col(i).setZero();
      curvature(i, i) = 1;
    }
    const Triple direction = -curvature.ldlt().solve(gradient);
    double length = 1;
    LogLoss there = log_loss(examples, weights + direction);
    while (length > 1e-6 && !(there.loss < at.loss)) {
      length /= 2;
      there = log_loss(examples, weights + length * direction);
    }
    if (!(there.loss < at.loss)) break;
    const double gain = at.loss - there.loss;
    weights += length * direction;
    at = there;
    if (gain < 1e-12) break;
  }
  return weights;
}

}  // namespace

std::optional<Calibration> fit_calibration(const CalibrationExamples& examples) {
  CHECK(examples.share.size() == examples.correct.size(), examples.share.size(), examples.correct.size());
  const auto right = static_cast<std::size_t>(std::ranges::count(examples.correct, 1));
  if (right == 0 || right == examples.correct.size()) return std::nullopt;
  UsedInputs used = {true, true, true};
  Triple weights = fit_logistic(examples, used);
  // A falling part would turn the order of labels round, so it is left out.
  for (std::size_t i = 0; i < 2; ++i) {
    if (weights[static_cast<int>(i)] >= 0) continue;
    used[i] = false;
    weights = fit_logistic(examples, used);
  }
  return Calibration{.log = static_cast<float>(std::max(0.0, weights[0])),
                     .rest = static_cast<float>(std::max(0.0, weights[1])),
                     .offset = static_cast<float>(weights[2])};
}

double calibration_error(const CalibrationExamples& examples, const Calibration& calibration,
                         std::size_t bins) {
  struct Bin {
    double right = 0;
    double probability = 0;
  };
  std::vector<Bin> sums(bins);
  for (std::size_t i = 0; i < examples.share.size(); ++i) {
    const auto p = static_cast<double>(calibration.probability(examples.share[i]));
    Bin& bin = sums[std::min(bins - 1, static_cast<std::size_t>(p * static_cast<double>(bins)))];
    bin.right += examples.correct[i];
    bin.probability += p;
  }
  double error = 0;
  for (const Bin& bin : sums) error += std::abs(bin.right - bin.probability);
  return examples.share.empty() ? 0 : error / static_cast<double>(examples.share.size());
}

Result<void> add_examples(Predictor& predictor, const HeldOutRecords& records,
                          CalibrationExamples& examples) {
  PredictionBlock block;
  return rank_held_out(predictor, records, kCalibrated, block, [&examples](const RankedRecord& ranked) {
    if (ranked.record.labels.empty()) return;
    for (std::size_t c = 0; c < ranked.block.row(ranked.query).size(); ++c) {
      examples.share.push_back(ranked.block.share[ranked.query * kCalibrated + c]);
      examples.correct.push_back(ranked.correct(c) ? 1 : 0);
    }
  });
}

}  // namespace gossamer::sparse_engine
