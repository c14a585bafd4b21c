// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/test_counting_new.h"
#include "host/posix/compute.h"
#include "learn/sparse/test_random_problem.h"
#include "learn/sparse/test_reference_learner.h"

namespace gossamer::sparse {
namespace {

constexpr ProblemShape kShape = {.network = {.features = 60, .labels = 150, .hidden = 20},
                                 .samples = 50,
                                 .features_each = 6,
                                 .labels_each = 4,
                                 .unlabelled = true};

// A problem with two dense layers.
ProblemShape deep_shape() {
  ProblemShape shape = kShape;
  shape.network.dense = {48, 32};
  return shape;
}

LearnerOptions default_options() {
  return {.batch_max = 50,
          .dropout = 0.3,
          .negatives = {.kind = Negatives::kUniform, .sampled = 10},
          .logq = LogQ::kExact};
}

// Trains `steps` steps on batches that differ, and returns the weights.
Parameters train(host::Compute& compute, const LearnerOptions& options, std::uint64_t steps,
                 const std::optional<HashNegativeOptions>& hashed = {}, const ProblemShape& shape = kShape) {
  const LabelCounts counts = random_counts(shape.network.labels, 5);
  Network network = random_network(shape.network, counts, 6);
  const auto& kernels = kernels::kernels_for(kernels::best_isa());
  std::optional<HashNegatives> negatives;
  if (hashed) negatives.emplace(HashNegatives::Parts{network, kernels, compute}, *hashed);
  Learner learner({.network = network,
                   .labels = counts,
                   .kernels = kernels,
                   .compute = compute,
                   .hashed = negatives ? &*negatives : nullptr},
                  options);
  for (std::uint64_t t = 0; t < steps; ++t) {
    const OwnedBatch batch = random_batch(shape, 100 + t);
    learner.step(batch.view(), StepNumber{t}, {.learning_rate = 0.01F});
  }
  return parameters_of(network);
}

double largest_difference(Parameters& a, Parameters& b) {
  double most = 0;
  const auto x = a.all();
  const auto y = b.all();
  for (std::size_t tensor = 0; tensor < x.size(); ++tensor) {
    for (std::size_t i = 0; i < x[tensor]->size(); ++i) {
      most = std::max(most, std::abs((*x[tensor])[i] - (*y[tensor])[i]));
    }
  }
  return most;
}

// The largest distance to the double-precision reference after ten steps of Adam.
double distance_to_reference(SkippedSteps skipped, kernels::Element element,
                             const std::vector<std::size_t>& dense = {}) {
  const ProblemShape shape = {.network = {.features = 9, .labels = 12, .hidden = 4, .dense = dense},
                              .samples = 3,
                              .features_each = 2,
                              .labels_each = 2};
  const LabelCounts counts = random_counts(shape.network.labels, 5);
  LearnerOptions options = {.batch_max = 3, .activation = kernels::Activation::kTanh, .element = element};
  options.optimizer.skipped = skipped;
  options.optimizer.epsilon = 1e-4;  // gradients of nearly 0 would otherwise be blown up to a full step
  Network network = random_network(shape.network, counts, 6);
  ReferenceLearner reference(shape.network, parameters_of(network), counts, options);
  host::SimCompute compute({.workers = 2});
  Learner learner({.network = network,
                   .labels = counts,
                   .kernels = kernels::kernels_for(kernels::best_isa()),
                   .compute = compute},
                  options);
  for (std::uint64_t t = 0; t < 10; ++t) {
    const OwnedBatch batch = random_batch(shape, 100 + t);
    learner.step(batch.view(), StepNumber{t}, {.learning_rate = 0.02F});
    reference.step(batch.view(), StepNumber{t}, 0.02);
  }
  Parameters got = parameters_of(network);
  return largest_difference(got, reference.now);
}

// Ten steps of Adam, each skipped-steps policy, stay with the double-precision reference; with bf16 products
// within a tenth of one step.
TEST(Learner, FollowsTheReferenceOverManySteps) {
  for (const SkippedSteps skipped :
       {SkippedSteps::kHold, SkippedSteps::kDecay, SkippedSteps::kDecayAndMove}) {
    SCOPED_TRACE(testing::Message() << "policy " << static_cast<int>(skipped));
    // The closed form of the movement leaves out epsilon.
    const double closed_form = skipped == SkippedSteps::kDecayAndMove ? 2e-2 : 0;
    EXPECT_LT(distance_to_reference(skipped, kernels::Element::kF32), 1e-4 + closed_form);
    EXPECT_LT(distance_to_reference(skipped, kernels::Element::kBf16), 2e-3 + closed_form);
    EXPECT_LT(distance_to_reference(skipped, kernels::Element::kF32, {32, 16}), 1e-4 + closed_form);
  }
}

// The same seed and worker count give the same bits, whatever order the workers run in; real threads too.
TEST(Learner, IsBitwiseDeterministicForAWorkerCount) {
  for (const int workers : {1, 2, 3, 4}) {
    host::SimCompute one({.workers = workers, .seed = 1});
    host::SimCompute other({.workers = workers, .seed = 2});
    const auto threads = host::PosixCompute::create(workers);
    ASSERT_TRUE(threads.ok());
    for (const ProblemShape& shape : {kShape, deep_shape()}) {
      Parameters a = train(one, default_options(), 6, {}, shape);
      Parameters b = train(other, default_options(), 6, {}, shape);
      Parameters c = train(**threads, default_options(), 6, {}, shape);
      EXPECT_EQ(largest_difference(a, b), 0) << workers;
      EXPECT_EQ(largest_difference(a, c), 0) << workers;
    }
  }
}

// With hash tables too, which are built and updated on all workers.
TEST(Learner, IsBitwiseDeterministicWithHashNegatives) {
  for (const HashSelection selection : {HashSelection::kBest, HashSelection::kRandom}) {
    const HashNegativeOptions hashed = {.functions = 4,
                                        .tables = 5,
                                        .selection = selection,
                                        .queries = 10,
                                        .found = 60,
                                        .first_step = 2,
                                        .update_every = 3};
    for (const int workers : {1, 3}) {
      host::SimCompute one({.workers = workers, .seed = 1});
      host::SimCompute other({.workers = workers, .seed = 2});
      const auto threads = host::PosixCompute::create(workers);
      ASSERT_TRUE(threads.ok());
      Parameters a = train(one, default_options(), 9, hashed);
      Parameters b = train(other, default_options(), 9, hashed);
      Parameters c = train(**threads, default_options(), 9, hashed);
      EXPECT_EQ(largest_difference(a, b), 0) << workers;
      EXPECT_EQ(largest_difference(a, c), 0) << workers;
      Parameters without = train(one, default_options(), 9);
      EXPECT_GT(largest_difference(a, without), 0) << workers;
    }
  }
}

// Claim: An update notes how far it moved each row. Tables that follow the notes without tolerance are those
// that the trained rows have from scratch.
TEST(Learner, TellsHashTablesOfChangedRows) {
  const LabelCounts counts = random_counts(kShape.network.labels, 5);
  const HashNegativeOptions options = {
      .functions = 8, .tables = 20, .queries = 10, .found = 60, .tolerance = 0, .update_every = 5};
  for (const kernels::Element element : {kernels::Element::kF32, kernels::Element::kBf16}) {
    Network network = random_network(kShape.network, counts, 6);
    host::SimCompute compute({.workers = 2});
    const auto& kernels = kernels::kernels_for(kernels::best_isa());
    HashNegatives hashed({network, kernels, compute}, options);
    LearnerOptions with = default_options();
    with.element = element;
    Learner learner(
        {.network = network, .labels = counts, .kernels = kernels, .compute = compute, .hashed = &hashed},
        with);
    std::vector<std::uint16_t> first;
    for (std::uint64_t t = 0; t < 5; ++t) {
      learner.step(random_batch(kShape, 100 + t).view(), StepNumber{t}, {.learning_rate = 0.01F});
      if (t == 0) first = hashed.state().keys;
    }
    ASSERT_EQ(hashed.state().keys, first);  // an update is due with the next step
    hashed.prepare(StepNumber{5});
    HashNegatives fresh({network, kernels, compute}, options);
    fresh.prepare(StepNumber{0});
    EXPECT_EQ(hashed.state().keys, fresh.state().keys);
    EXPECT_NE(hashed.state().keys, first);
  }
}

// Another number of workers changes only the order of summation.
TEST(Learner, AgreesAcrossWorkerCountsToRounding) {
  LearnerOptions options = default_options();
  options.optimizer.kind = OptimizerKind::kSgd;
  for (const ProblemShape& shape : {kShape, deep_shape()}) {
    host::SimCompute single({.workers = 1});
    Parameters want = train(single, options, 6, {}, shape);
    for (const int workers : {2, 3, 4, 7}) {
      host::SimCompute compute({.workers = workers});
      Parameters got = train(compute, options, 6, {}, shape);
      EXPECT_LT(largest_difference(got, want), 1e-5) << workers;
    }
  }
}

// Once it has seen its largest batch a step allocates nothing; before, it says that it grew.
TEST(Learner, AllocatesNothingAfterWarmUp) {
  const LabelCounts counts = random_counts(kShape.network.labels, 5);
  Network network = random_network(deep_shape().network, counts, 6);
  host::SimCompute compute({.workers = 2});
  Learner learner({.network = network,
                   .labels = counts,
                   .kernels = kernels::kernels_for(kernels::best_isa()),
                   .compute = compute},
                  default_options());
  const std::vector<OwnedBatch> batches = {random_batch(kShape, 1), random_batch(kShape, 2),
                                           random_batch(kShape, 3)};
  EXPECT_TRUE(learner.step(batches[0].view(), StepNumber{0}, {.learning_rate = 0.01F}).grew);
  std::uint64_t t = 1;
  for (; t < 40; ++t) learner.step(batches[t % 3].view(), StepNumber{t}, {.learning_rate = 0.01F});
  // The drawn negatives differ from step to step: replay the warm-up's steps.
  const std::uint64_t before = allocation_count();
  bool grew = false;
  for (t = 1; t < 40; ++t) {
    grew |= learner.step(batches[t % 3].view(), StepNumber{t}, {.learning_rate = 0.01F}).grew;
  }
  EXPECT_EQ(allocation_count() - before, 0U);
  EXPECT_FALSE(grew);
}

// With hash tables too, between two updates of them.
TEST(Learner, AllocatesNothingWithHashNegatives) {
  const LabelCounts counts = random_counts(kShape.network.labels, 5);
  for (const HashSets sets : {HashSets::kShared, HashSets::kOwn}) {
    Network network = random_network(kShape.network, counts, 6);
    host::SimCompute compute({.workers = 2});
    const auto& kernels = kernels::kernels_for(kernels::best_isa());
    HashNegatives hashed(
        {network, kernels, compute},
        {.functions = 3, .tables = 5, .sets = sets, .queries = 50, .found = 300, .update_every = 40});
    Learner learner(
        {.network = network, .labels = counts, .kernels = kernels, .compute = compute, .hashed = &hashed},
        {.batch_max = 50, .logq = LogQ::kNone});
    const OwnedBatch batch = random_batch(kShape, 1);
    std::uint64_t t = 0;
    for (; t < 10; ++t) learner.step(batch.view(), StepNumber{t}, {.learning_rate = 0});
    const std::uint64_t before = allocation_count();
    for (; t < 39; ++t) learner.step(batch.view(), StepNumber{t}, {.learning_rate = 0});
    EXPECT_EQ(allocation_count() - before, 0U);
  }
}

// Samples without labels leave no trace beside making the mean smaller: as zeros among the loss, nothing
// else.
TEST(Learner, UnlabelledSamplesAddNothing) {
  const LabelCounts counts = random_counts(kShape.network.labels, 5);
  Network network = random_network(kShape.network, counts, 6);
  Parameters before = parameters_of(network);
  host::SimCompute compute({.workers = 2});
  Learner learner({.network = network,
                   .labels = counts,
                   .kernels = kernels::kernels_for(kernels::best_isa()),
                   .compute = compute},
                  {.batch_max = 50});
  Rng rng(1, Purpose::kTest);
  OwnedBatch batch;
  for (int i = 0; i < 5; ++i) batch.add({1, 2, 3}, {}, rng);
  const StepReport report = learner.step(batch.view(), StepNumber{0}, {.learning_rate = 0.01F});
  Parameters after = parameters_of(network);
  EXPECT_EQ(largest_difference(before, after), 0);
  EXPECT_EQ(report.loss, 0);
  EXPECT_EQ(report.labelled_samples, 0U);
  EXPECT_EQ(report.active_rows, 0U);
}

// A short batch after a long one gives what a fresh learner gives: nothing of the long one is left behind.
TEST(Learner, ShortBatchesLeaveNoTraceOfLongOnes) {
  const LabelCounts counts = random_counts(kShape.network.labels, 5);
  ProblemShape short_shape = kShape;
  short_shape.samples = 3;
  const OwnedBatch long_batch = random_batch(kShape, 1);
  const OwnedBatch short_batch = random_batch(short_shape, 2);
  std::vector<Parameters> results;
  for (const bool long_first : {false, true}) {
    Network network = random_network(deep_shape().network, counts, 6);
    host::SimCompute compute({.workers = 2});
    LearnerOptions options = default_options();
    options.optimizer.kind = OptimizerKind::kSgd;
    Learner learner({.network = network,
                     .labels = counts,
                     .kernels = kernels::kernels_for(kernels::best_isa()),
                     .compute = compute},
                    options);
    if (long_first) learner.step(long_batch.view(), StepNumber{0}, {.learning_rate = 0});
    learner.step(short_batch.view(), StepNumber{1}, {.learning_rate = 0.1F});
    results.push_back(parameters_of(network));
  }
  EXPECT_EQ(largest_difference(results[0], results[1]), 0);
}

// Training lowers the loss on a batch that it sees again and again; columns beyond the width stay zero.
TEST(Learner, LearnsAndKeepsPaddingZero) {
  const LabelCounts counts = random_counts(kShape.network.labels, 5);
  Network network = random_network(deep_shape().network, counts, 6);
  host::SimCompute compute({.workers = 3});
  LearnerOptions options = default_options();
  options.dropout = 0;
  Learner learner({.network = network,
                   .labels = counts,
                   .kernels = kernels::kernels_for(kernels::best_isa()),
                   .compute = compute},
                  options);
  const OwnedBatch batch = random_batch(kShape, 1);
  const double first = learner.step(batch.view(), StepNumber{0}, {.learning_rate = 0.02F}).loss;
  double last = first;
  for (std::uint64_t t = 1; t < 60; ++t) {
    last = learner.step(batch.view(), StepNumber{t}, {.learning_rate = 0.02F}).loss;
  }
  EXPECT_LT(last, 0.6 * first);
  for (RowTable* table : {&network.embedding, &network.dense[0].weights, &network.output}) {
    for (std::size_t row = 0; row < table->rows(); ++row) {
      for (std::size_t i = table->width(); i < table->stride(); ++i) ASSERT_EQ(table->weights(row)[i], 0.0F);
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse
