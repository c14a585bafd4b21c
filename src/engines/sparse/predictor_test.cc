// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "engines/sparse/random_model.h"
#include "host/sim/compute.h"

namespace gossamer::engine {
namespace {

using testing::OwnedRows;
using testing::random_model;
using testing::random_rows;

const kernels::Kernels& best() { return kernels::kernels_for(kernels::best_isa()); }

// The fused scores of all candidates of one query, from the formulas alone, in double and without any index.
class SlowPredictor {
 public:
  SlowPredictor(const Model& model, const PredictOptions& options) : model_(model), options_(options) {}

  [[nodiscard]] std::map<std::uint32_t, double> scores(const data::SparseRow& query) const {
    const FusionOptions& fusion = options_.fusion;
    const PredictParts& parts = options_.parts;
    const std::vector<double> hidden = hidden_of(query);
    const bool alone =
        int{parts.net} + int{parts.input_neighbours} + int{parts.hidden_neighbours} + int{parts.centroids} ==
        1;
    std::map<std::uint32_t, std::array<double, 4>> terms;
    if (parts.net) add_net(hidden, terms);
    const auto input = input_cosines(query);
    const auto hidden_cosines = cosines_to_hidden(hidden);
    if (parts.input_neighbours) add_votes(input, static_cast<double>(fusion.input_vote_power), 1, terms);
    if (parts.hidden_neighbours)
      add_votes(hidden_cosines, static_cast<double>(fusion.hidden_vote_power), 2, terms);
    const bool mixed = fusion.mixed_vote_weight != 0;
    if (mixed) {
      std::map<std::uint32_t, double> both;
      for (const auto& list : {nearest(input, true), nearest(hidden_cosines, false)}) {
        for (const auto& row : list) both[row.second] = (input[row.second] + hidden_cosines[row.second]) / 2;
      }
      std::vector<double> means(input.size(), 0);
      for (const auto& [row, mean] : both) means[row] = mean;
      add_votes(means, static_cast<double>(fusion.mixed_vote_power), 3, terms);
    }
    std::map<std::uint32_t, double> scores;
    const double net_floor = alone ? 0 : static_cast<double>(fusion.net_floor);
    const double vote_floor = alone ? 0 : static_cast<double>(fusion.vote_floor);
    for (const auto& [label, t] : terms) {
      double s = 0;
      if (parts.net) s += static_cast<double>(fusion.net_weight) * std::log(t[0] + net_floor);
      if (parts.centroids) s += static_cast<double>(fusion.centroid_weight) * centroid(query, label);
      if (parts.input_neighbours)
        s += static_cast<double>(fusion.input_vote_weight) * std::log(t[1] + vote_floor);
      if (parts.hidden_neighbours)
        s += static_cast<double>(fusion.hidden_vote_weight) * std::log(t[2] + vote_floor);
      if (mixed) s += static_cast<double>(fusion.mixed_vote_weight) * std::log(t[3] + vote_floor);
      scores[label] = s;
    }
    return scores;
  }

 private:
  using Terms = std::map<std::uint32_t, std::array<double, 4>>;
  using Ranked = std::vector<std::pair<double, std::uint32_t>>;

  static double length(const data::SparseRow& row) {
    double squares = 0;
    for (const float v : row.value) squares += static_cast<double>(v) * static_cast<double>(v);
    return squares > 0 ? std::sqrt(squares) : 1;
  }
  static double dot(const data::SparseRow& a, const data::SparseRow& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.index.size(); ++i) {
      for (std::size_t j = 0; j < b.index.size(); ++j) {
        if (a.index[i] == b.index[j])
          sum += static_cast<double>(a.value[i]) * static_cast<double>(b.value[j]);
      }
    }
    return sum;
  }
  [[nodiscard]] std::vector<double> hidden_of(const data::SparseRow& query) const {
    std::vector<double> h(model_.network.shape.hidden, 0);
    for (std::size_t i = 0; i < query.index.size(); ++i) {
      for (std::size_t j = 0; j < h.size(); ++j) {
        h[j] += static_cast<double>(query.value[i]) *
                static_cast<double>(model_.network.embedding.weights(query.index[i])[j]);
      }
    }
    for (double& v : h) v = std::max(v, 0.0);
    return h;
  }
  // The best n as (value, id).
  [[nodiscard]] static Ranked top(const std::vector<double>& values, std::size_t n) {
    Ranked list;
    for (std::uint32_t i = 0; i < values.size(); ++i) list.emplace_back(-values[i], i);
    std::sort(list.begin(), list.end());
    list.resize(std::min(n, list.size()));
    for (auto& entry : list) entry.first = -entry.first;
    return list;
  }
  [[nodiscard]] Ranked nearest(const std::vector<double>& cosines, bool positive) const {
    Ranked list = top(cosines, options_.fusion.neighbours);
    if (positive) std::erase_if(list, [](const auto& row) { return row.first <= 0; });
    return list;
  }
  void add_net(const std::vector<double>& hidden, Terms& terms) const {
    std::vector<double> scores(model_.network.shape.labels);
    for (std::size_t l = 0; l < scores.size(); ++l) {
      scores[l] = static_cast<double>(model_.network.bias[l]);
      for (std::size_t j = 0; j < hidden.size(); ++j) {
        scores[l] += hidden[j] * static_cast<double>(model_.network.output.weights(l)[j]);
      }
    }
    const Ranked best_labels = top(scores, options_.fusion.candidates);
    double z = 0;
    for (const auto& [s, l] : best_labels) z += std::exp(s);
    for (const auto& [s, l] : best_labels) terms[l][0] = std::exp(s) / z;
  }
  void add_votes(const std::vector<double>& cosines, double power, std::size_t slot, Terms& terms) const {
    Ranked rows = nearest(cosines, true);
    double sum = 0;
    for (const auto& [s, r] : rows) sum += std::pow(s, power);
    for (const auto& [s, r] : rows) {
      for (const std::uint32_t l : model_.instances->labels().row(r))
        terms[l][slot] += std::pow(s, power) / sum;
    }
  }
  [[nodiscard]] std::vector<double> input_cosines(const data::SparseRow& query) const {
    std::vector<double> out;
    if (!model_.instances) return out;
    for (std::size_t r = 0; r < model_.instances->rows(); ++r) {
      out.push_back(dot(query, model_.instances->features().row(r)) / length(query));
    }
    return out;
  }
  [[nodiscard]] std::vector<double> cosines_to_hidden(const std::vector<double>& hidden) const {
    std::vector<double> out;
    if (!model_.instances) return out;
    double squares = 1e-300;
    for (const double v : hidden) squares += v * v;
    std::vector<float> row(hidden.size());
    for (std::size_t r = 0; r < model_.instances->rows(); ++r) {
      best().from_bf16(model_.instances->hidden.data() + r * hidden.size(), row.data(), hidden.size());
      double sum = 0;
      for (std::size_t j = 0; j < hidden.size(); ++j) sum += static_cast<double>(row[j]) * hidden[j];
      out.push_back(sum / std::sqrt(squares));
    }
    return out;
  }
  [[nodiscard]] double centroid(const data::SparseRow& query, std::uint32_t label) const {
    std::map<std::uint32_t, double> sum;
    for (std::size_t r = 0; r < model_.instances->rows(); ++r) {
      const auto labels = model_.instances->labels().row(r);
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) continue;
      const auto row = model_.instances->features().row(r);
      for (std::size_t i = 0; i < row.index.size(); ++i)
        sum[row.index[i]] += static_cast<double>(row.value[i]);
    }
    double squares = 0;
    double product = 0;
    for (const auto& [f, v] : sum) squares += v * v;
    for (std::size_t i = 0; i < query.index.size(); ++i) {
      if (const auto at = sum.find(query.index[i]); at != sum.end()) {
        product += at->second * static_cast<double>(query.value[i]);
      }
    }
    return squares > 0 ? product / std::sqrt(squares) / length(query) : 0;
  }

  const Model& model_;
  PredictOptions options_;
};

PredictionBlock predict(const Model& model, const PredictOptions& options, const data::SparseRows& queries,
                        std::size_t top_k, int workers = 1) {
  host::SimCompute compute({.workers = workers, .seed = 5});
  auto predictor = Predictor::create(model, best(), compute, options);
  EXPECT_TRUE(predictor.ok()) << predictor.error().message();
  PredictionBlock out;
  (*predictor)->predict(queries, top_k, out);
  return out;
}

// Every combination of parts that can predict, with and without the mixed vote.
std::vector<PredictOptions> all_options() {
  std::vector<PredictOptions> all;
  for (int bits = 0; bits < 16; ++bits) {
    PredictOptions options{.fusion = {.candidates = 15, .neighbours = 10},
                           .parts = {.net = (bits & 1) != 0,
                                     .input_neighbours = (bits & 2) != 0,
                                     .hidden_neighbours = (bits & 4) != 0,
                                     .centroids = (bits & 8) != 0}};
    if ((bits & 7) == 0) continue;
    all.push_back(options);
    if ((bits & 6) != 6) continue;
    options.fusion.mixed_vote_weight = 0.7F;
    all.push_back(options);
  }
  return all;
}

// With any parts the labels and scores are those of the formulas: the i-th best score is the slow model's
// i-th best, and each label's score is its own.
TEST(Predictor, MatchesTheFormulas) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Model model = random_model({.seed = seed});
    Rng rng(seed, Purpose::kTest, 1);
    OwnedRows queries = random_rows(rng, 50, 12);
    for (float& v : queries.value) v *= 3;  // length 3: cosines do not mind
    for (const PredictOptions& options : all_options()) {
      SCOPED_TRACE(::testing::Message()
                   << "seed " << seed << " parts " << options.parts.net << options.parts.input_neighbours
                   << options.parts.hidden_neighbours << options.parts.centroids << " mixed "
                   << options.fusion.mixed_vote_weight);
      const SlowPredictor slow(model, options);
      const PredictionBlock block = predict(model, options, queries.view(), 7);
      for (std::size_t q = 0; q < block.queries(); ++q) {
        const auto expected = slow.scores(queries.view().row(q));
        std::vector<double> sorted;
        sorted.reserve(expected.size());
        for (const auto& [label, score] : expected) sorted.push_back(-score);
        std::sort(sorted.begin(), sorted.end());
        ASSERT_EQ(block.count[q], std::min<std::size_t>(7, expected.size())) << q;
        for (std::size_t i = 0; i < block.count[q]; ++i) {
          const Scored& entry = block.row(q)[i];
          const double score = static_cast<double>(entry.score);
          const double tolerance = 2e-4 * (1 + std::abs(score));
          ASSERT_NEAR(score, -sorted[i], tolerance) << q << " rank " << i;
          ASSERT_TRUE(expected.contains(entry.id));
          ASSERT_NEAR(score, expected.at(entry.id), tolerance) << q << " label " << entry.id;
        }
      }
    }
  }
}

// The answer to a query is the same, bit for bit, for any number of workers and in a block of any size.
TEST(Predictor, AnswersDependOnTheQueryAlone) {
  const Model model = random_model({.labels = 500, .rows = 700, .seed = 3});
  Rng rng(9, Purpose::kTest, 1);
  const OwnedRows queries = random_rows(rng, 50, 300);
  PredictOptions options;
  options.fusion.mixed_vote_weight = 1;
  const PredictionBlock all = predict(model, options, queries.view(), 10);
  for (const int workers : {2, 3, 5}) {
    const PredictionBlock other = predict(model, options, queries.view(), 10, workers);
    EXPECT_EQ(all.entries, other.entries) << workers;
    EXPECT_EQ(all.count, other.count) << workers;
  }
  host::SimCompute compute({.workers = 2});
  const auto predictor = Predictor::create(model, best(), compute, options);
  PredictionBlock out;
  for (std::size_t size = 1; size <= 40; ++size) {
    for (const std::size_t first : {std::size_t{0}, 6 * size, 300 - size}) {
      const std::uint32_t begin = queries.begin[first];
      std::vector<std::uint32_t> begins;
      for (std::size_t q = first; q <= first + size; ++q) begins.push_back(queries.begin[q] - begin);
      const auto index = std::span(queries.index).subspan(begin, begins.back());
      const auto value = std::span(queries.value).subspan(begin, begins.back());
      (*predictor)->predict({begins, index, value}, 10, out);
      for (std::size_t q = 0; q < size; ++q) {
        ASSERT_TRUE(std::ranges::equal(out.row(q), all.row(first + q)))
            << "query " << q << " of " << size << " from " << first;
      }
    }
  }
}

// The net alone ranks as many labels as asked for, more than its candidates and every label once.
TEST(Predictor, NetAloneRanksAllLabels) {
  const Model model = random_model({.labels = 130, .rows = 0, .seed = 4});
  Rng rng(2, Purpose::kTest, 1);
  const OwnedRows queries = random_rows(rng, 50, 3);
  const PredictionBlock block = predict(model, default_options(model), queries.view(), 200);
  for (std::size_t q = 0; q < 3; ++q) {
    ASSERT_EQ(block.count[q], 130U);
    std::vector<bool> seen(130);
    for (const Scored& entry : block.row(q)) seen[entry.id] = true;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 130);
    EXPECT_TRUE(std::is_sorted(block.row(q).begin(), block.row(q).end(), ranks_before));
  }
}

// No queries give no answers; a query without features still gets the net's.
TEST(Predictor, EmptyQueries) {
  const Model model = random_model({});
  const std::vector<std::uint32_t> none = {0};
  EXPECT_EQ(predict(model, {}, {none, {}, {}}, 5).queries(), 0U);
  EXPECT_EQ(predict(model, {}, {{}, {}, {}}, 5).queries(), 0U);
  const std::vector<std::uint32_t> one = {0, 0};
  const PredictionBlock block = predict(model, {}, {one, {}, {}}, 5);
  ASSERT_EQ(block.count[0], 5U);
  for (const Scored& entry : block.row(0)) EXPECT_TRUE(std::isfinite(entry.score));
}

// What cannot predict is refused before any work, as the user's mistake.
TEST(Predictor, RefusesImpossibleOptions) {
  const Model bare = random_model({.rows = 0});
  const Model full = random_model({});
  host::SimCompute compute({});
  const auto refused = [&](const Model& model, const PredictOptions& options) {
    const auto predictor = Predictor::create(model, best(), compute, options);
    return !predictor.ok() && predictor.error().kind == ErrorKind::kUsage;
  };
  EXPECT_TRUE(refused(bare, {}));
  EXPECT_FALSE(refused(bare, {.fusion = {}, .parts = kNetAlone}));
  EXPECT_TRUE(refused(
      full,
      {.fusion = {},
       .parts = {.net = false, .input_neighbours = false, .hidden_neighbours = false, .centroids = true}}));
  EXPECT_TRUE(refused(full, {.fusion = {.candidates = 0}, .parts = {}}));
  EXPECT_TRUE(refused(full, {.fusion = {.net_floor = 0}, .parts = {}}));
  EXPECT_TRUE(refused(full, {.fusion = {.input_vote_power = std::nanf("")}, .parts = {}}));
  EXPECT_EQ(default_options(bare).parts, kNetAlone);
  EXPECT_EQ(default_options(full).parts, PredictParts{});
}

}  // namespace
}  // namespace gossamer::engine
