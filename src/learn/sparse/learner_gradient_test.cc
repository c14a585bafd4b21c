// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "learn/sparse/test_random_problem.h"
#include "learn/sparse/test_reference_learner.h"

namespace gossamer::sparse {
namespace {

using kernels::Activation;
using kernels::Element;

struct Case {
  Activation activation = Activation::kRelu;
  double dropout = 0;
  LogQ logq = LogQ::kNone;
  NegativeOptions negatives = {};
  Element element = Element::kF32;
  int workers = 1;
  std::optional<HashNegativeOptions> hashed = {};
};

LearnerOptions options_of(const Case& c, std::size_t batch_max) {
  return {.batch_max = batch_max,
          .activation = c.activation,
          .dropout = c.dropout,
          .negatives = c.negatives,
          .logq = c.logq,
          .element = c.element,
          .optimizer = {.kind = OptimizerKind::kSgd},
          .seed = 11};
}

std::string describe(const Case& c, kernels::Isa isa) {
  return fmt::format("activation {} dropout {} logq {} negatives {} element {} workers {} isa {}",
                     static_cast<int>(c.activation), c.dropout, static_cast<int>(c.logq),
                     static_cast<int>(c.negatives.kind), kernels::name(c.element), c.workers,
                     kernels::name(isa));
}

double largest(Parameters& p) {
  double most = 0;
  for (const auto* tensor : p.all()) {
    for (const double x : *tensor) most = std::max(most, std::abs(x));
  }
  return most;
}

// Takes one step of plain SGD with learning rate 1. The gradient is then the weights before minus those
// after; it must agree with the gradient of the reference loss. Errors are relative to the largest component.
void expect_gradient(const Case& c, const ProblemShape& shape, kernels::Isa isa) {
  SCOPED_TRACE(describe(c, isa));
  const StepNumber step{3};
  const LabelCounts counts = random_counts(shape.network.labels, 5);
  Network network = random_network(shape.network, counts, 6);
  const OwnedBatch owned = random_batch(shape, 7);
  const LearnerOptions options = options_of(c, shape.samples + 5);
  Parameters before = parameters_of(network);
  ReferenceLearner reference(shape.network, before, counts, options);
  host::SimCompute compute({.workers = c.workers});
  std::optional<HashNegatives> hashed;
  const auto& kernels = kernels::kernels_for(isa);
  if (c.hashed) hashed.emplace(HashNegatives::Parts{network, kernels, compute}, *c.hashed);
  Learner learner({.network = network,
                   .labels = counts,
                   .kernels = kernels,
                   .compute = compute,
                   .hashed = hashed ? &*hashed : nullptr},
                  options);
  const StepReport report = learner.step(owned.view(), step, {.learning_rate = 1});
  if (hashed) {
    reference.sets = hashed->found().sets;
    for (std::size_t sample = 0; sample < hashed->found().asking(shape.samples); ++sample) {
      const auto rows = hashed->found().of(sample);
      reference.found.emplace_back(rows.begin(), rows.end());
    }
  }
  Parameters expected = reference.gradient(owned.view(), step);
  Parameters after = parameters_of(network);

  const double tolerance = c.element == Element::kF32 ? 3e-5 : 2e-2;
  EXPECT_NEAR(report.loss, reference.loss(owned.view(), step), c.element == Element::kF32 ? 1e-5 : 2e-2);
  EXPECT_EQ(report.active_rows, reference.active_set(owned.view(), step).size());
  const double scale = largest(expected);
  EXPECT_GT(scale, 1e-3);
  const auto was = before.all();
  const auto is = after.all();
  const auto want = expected.all();
  for (std::size_t tensor = 0; tensor < want.size(); ++tensor) {
    for (std::size_t i = 0; i < want[tensor]->size(); ++i) {
      const double got = (*was[tensor])[i] - (*is[tensor])[i];
      ASSERT_NEAR(got / scale, (*want[tensor])[i] / scale, tolerance) << "tensor " << tensor << " at " << i;
    }
  }
}

constexpr ProblemShape kTiny = {.network = {.features = 7, .labels = 9, .hidden = 5}, .samples = 6};
// More active rows than a panel, samples without labels or without features, a stride of two blocks.
constexpr ProblemShape kSmall = {.network = {.features = 12, .labels = 90, .hidden = 33},
                                 .samples = 35,
                                 .features_each = 3,
                                 .labels_each = 5,
                                 .unlabelled = true};

// Every activation with every correction, with and without dropout and drawn negatives, gives the loss and
// the gradient of the reference.
TEST(LearnerGradient, MatchesFiniteDifferences) {
  const NegativeOptions drawn = {.kind = Negatives::kFrequency, .sampled = 4};
  for (const Activation activation : {Activation::kRelu, Activation::kIdentity, Activation::kTanh}) {
    for (const LogQ logq : {LogQ::kNone, LogQ::kAll, LogQ::kExact}) {
      for (const double dropout : {0.0, 0.4}) {
        for (const NegativeOptions& negatives : {NegativeOptions{}, drawn}) {
          expect_gradient(
              {.activation = activation, .dropout = dropout, .logq = logq, .negatives = negatives}, kTiny,
              kernels::best_isa());
        }
      }
    }
  }
}

// The same holds on every instruction set of this machine, for both element types, on several workers.
TEST(LearnerGradient, HoldsForEveryIsaAndElement) {
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::supported(isa)) continue;
    for (const Element element : {Element::kF32, Element::kBf16}) {
      for (const int workers : {1, 3}) {
        expect_gradient({.dropout = 0.25, .logq = LogQ::kExact, .element = element, .workers = workers},
                        kTiny, isa);
      }
    }
  }
}

// Several panels, short panels, unlabelled and empty samples change nothing about it.
TEST(LearnerGradient, HoldsOverSeveralPanels) {
  for (const Element element : {Element::kF32, Element::kBf16}) {
    expect_gradient({.activation = Activation::kTanh, .logq = LogQ::kAll, .element = element, .workers = 2},
                    kSmall, kernels::best_isa());
  }
}

// The gradient is right with labels that hash tables find: for every correction, with and without draws, for
// few, nearly all and all samples asking.
TEST(LearnerGradient, HoldsWithHashNegatives) {
  for (const LogQ logq : {LogQ::kNone, LogQ::kAll, LogQ::kExact}) {
    for (const NegativeOptions& negatives :
         {NegativeOptions{}, NegativeOptions{.kind = Negatives::kUniform, .sampled = 4}}) {
      for (const std::size_t queries : {std::size_t{2}, std::size_t{5}, std::size_t{6}}) {
        SCOPED_TRACE(queries);
        const HashNegativeOptions hashed = {
            .functions = 2, .tables = 6, .queries = queries, .found = 2 * queries};
        expect_gradient({.logq = logq, .negatives = negatives, .workers = 2, .hashed = hashed}, kTiny,
                        kernels::best_isa());
      }
    }
  }
}

// The same with a set for each sample, over several panels too.
TEST(LearnerGradient, HoldsWithOwnSets) {
  for (const ProblemShape& shape : {kTiny, kSmall}) {
    for (const Element element : {Element::kF32, Element::kBf16}) {
      const HashNegativeOptions hashed = {.functions = 2,
                                          .tables = 6,
                                          .selection = HashSelection::kRandom,
                                          .sets = HashSets::kOwn,
                                          .queries = shape.samples,
                                          .found = 3 * shape.samples};
      expect_gradient({.element = element, .workers = 3, .hashed = hashed}, shape, kernels::best_isa());
    }
  }
}

// Any width of the hidden layer: one that fills a vector, one that does not, and the widest in use.
TEST(LearnerGradient, HoldsForEveryWidth) {
  for (const std::size_t hidden : {16U, 32U, 80U, 96U, 1024U}) {
    const ProblemShape shape = {
        .network = {.features = 4, .labels = 5, .hidden = hidden}, .samples = 2, .features_each = 2};
    for (const Element element : {Element::kF32, Element::kBf16}) {
      SCOPED_TRACE(hidden);
      expect_gradient({.dropout = 0.25, .logq = LogQ::kAll, .element = element, .workers = 2}, shape,
                      kernels::best_isa());
    }
  }
}

// With one and two further dense layers the gradient of every weight and bias agrees with the reference.
// Tried are every activation, dropout in each layer, every instruction set, and more workers than blocks of
// rows.
TEST(LearnerGradient, HoldsThroughDenseLayers) {
  ProblemShape one = kTiny;
  one.network.dense = {16};
  ProblemShape two = kSmall;
  two.network = {.features = 5, .labels = 70, .hidden = 6, .dense = {48, 16}};
  for (const Activation activation : {Activation::kRelu, Activation::kIdentity, Activation::kTanh}) {
    for (const double dropout : {0.0, 0.4}) {
      expect_gradient({.activation = activation, .dropout = dropout, .logq = LogQ::kExact, .workers = 2}, one,
                      kernels::best_isa());
    }
  }
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::supported(isa)) continue;
    expect_gradient({.activation = Activation::kTanh, .element = Element::kBf16, .workers = 1}, one, isa);
  }
  expect_gradient({.activation = Activation::kTanh, .dropout = 0.25, .logq = LogQ::kAll, .workers = 5}, two,
                  kernels::best_isa());
}

// The gradient is right for a batch of one, and for a batch with the same labels in all samples.
TEST(LearnerGradient, HoldsForOneSampleAndForEqualLabels) {
  ProblemShape one = kTiny;
  one.samples = 1;
  for (const LogQ logq : {LogQ::kNone, LogQ::kAll, LogQ::kExact}) {
    expect_gradient({.logq = logq, .negatives = {.kind = Negatives::kUniform, .sampled = 3}, .workers = 2},
                    one, kernels::best_isa());
  }
  ProblemShape equal = kTiny;
  equal.network.labels = 2;
  equal.labels_each = 40;  // practically always both labels
  expect_gradient({.negatives = {.kind = Negatives::kUniform, .sampled = 3}}, equal, kernels::best_isa());
}

// With so many draws that every label is active and q is 1, the exact correction's loss equals the loss of
// the full softmax. With fewer draws it comes closer to it as the active set grows.
TEST(LearnerGradient, LossApproachesTheFullSoftmax) {
  const LabelCounts counts = random_counts(40, 5);
  const ProblemShape shape = {.network = {.features = 7, .labels = 40, .hidden = 5}, .samples = 4};
  const OwnedBatch owned = random_batch(shape, 7);
  std::set<std::uint32_t> all;
  for (std::uint32_t label = 0; label < 40; ++label) all.insert(label);
  double last_error = 1e9;
  for (const std::size_t sampled : {std::size_t{10}, std::size_t{60}, std::size_t{4000}}) {
    const LearnerOptions options =
        options_of({.logq = LogQ::kExact, .negatives = {.kind = Negatives::kUniform, .sampled = sampled}}, 4);
    LearnerOptions full = options;
    full.logq = LogQ::kNone;
    Network network = random_network(shape.network, counts, 6);
    Parameters before = parameters_of(network);
    ReferenceLearner reference(shape.network, before, counts, full);
    host::SimCompute compute({.workers = 2});
    Learner learner({.network = network,
                     .labels = counts,
                     .kernels = kernels::kernels_for(kernels::best_isa()),
                     .compute = compute},
                    options);
    double error = 0;
    for (std::uint64_t t = 0; t < 30; ++t) {
      const double want = reference.loss_over(owned.view(), StepNumber{t}, all);
      error += std::abs(learner.step(owned.view(), StepNumber{t}, {.learning_rate = 0}).loss - want) / 30;
    }
    EXPECT_LT(error, last_error) << sampled;
    last_error = error;
  }
  EXPECT_LT(last_error, 1e-5);
}

// Distance of a step's gradient to `want`, relative to the length of `want`.
double gradient_error(const LearnerOptions& options, const ProblemShape& shape, const LabelCounts& counts,
                      const OwnedBatch& batch, StepNumber step, Parameters& want,
                      const std::optional<HashNegativeOptions>& hashed = {}) {
  Network network = random_network(shape.network, counts, 6);
  Parameters before = parameters_of(network);
  host::SimCompute compute({.workers = 2});
  const auto& kernels = kernels::kernels_for(kernels::best_isa());
  std::optional<HashNegatives> negatives;
  if (hashed) negatives.emplace(HashNegatives::Parts{network, kernels, compute}, *hashed);
  Learner learner({.network = network,
                   .labels = counts,
                   .kernels = kernels,
                   .compute = compute,
                   .hashed = negatives ? &*negatives : nullptr},
                  options);
  learner.step(batch.view(), step, {.learning_rate = 1});
  Parameters after = parameters_of(network);
  double error = 0;
  double length = 0;
  for (std::size_t tensor = 0; tensor < want.all().size(); ++tensor) {
    const std::vector<double>& expected = *want.all()[tensor];
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double got = (*before.all()[tensor])[i] - (*after.all()[tensor])[i];
      error += (got - expected[i]) * (got - expected[i]);
      length += expected[i] * expected[i];
    }
  }
  return std::sqrt(error / length);
}

// The exact correction's gradient comes closer to the full softmax's as the active set grows, and meets it
// where every label is active.
TEST(LearnerGradient, ApproachesTheFullSoftmax) {
  const LabelCounts counts = random_counts(40, 5);
  const ProblemShape shape = {.network = {.features = 7, .labels = 40, .hidden = 5}, .samples = 4};
  const OwnedBatch owned = random_batch(shape, 7);
  const auto with_draws = [](LogQ logq, std::size_t sampled) {
    return options_of({.logq = logq, .negatives = {.kind = Negatives::kUniform, .sampled = sampled}}, 4);
  };
  Network network = random_network(shape.network, counts, 6);
  ReferenceLearner full(shape.network, parameters_of(network), counts, with_draws(LogQ::kNone, 4000));
  ASSERT_EQ(full.active_set(owned.view(), StepNumber{0}).size(), 40U);
  Parameters want = full.gradient(owned.view(), StepNumber{0});
  double last_error = 1e9;
  for (const std::size_t sampled : {std::size_t{10}, std::size_t{60}, std::size_t{4000}}) {
    double error = 0;
    for (std::uint64_t t = 0; t < 30; ++t) {
      error +=
          gradient_error(with_draws(LogQ::kExact, sampled), shape, counts, owned, StepNumber{t}, want) / 30;
    }
    EXPECT_LT(error, 0.8 * last_error) << sampled;
    last_error = error;
  }
  EXPECT_LT(last_error, 1e-4);
}

// With labels that hash tables find, the gradient also comes closer to the full softmax's, the more they
// find. It meets it when they find all.
TEST(LearnerGradient, ApproachesTheFullSoftmaxWithHashNegatives) {
  const LabelCounts counts = random_counts(40, 5);
  const ProblemShape shape = {.network = {.features = 7, .labels = 40, .hidden = 5}, .samples = 4};
  const OwnedBatch owned = random_batch(shape, 7);
  const LearnerOptions options = options_of({.logq = LogQ::kExact}, 4);
  Network network = random_network(shape.network, counts, 6);
  ReferenceLearner full(shape.network, parameters_of(network), counts, options_of({}, 4));
  full.found = {std::vector<std::uint32_t>(40)};
  std::iota(full.found[0].begin(), full.found[0].end(), 0U);
  Parameters want = full.gradient(owned.view(), StepNumber{0});
  double last_error = 1e9;
  for (const std::size_t each : {std::size_t{2}, std::size_t{15}, std::size_t{40}}) {
    double error = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const HashNegativeOptions hashed = {
          .functions = 1, .tables = 20, .queries = 2, .found = 2 * each, .seed = seed};
      error += gradient_error(options, shape, counts, owned, StepNumber{0}, want, hashed) / 20;
    }
    EXPECT_LT(error, 0.9 * last_error) << each;
    last_error = error;
  }
  EXPECT_LT(last_error, 1e-4);
}

}  // namespace
}  // namespace gossamer::sparse
