// SPDX-License-Identifier: Apache-2.0
#include "commands/train/record_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <set>

#include "commands/records/record_import.h"
#include "commands/records/word_data.h"
#include "commands/train/test_small_run.h"
#include "engines/sparse/predict/fusion_learning.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/hold_out.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using data::RecordFormat;
using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;
using ::testing::HasSubstr;

// Imports a file into the cache of a run.
void import_file(SimMachine& machine, const std::string& text, RecordFormat format) {
  for (const char* directory : {"/data", "/run/cache"})
    ASSERT_TRUE(machine.disk.make_directories(directory).ok());
  write(machine.disk, "/data/train.txt", text);
  const auto done = import_records(
      machine.host(),
      {.sources = {{.path = "/data/train.txt", .format = format}}, .cache_path = "/run/cache/train.cache"});
  ASSERT_TRUE(done.ok()) << done.error().message();
}

const CachePlace kPlace{.directory = "/run/cache"};

// 200 records of which training leaves 40 out. Samples borrow what is beside them here, the host and the
// config.
struct BegunSamples {
  BegunSamples(SimMachine& machine, const run::NodeHost& host, const sparse_engine::TrainConfig& config) {
    import_file(machine, two_classes(200), RecordFormat::kXmc);
    samples = *open_samples(host, config, kPlace);
    recipe.held_out = 40;
    fitted = samples->weigh(config);
    samples->begin({.config = config, .recipe = recipe, .weighting = fitted.weighting});
  }
  BegunSamples(const BegunSamples&) = delete;
  BegunSamples& operator=(const BegunSamples&) = delete;

  sparse_engine::Recipe recipe;
  text::FittedWeighting fitted;
  std::unique_ptr<Samples> samples;
};

// Sessions of one item make no record. Then there is no mean of anything, and none is told.
TEST(Samples, NoRecordHasNoMean) {
  SimMachine machine;
  sparse_engine::TrainConfig config = testing::small_run();
  config.data.format = RecordFormat::kSessions;
  import_file(machine, "alone\n", RecordFormat::kSessions);
  const auto samples = open_samples(machine.host(), config, kPlace);
  ASSERT_TRUE(samples.ok() && *samples != nullptr);
  EXPECT_EQ((*samples)->describe(), "0 records, 1 feature, 1 label");
}

// Nothing is opened before an import. Then the config tells records, sessions and words apart. Each kind says
// what form a test set has, and what it is in a line.
TEST(Samples, OpenAsTheConfigSays) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  sparse_engine::TrainConfig config = testing::small_run();
  EXPECT_EQ(*open_samples(host, config, kPlace), nullptr);
  import_file(machine, two_classes(20), RecordFormat::kXmc);
  const auto records = open_samples(host, config, kPlace);
  ASSERT_TRUE(records.ok() && *records != nullptr);
  EXPECT_EQ((*records)->features(), FeatureKind::kNumbers);
  EXPECT_EQ((*records)->describe(),
            "20 records, 10 features, 2 labels (4.0 features and 1.0 labels a record)");
  EXPECT_EQ((*records)->bytes(), 0U);
  EXPECT_EQ(*open_samples(host, config, {.directory = "/other"}), nullptr);
  EXPECT_NE(*open_samples(host, config, {.directory = "/other", .records = "/run/cache/train.cache"}),
            nullptr);

  config.data.format = RecordFormat::kSessions;
  EXPECT_EQ((*open_samples(host, config, kPlace))->features(), FeatureKind::kSessions);

  config.data.format = RecordFormat::kText;
  EXPECT_EQ(*open_samples(host, config, kPlace), nullptr);
  const data::TokenText text{.token = {0, 1, 0, 1}, .words = {"a", "b"}, .count = {2, 2}};
  ASSERT_TRUE(write_word_cache(machine.disk, "/run/cache/train.words", text).ok());
  const auto words = open_samples(host, config, kPlace);
  EXPECT_EQ((*words)->features(), FeatureKind::kWords);
  EXPECT_THAT((*words)->describe(), HasSubstr("4 words of text, 2 different"));
  EXPECT_EQ((*words)->bytes(), 4 * sizeof(std::uint32_t));
}

// What the recipe holds out is not trained on, and is in no count. The schema still has it.
TEST(RecordSamples, LeaveOutWhatIsHeldOut) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  const sparse_engine::TrainConfig config = testing::small_run();
  import_file(machine, two_classes(200), RecordFormat::kXmc);
  auto samples = *open_samples(host, config, kPlace);
  sparse_engine::Recipe recipe;
  recipe.held_out = 40;
  const text::FittedWeighting fitted = samples->weigh(config);
  samples->begin({.config = config, .recipe = recipe, .weighting = fitted.weighting});
  const std::uint64_t kept = data::HoldOut(200, 40).kept();
  EXPECT_LT(kept, 180U);
  EXPECT_EQ(samples->schema().size(), 200U);
  EXPECT_EQ(samples->trained().size(), kept);
  const auto& counts = samples->labels().count;
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), kept);
  EXPECT_EQ(samples->steps().read(StepNumber(0)).size(), config.train.batch);
}

// Claim: no step has a record that is held out, and an epoch has all others. Record i has feature i alone. Of
// 200 records the first 16 of each 64 are held out.
TEST(RecordSamples, StepsHaveTheOthers) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  const sparse_engine::TrainConfig config = testing::small_run();
  std::string text = "200 200 2\n";
  for (int i = 0; i < 200; ++i) text += std::to_string(i % 2) + " " + std::to_string(i) + ":1\n";
  import_file(machine, text, RecordFormat::kXmc);
  auto samples = *open_samples(host, config, kPlace);
  sparse_engine::Recipe recipe;
  recipe.held_out = 40;
  const text::FittedWeighting fitted = samples->weigh(config);
  samples->begin({.config = config, .recipe = recipe, .weighting = fitted.weighting});
  std::set<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 200; ++i) {
    if (i % 64 >= 16) expected.insert(i);
  }
  ASSERT_EQ(expected.size() % config.train.batch, 0U);
  std::set<std::uint32_t> seen;
  for (std::uint64_t step = 0; step < expected.size() / config.train.batch; ++step) {
    const data::Batch batch = samples->steps().read(StepNumber(step));
    seen.insert(batch.features.index.begin(), batch.features.index.end());
  }
  EXPECT_EQ(seen, expected);
}

// Claim: a completed model has the fusion weights that the held-out records teach. Its training rows are all
// records then.
TEST(RecordSamples, CompleteWithWhatWasHeldOut) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  const sparse_engine::TrainConfig config = testing::small_run();
  const BegunSamples begun(machine, host, config);
  Samples* const samples = begun.samples.get();
  sparse_engine::Model model =
      samples->model_of(sparse::Network({.features = 10, .labels = 2, .hidden = 16}, sparse::Moments::kNone));
  const data::HoldOut hold_out(200, 40);
  ASSERT_TRUE(model.instances);
  EXPECT_EQ(model.instances->rows(), hold_out.kept());
  const auto dataset = data::CachedDataset::open(machine.disk, "/run/cache/train.cache", machine.compute);
  ASSERT_TRUE(dataset.ok());
  const auto learnt =
      sparse_engine::learn_fusion_weights(model, {}, **dataset, hold_out, host.kernels, host.compute);
  ASSERT_TRUE(learnt.ok());
  ASSERT_NE(learnt->all.weights, sparse_engine::kDefaultFusionWeights);
  const auto done = samples->complete(model);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(model.fusion.weights, learnt->all.weights);
  EXPECT_TRUE(model.fusion.calibration && model.fusion.net_calibration);
  EXPECT_EQ(model.instances->rows(), 200U);
  EXPECT_EQ(model.training_rows, 200U);
  EXPECT_EQ(model.label_count, (std::vector<std::uint32_t>{100, 100}));
}

// Claim: a weight that the user gives is in the completed model, and the others are those that the held-out
// records teach beside it.
TEST(RecordSamples, LearnTheOthersBesideAGivenWeight) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  sparse_engine::TrainConfig config = testing::small_run();
  config.predict.centroid_weight = 0;
  const BegunSamples begun(machine, host, config);
  Samples* const samples = begun.samples.get();
  sparse_engine::Model model =
      samples->model_of(sparse::Network({.features = 10, .labels = 2, .hidden = 16}, sparse::Moments::kNone));
  const auto dataset = data::CachedDataset::open(machine.disk, "/run/cache/train.cache", machine.compute);
  ASSERT_TRUE(dataset.ok());
  const data::HoldOut hold_out(200, 40);
  sparse_engine::GivenTerms given{};
  const auto free =
      sparse_engine::learn_fusion_weights(model, given, **dataset, hold_out, host.kernels, host.compute);
  given[static_cast<std::size_t>(sparse_engine::FusionTerm::kCentroid)] = true;
  const auto beside =
      sparse_engine::learn_fusion_weights(model, given, **dataset, hold_out, host.kernels, host.compute);
  ASSERT_TRUE(free.ok() && beside.ok());
  for (const sparse_engine::FusionVector& by_the_other : beside->by_the_other)
    EXPECT_EQ(by_the_other[sparse_engine::FusionTerm::kCentroid], 0);
  ASSERT_TRUE(samples->complete(model).ok());
  EXPECT_EQ(model.fusion.weights, beside->all.weights);
  EXPECT_EQ(model.fusion.weights[sparse_engine::FusionTerm::kCentroid], 0);
  EXPECT_NE(model.fusion.weights[sparse_engine::FusionTerm::kInput],
            free->all.weights[sparse_engine::FusionTerm::kInput]);
}

// A model of sessions says that its queries are lines of items; one of records does not.
TEST(RecordSamples, NameTheTaskOfTheModel) {
  for (const bool sessions : {false, true}) {
    SimMachine machine;
    const run::NodeHost host = machine.host();
    sparse_engine::TrainConfig config = testing::small_run();
    if (sessions) config.data.format = RecordFormat::kSessions;
    import_file(machine, sessions ? "a b c\nb c d\n" : two_classes(20),
                sessions ? RecordFormat::kSessions : RecordFormat::kXmc);
    auto samples = *open_samples(host, config, kPlace);
    const sparse_engine::Recipe recipe;
    const text::FittedWeighting fitted = samples->weigh(config);
    samples->begin({.config = config, .recipe = recipe, .weighting = fitted.weighting});
    const sparse_engine::Model model = samples->model_of(sparse::Network(
        {.features = samples->schema().features(), .labels = samples->schema().labels(), .hidden = 16},
        sparse::Moments::kNone));
    EXPECT_EQ(model.task, sessions ? "next-item" : "xmc");
    EXPECT_EQ(model.line.has_value(), sessions);
    EXPECT_EQ(model.training_rows, samples->trained().size());
  }
}

}  // namespace
}  // namespace gossamer::commands
