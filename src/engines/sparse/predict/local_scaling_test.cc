// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/local_scaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/sim/compute.h"

namespace gossamer::sparse_engine {
namespace {

using testing::best_kernels;

constexpr std::uint32_t kFeatures = 40;
constexpr std::size_t kWidth = 16;

Instances some_rows(std::uint32_t rows, std::uint64_t seed = 1) {
  Rng rng(seed, Purpose::kTest, rows);
  Instances out =
      testing::random_instances(rng, {.features = kFeatures, .labels = 9, .hidden = kWidth, .rows = rows});
  std::vector<float> vector(kWidth);
  for (std::size_t r = 0; r < rows; ++r) {
    best_kernels().from_bf16(out.hidden.data() + r * kWidth, vector.data(), kWidth);
    const float length = std::sqrt(best_kernels().squared_norm(vector.data(), kWidth));
    for (float& v : vector) v /= length;
    best_kernels().to_bf16(vector.data(), out.hidden.data() + r * kWidth, kWidth);
  }
  return out;
}

std::vector<float> dense(const Instances& rows, std::size_t r) {
  std::vector<float> out(kFeatures);
  const data::SparseRow row = rows.features().row(r);
  for (std::size_t i = 0; i < row.index.size(); ++i) out[row.index[i]] = row.value[i];
  return out;
}

std::vector<float> hidden(const Instances& rows, std::size_t r) {
  std::vector<float> out(kWidth);
  best_kernels().from_bf16(rows.hidden.data() + r * kWidth, out.data(), kWidth);
  return out;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// The kLocalNearest-th largest of similarity(other) over the other rows, at least 0.
double slow_radius(std::size_t rows, std::size_t self, const std::function<double(std::size_t)>& similarity) {
  std::vector<double> all;
  for (std::size_t r = 0; r < rows; ++r) {
    if (r != self) all.push_back(similarity(r));
  }
  std::sort(all.rbegin(), all.rend());
  return all.size() < kLocalNearest ? 0 : std::max(all[kLocalNearest - 1], 0.0);
}

// Radii equal those from sorting all similarities if the sample is all rows.
TEST(LocalScaling, RadiiAreTheSimilarityOfTheFifthNeighbour) {
  for (const std::uint32_t rows : {1U, 4U, 6U, 7U, 300U}) {
    SCOPED_TRACE(rows);
    const Instances all = some_rows(rows);
    host::SimCompute compute({.workers = 3});
    const LocalRadii radii = local_radii(all, kFeatures, best_kernels(), compute);
    ASSERT_EQ(radii.input.size(), rows);
    ASSERT_EQ(radii.hidden.size(), rows);
    for (std::size_t r = 0; r < rows; ++r) {
      const double input = slow_radius(rows, r, [&](std::size_t other) {
        const auto vector = dense(all, other);
        const double length = std::sqrt(dot(vector, vector));
        return length > 0 ? dot(dense(all, r), vector) / length : 0;
      });
      const double by_hidden =
          slow_radius(rows, r, [&](std::size_t other) { return dot(hidden(all, r), hidden(all, other)); });
      EXPECT_NEAR(static_cast<double>(radii.input[r]), input, 1e-5) << r;
      EXPECT_NEAR(static_cast<double>(radii.hidden[r]), by_hidden, 1e-5) << r;
    }
  }
}

// Claim: the sample of many rows is spread evenly over all of them. A row of the sample is not its own
// neighbour.
TEST(LocalScaling, TheSampleIsSpreadEvenly) {
  constexpr std::size_t kRows = 2 * kLocalSample + 1000;
  const Instances all = some_rows(kRows);
  host::SimCompute compute({.workers = 2});
  const LocalRadii radii = local_radii(all, kFeatures, best_kernels(), compute);
  const auto sampled = [](std::size_t i) { return i * kRows / kLocalSample; };
  for (const std::size_t r : {0U, 1U, 2U, 3U, 4U, 4500U, 4501U, 8996U, 8997U, 8998U, 8999U}) {
    std::size_t self = 0;
    while (self < kLocalSample && sampled(self) != r) ++self;
    const double input = slow_radius(kLocalSample, self, [&](std::size_t i) {
      const auto vector = dense(all, sampled(i));
      const double length = std::sqrt(dot(vector, vector));
      return length > 0 ? dot(dense(all, r), vector) / length : 0;
    });
    const double by_hidden = slow_radius(
        kLocalSample, self, [&](std::size_t i) { return dot(hidden(all, r), hidden(all, sampled(i))); });
    EXPECT_NEAR(static_cast<double>(radii.input[r]), input, 1e-5) << r;
    EXPECT_NEAR(static_cast<double>(radii.hidden[r]), by_hidden, 1e-5) << r;
  }
}

// Claim: a row of the smallest values counts by its direction, as any other.
TEST(LocalScaling, ShortRowsOfTheSampleHaveLengthOne) {
  const Instances usual = some_rows(50);
  Instances all = some_rows(50);
  for (std::size_t i = 0; i < all.feature_begin[20]; ++i) all.value[i] *= 1e-40F;
  host::SimCompute compute({});
  const LocalRadii expected = local_radii(usual, kFeatures, best_kernels(), compute);
  const LocalRadii radii = local_radii(all, kFeatures, best_kernels(), compute);
  for (std::size_t r = 20; r < 50; ++r) EXPECT_NEAR(radii.input[r], expected.input[r], 1e-3) << r;
}

// Only a sample is asked, and the answer does not depend on the workers.
TEST(LocalScaling, LargeSetsAskASampleAndAllWorkersAgree) {
  const Instances all = some_rows(3 * kLocalSample + 17);
  host::SimCompute one({.workers = 1});
  host::SimCompute four({.workers = 4});
  const LocalRadii a = local_radii(all, kFeatures, best_kernels(), one);
  const LocalRadii b = local_radii(all, kFeatures, best_kernels(), four);
  EXPECT_EQ(a.input, b.input);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_GT(*std::min_element(a.hidden.begin(), a.hidden.end()), 0);
}

// The factors equal those worked out by hand: the square root of the mean over the radius.
TEST(LocalScaling, CrowdedRowsGetSmaller) {
  const std::vector<float> scales = local_scales({0.1F, 0.2F, 0.3F, 0.0F, 0.4F}, 0.5F);
  EXPECT_NEAR(scales[0], std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(scales[1], 1, 1e-6);
  EXPECT_NEAR(scales[4], std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(scales[3], std::sqrt(5.0), 1e-6) << "radii below a fifth of the mean count as that";
  EXPECT_EQ(local_scales({0, 0}, 0.5F), (std::vector<float>{1, 1})) << "nobody has a neighbour";
  EXPECT_EQ(local_scales({0.1F, 0.4F}, 0), (std::vector<float>{1, 1}));
}

// Each row is multiplied by its own two factors, up to the rounding of bf16; power 0 changes nothing.
TEST(LocalScaling, ScalesFeaturesAndHiddenVectors) {
  const Instances before = some_rows(200);
  Instances after = some_rows(200);
  host::SimCompute compute({.workers = 2});
  const LocalRadii radii = local_radii(before, kFeatures, best_kernels(), compute);
  scale_locally(after, kFeatures, 0.7F, best_kernels(), compute);
  const std::vector<float> input = local_scales(radii.input, 0.7F);
  const std::vector<float> by_hidden = local_scales(radii.hidden, 0.7F);
  EXPECT_NE(*std::max_element(input.begin(), input.end()), 1);
  for (std::size_t r = 0; r < 200; ++r) {
    for (std::size_t i = before.feature_begin[r]; i < before.feature_begin[r + 1]; ++i)
      EXPECT_EQ(after.value[i], before.value[i] * input[r]);
    const std::vector<float> old_vector = hidden(before, r);
    const std::vector<float> new_vector = hidden(after, r);
    for (std::size_t i = 0; i < kWidth; ++i)
      EXPECT_NEAR(new_vector[i], old_vector[i] * by_hidden[r], 0.005F * std::abs(new_vector[i]) + 1e-6F);
  }
  Instances untouched = some_rows(200);
  scale_locally(untouched, kFeatures, 0, best_kernels(), compute);
  EXPECT_EQ(untouched.value, before.value);
}

// A row with many copies in the data is near everywhere and wins votes. It is scaled down, and a row that
// stands alone is not.
TEST(LocalScaling, HubsLoseAgainstLonelyRows) {
  Instances rows = some_rows(100);
  std::vector<float> hub(kWidth);
  best_kernels().from_bf16(rows.hidden.data(), hub.data(), kWidth);
  for (std::size_t r = 1; r <= 20; ++r)
    std::copy_n(rows.hidden.data(), kWidth, rows.hidden.data() + r * kWidth);
  host::SimCompute compute({.workers = 1});
  const LocalRadii radii = local_radii(rows, kFeatures, best_kernels(), compute);
  const std::vector<float> scales = local_scales(radii.hidden, 0.5F);
  for (std::size_t r = 21; r < 100; ++r) EXPECT_LT(scales[0], scales[r]);
}

}  // namespace
}  // namespace gossamer::sparse_engine
