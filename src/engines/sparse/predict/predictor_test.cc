// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "engines/sparse/model/test_random_model.h"
#include "host/sim/compute.h"

namespace gossamer::sparse_engine {
namespace {

using testing::best_kernels;
using testing::OwnedRows;
using testing::random_model;
using testing::random_rows;

// The fused scores of all candidates of one query, from the formulas alone, in double and without any index.
class SlowPredictor {
 public:
  SlowPredictor(const Model& model, const PredictOptions& options) : model_(model), options_(options) {}

  // The scores of a query as it came.
  [[nodiscard]] std::map<std::uint32_t, double> scores(const data::SparseRow& raw) const {
    const FusionOptions& fusion = options_.fusion;
    const PredictParts& parts = options_.parts;
    std::vector<float> seen(raw.value.size());
    model_.weighting.apply(raw, seen);
    const std::vector<double> hidden = hidden_of({raw.index, seen});
    std::vector<float> compared(raw.value.size());
    text::comparison_weighting(model_.weighting, model_.neighbours).apply(raw, compared);
    const data::SparseRow query{raw.index, compared};
    const std::vector<double> net = net_scores(hidden);
    double best_score = 0;
    Terms votes;
    if (parts.net) {
      const Ranked named = top(net, fusion.candidates);
      best_score = named.front().first;
      for (const auto& [score, label] : named) votes[label];
    }
    const auto input = input_cosines(query);
    const auto hidden_cosines = cosines_to_hidden(hidden);
    if (parts.input_neighbours) {
      add_votes(input, static_cast<double>(fusion.input_vote_power), FusionTerm::kInput, votes);
      add_votes(input, static_cast<double>(fusion.sharp_vote_power), FusionTerm::kSharp, votes);
    }
    if (parts.hidden_neighbours)
      add_votes(hidden_cosines, static_cast<double>(fusion.hidden_vote_power), FusionTerm::kHidden, votes);
    if (mixes(fusion, parts)) {
      add_votes(means_of(input, hidden_cosines), static_cast<double>(fusion.mixed_vote_power),
                FusionTerm::kMixed, votes);
    }
    std::map<std::uint32_t, double> scores;
    const auto weight = [&](FusionTerm term) { return static_cast<double>(fusion.weights[term]); };
    for (const auto& [label, t] : votes) {
      if (alone()) {
        scores[label] = parts.net                ? net[label] - best_score
                        : parts.input_neighbours ? std::log(t[FusionTerm::kInput])
                                                 : std::log(t[FusionTerm::kHidden]);
        continue;
      }
      double s = 0;
      if (parts.net) {
        const double range = parts.need_instances() ? std::max(net[label] - best_score, -20.0) : 0;
        s += weight(FusionTerm::kNet) * range;
      }
      if (parts.centroids) s += weight(FusionTerm::kCentroid) * centroid(query, label);
      const auto add = [&, &of = t](FusionTerm term, bool on) {
        if (on) s += weight(term) * std::log(static_cast<double>(of[term] + fusion.vote_floor));
      };
      add(FusionTerm::kInput, parts.input_neighbours);
      add(FusionTerm::kSharp, parts.input_neighbours);
      add(FusionTerm::kHidden, parts.hidden_neighbours);
      add(FusionTerm::kMixed, mixes(fusion, parts));
      scores[label] = s;
    }
    return scores;
  }

 private:
  using Terms = std::map<std::uint32_t, FusionVector>;
  using Ranked = std::vector<std::pair<double, std::uint32_t>>;

  [[nodiscard]] bool alone() const {
    const PredictParts& parts = options_.parts;
    return int{parts.net} + int{parts.input_neighbours} + int{parts.hidden_neighbours} +
               int{parts.centroids} ==
           1;
  }
  // The means for rows in either list of neighbours; 0 elsewhere.
  [[nodiscard]] std::vector<double> means_of(const std::vector<double>& input,
                                             const std::vector<double>& hidden) const {
    std::vector<double> means(input.size(), 0);
    for (const auto& list : {nearest(input, true), nearest(hidden, false)}) {
      for (const auto& row : list) means[row.second] = (input[row.second] + hidden[row.second]) / 2;
    }
    return means;
  }

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
    for (const sparse::DenseLayer& layer : model_.network.dense) {
      std::vector<double> z;
      for (std::size_t unit = 0; unit < layer.weights.rows(); ++unit) {
        double sum = static_cast<double>(layer.bias[unit]);
        for (std::size_t j = 0; j < h.size(); ++j) {
          sum += static_cast<double>(layer.weights.weights(unit)[j]) * h[j];
        }
        z.push_back(std::max(sum, 0.0));
      }
      h = std::move(z);
    }
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
  [[nodiscard]] std::vector<double> net_scores(const std::vector<double>& hidden) const {
    std::vector<double> scores(model_.network.shape.labels);
    for (std::size_t l = 0; l < scores.size(); ++l) {
      scores[l] = static_cast<double>(model_.network.bias[l]);
      for (std::size_t j = 0; j < hidden.size(); ++j) {
        scores[l] += hidden[j] * static_cast<double>(model_.network.output.weights(l)[j]);
      }
    }
    return scores;
  }
  void add_votes(const std::vector<double>& cosines, double power, FusionTerm term, Terms& terms) const {
    Ranked rows = nearest(cosines, true);
    double sum = 0;
    for (const auto& [s, r] : rows) sum += std::pow(s, power);
    for (const auto& [s, r] : rows) {
      for (const std::uint32_t l : model_.instances->labels().row(r))
        terms[l][term] += static_cast<float>(std::pow(s, power) / sum);
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
      best_kernels().from_bf16(model_.instances->hidden.data() + r * hidden.size(), row.data(),
                               hidden.size());
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
  auto predictor = Predictor::create(model, best_kernels(), compute, options);
  EXPECT_TRUE(predictor.ok()) << predictor.error().message();
  PredictionBlock out;
  EXPECT_TRUE((*predictor)->predict(queries, top_k, out).ok());
  return out;
}

// Every combination of parts that can predict, with and without the mixed vote. Each vote has its own power.
std::vector<PredictOptions> all_options() {
  std::vector<PredictOptions> all;
  for (int bits = 0; bits < 16; ++bits) {
    PredictOptions options{.fusion = {.candidates = 15,
                                      .neighbours = 10,
                                      .input_vote_power = 3,
                                      .sharp_vote_power = 7,
                                      .hidden_vote_power = 5,
                                      .mixed_vote_power = 6},
                           .parts = {.net = (bits & 1) != 0,
                                     .input_neighbours = (bits & 2) != 0,
                                     .hidden_neighbours = (bits & 4) != 0,
                                     .centroids = (bits & 8) != 0}};
    if ((bits & 7) == 0) continue;
    all.push_back(options);
    if ((bits & 6) != 6) continue;
    options.fusion.weights[FusionTerm::kMixed] = 0;
    all.push_back(options);
  }
  return all;
}

// Labels and scores equal those of the formulas, with any parts and hidden layers of any width. The i-th best
// score is the slow model's i-th best, and each label's score is its own. So is its share of the softmax over
// all candidates.
TEST(Predictor, MatchesTheFormulas) {
  std::uint64_t seed = 0;
  for (const std::uint32_t hidden : {16U, 32U, 48U, 96U, 128U, 1024U}) {
    // Two of them with further hidden layers.
    const std::vector<std::size_t> dense = hidden == 48   ? std::vector<std::size_t>{80, 32}
                                           : hidden == 96 ? std::vector<std::size_t>{128}
                                                          : std::vector<std::size_t>{};
    const Model model = random_model({.hidden = hidden, .dense = dense, .seed = ++seed});
    Rng rng(seed, Purpose::kTest, 1);
    OwnedRows queries = random_rows(rng, 50, 12);
    for (float& v : queries.value) v *= 30;  // as counts, beyond the point where the scales differ
    for (const PredictOptions& options : all_options()) {
      SCOPED_TRACE(::testing::Message()
                   << "hidden " << hidden << " parts " << options.parts.net << options.parts.input_neighbours
                   << options.parts.hidden_neighbours << options.parts.centroids << " mixed "
                   << options.fusion.weights[FusionTerm::kMixed]);
      const SlowPredictor slow(model, options);
      const PredictionBlock block = predict(model, options, queries.view(), 7);
      for (std::size_t q = 0; q < block.queries(); ++q) {
        const auto expected = slow.scores(queries.view().row(q));
        std::vector<double> sorted;
        sorted.reserve(expected.size());
        for (const auto& [label, score] : expected) sorted.push_back(-score);
        std::sort(sorted.begin(), sorted.end());
        double partition = 0;
        for (const double score : sorted) partition += std::exp(sorted.front() - score);
        ASSERT_EQ(block.count[q], std::min<std::size_t>(7, expected.size())) << q;
        for (std::size_t i = 0; i < block.count[q]; ++i) {
          const Scored& entry = block.row(q)[i];
          const double score = static_cast<double>(entry.score);
          const double tolerance = 2e-4 * (1 + std::abs(score));
          ASSERT_NEAR(score, -sorted[i], tolerance) << q << " rank " << i;
          ASSERT_TRUE(expected.contains(entry.id));
          ASSERT_NEAR(score, expected.at(entry.id), tolerance) << q << " label " << entry.id;
          const double share = std::exp(sorted.front() + expected.at(entry.id)) / partition;
          ASSERT_NEAR(static_cast<double>(block.share[q * 7 + i]), share, 0.01) << q << " rank " << i;
        }
      }
    }
  }
}

// The answer to a query is the same, bit for bit, for any number of workers and in a block of any size. It
// has the probabilities with it.
TEST(Predictor, AnswersDependOnTheQueryAlone) {
  const Model model = random_model({.labels = 500, .rows = 700, .seed = 3});
  Rng rng(9, Purpose::kTest, 1);
  const OwnedRows queries = random_rows(rng, 50, 300);
  PredictOptions options;
  options.fusion.calibration = Calibration{.log = 1, .rest = 0.5F, .offset = 0.25F};
  const PredictionBlock all = predict(model, options, queries.view(), 10);
  EXPECT_NE(all.probability[0], all.probability[10]);
  for (const int workers : {2, 3, 5}) {
    const PredictionBlock other = predict(model, options, queries.view(), 10, workers);
    EXPECT_EQ(all.entries, other.entries) << workers;
    EXPECT_EQ(all.count, other.count) << workers;
    EXPECT_EQ(all.share, other.share) << workers;
    EXPECT_EQ(all.probability, other.probability) << workers;
  }
  const auto chances = [](const std::vector<float>& of_block, std::size_t q) {
    return std::span(of_block).subspan(q * 10, 10);
  };
  host::SimCompute compute({.workers = 2});
  const auto predictor = Predictor::create(model, best_kernels(), compute, options);
  PredictionBlock out;
  for (std::size_t size = 1; size <= 40; ++size) {
    for (const std::size_t first : {std::size_t{0}, 6 * size, 300 - size}) {
      const std::uint32_t begin = queries.begin[first];
      std::vector<std::uint32_t> begins;
      for (std::size_t q = first; q <= first + size; ++q) begins.push_back(queries.begin[q] - begin);
      const auto index = std::span(queries.index).subspan(begin, begins.back());
      const auto value = std::span(queries.value).subspan(begin, begins.back());
      EXPECT_TRUE((*predictor)->predict({begins, index, value}, 10, out).ok());
      for (std::size_t q = 0; q < size; ++q) {
        ASSERT_TRUE(std::ranges::equal(out.row(q), all.row(first + q)))
            << "query " << q << " of " << size << " from " << first;
        ASSERT_TRUE(std::ranges::equal(chances(out.share, q), chances(all.share, first + q)));
        ASSERT_TRUE(std::ranges::equal(chances(out.probability, q), chances(all.probability, first + q)));
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

// Options that cannot predict are refused before any work, as the user's mistake.
TEST(Predictor, RefusesImpossibleOptions) {
  const Model bare = random_model({.rows = 0});
  const Model full = random_model({});
  host::SimCompute compute({});
  const auto refused = [&](const Model& model, const PredictOptions& options) {
    const auto predictor = Predictor::create(model, best_kernels(), compute, options);
    return !predictor.ok() && predictor.error().kind == ErrorKind::kUsage;
  };
  EXPECT_TRUE(refused(bare, {}));
  EXPECT_FALSE(refused(bare, {.fusion = {}, .parts = kNetAlone}));
  EXPECT_TRUE(refused(
      full,
      {.fusion = {},
       .parts = {.net = false, .input_neighbours = false, .hidden_neighbours = false, .centroids = true}}));
  EXPECT_TRUE(refused(full, {.fusion = {.candidates = 0}, .parts = {}}));
  EXPECT_TRUE(refused(full, {.fusion = {.vote_floor = 0}, .parts = {}}));
  EXPECT_TRUE(refused(full, {.fusion = {.input_vote_power = std::nanf("")}, .parts = {}}));
  EXPECT_EQ(default_options(bare).parts, kNetAlone);
  EXPECT_EQ(default_options(full).parts, PredictParts{});
}

}  // namespace
}  // namespace gossamer::sparse_engine
