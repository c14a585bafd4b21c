// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engines/sparse/train/test_training_run.h"
#include "host/sim/disk.h"
#include "tensors/checkpoint.h"

namespace gossamer::sparse_engine {
namespace {

using host::SimDisk;
using ::testing::Contains;
using testing::fresh_disk;
using ::testing::HasSubstr;
using testing::kDirectory;
using ::testing::Not;
using testing::TestRun;
using testing::tiny_config;
using testing::weights_of;

std::vector<float> reference_weights(int workers = 2) {
  auto disk = fresh_disk();
  return weights_of(TestRun(workers).train_to_end(*disk));
}

// The loop learns: the loss of a learnable set falls to a small part of its start.
TEST(Trainer, Learns) {
  TrainConfig config = tiny_config();
  config.train.steps = 200;
  config.train.lr = 0.05;
  auto disk = fresh_disk();
  TestRun run(2, config);
  const auto outcome = run.train_to_end(*disk);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->steps, 200U);
  EXPECT_EQ(outcome->samples, 200U * 16U);
  EXPECT_LT(run.losses.back(), 0.3 * run.losses.front());
  EXPECT_GT(outcome->final_loss, 0);
}

// The same seed and workers give the same bits. Another seed gives other weights.
TEST(Trainer, SameSeedSameBits) {
  EXPECT_EQ(reference_weights(), reference_weights());
  TrainConfig other = tiny_config();
  other.seed = 2;
  auto disk = fresh_disk();
  EXPECT_NE(weights_of(TestRun(2, other).train_to_end(*disk)), reference_weights());
}

// Another number of workers gives the same weights up to rounding.
TEST(Trainer, OtherWorkersEqualToRounding) {
  const std::vector<float> two = reference_weights(2);
  for (const int workers : {1, 3, 4}) {
    const std::vector<float> other = reference_weights(workers);
    double difference = 0;
    double size = 0;
    for (std::size_t i = 0; i < two.size(); ++i) {
      difference += std::pow(two[i] - other[i], 2);
      size += std::pow(two[i], 2);
    }
    EXPECT_LT(std::sqrt(difference / size), 1e-3) << workers;
  }
}

// Saving changes nothing: the model is the same with and without checkpoints, bit by bit.
TEST(Trainer, SavingChangesNoState) {
  TrainConfig never = tiny_config();
  never.checkpoint.every_steps = 0;
  auto disk = fresh_disk();
  EXPECT_EQ(weights_of(TestRun(2, never).train_to_end(*disk)), reference_weights());
}

// A run that is stopped after any step and resumed ends with the same bits as one that never stopped.
TEST(Trainer, StopAndResumeAtEveryStep) {
  const std::vector<float> expected = reference_weights();
  for (std::uint64_t stop = 1; stop < 12; ++stop) {
    auto disk = fresh_disk();
    const auto stopped = TestRun().train(*disk, [&](std::uint64_t done) { return done == stop; });
    ASSERT_TRUE(stopped.ok());
    EXPECT_FALSE(stopped->network.has_value());
    EXPECT_EQ(stopped->steps, stop);
    TestRun resumed;
    EXPECT_EQ(weights_of(resumed.train_to_end(*disk)), expected) << stop;
    EXPECT_EQ(resumed.losses.size(), 12 - stop);
  }
}

// A run with further hidden layers resumes with the same bits, too. Their weights and moments go on as they
// were, and they learn.
TEST(Trainer, StopAndResumeWithDenseLayers) {
  TrainConfig config = tiny_config();
  config.model.dense = {48, 32};
  auto whole = fresh_disk();
  const std::vector<float> expected = weights_of(TestRun(2, config).train_to_end(*whole));
  for (std::uint64_t stop = 1; stop < 12; ++stop) {
    auto disk = fresh_disk();
    const auto stopped = TestRun(2, config).train(*disk, [&](std::uint64_t done) { return done == stop; });
    ASSERT_TRUE(stopped.ok());
    EXPECT_EQ(weights_of(TestRun(2, config).train_to_end(*disk)), expected) << stop;
  }
  config.train.steps = 200;
  auto disk = fresh_disk();
  TestRun longer(2, config);
  ASSERT_TRUE(longer.train_to_end(*disk).ok());
  EXPECT_LT(longer.losses.back(), 0.5 * longer.losses.front());
}

// A run with any kind of moments resumes with the same bits, too. Each kind ends at weights of its own.
TEST(Trainer, StopAndResumeWithAnyMoments) {
  std::vector<std::vector<float>> ends;
  for (const auto kind : {MomentsKind::kElement, MomentsKind::kEmbeddingBlock, MomentsKind::kBlock}) {
    TrainConfig config = tiny_config();
    config.optimizer.moments = kind;
    auto whole = fresh_disk();
    ends.push_back(weights_of(TestRun(2, config).train_to_end(*whole)));
    for (std::uint64_t stop = 1; stop < 12; stop += 3) {
      auto disk = fresh_disk();
      ASSERT_TRUE(TestRun(2, config).train(*disk, [&](std::uint64_t done) { return done == stop; }).ok());
      EXPECT_EQ(weights_of(TestRun(2, config).train_to_end(*disk)), ends.back()) << stop;
    }
  }
  EXPECT_NE(ends[0], ends[1]);
  EXPECT_NE(ends[1], ends[2]);
}

// A run with hash tables resumes with the same bits, too. It stops before the tables begin, between their
// updates and at them, with rows that have moved within the tolerance. Without tables the weights are others.
TEST(Trainer, StopAndResumeWithHashTables) {
  TrainConfig config = tiny_config();
  config.train.hard_negatives = 8;
  config.train.hard_after = 0.2;
  config.lsh.queries = 4;
  config.lsh.tables = 6;
  config.lsh.functions = 3;
  config.lsh.tolerance = 0.02;
  config.lsh.update_every = 3;
  config.lsh.update_growth = 0.1;
  auto whole = fresh_disk();
  const std::vector<float> expected = weights_of(TestRun(2, config, 100, 40).train_to_end(*whole));
  auto plain = fresh_disk();
  EXPECT_NE(weights_of(TestRun(2, tiny_config(), 100, 40).train_to_end(*plain)), expected);
  for (std::uint64_t stop = 1; stop < 12; ++stop) {
    auto disk = fresh_disk();
    const auto stopped =
        TestRun(2, config, 100, 40).train(*disk, [&](std::uint64_t done) { return done == stop; });
    ASSERT_TRUE(stopped.ok());
    EXPECT_EQ(weights_of(TestRun(2, config, 100, 40).train_to_end(*disk)), expected) << stop;
  }
}

double relative_distance(const std::vector<float>& got, const std::vector<float>& want) {
  double difference = 0;
  double length = 0;
  EXPECT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - static_cast<double>(want[i]), 2);
    length += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(difference / length);
}

// The output layer may have any number of shards: the same network comes out, with labels in their own order.
// One worker gives the same bits. More workers give the same to rounding, as their parts of the rows differ.
// Drawn negatives work, too.
TEST(Trainer, AnyNumberOfShardsTrainsTheSameNetwork) {
  for (const sparse::Negatives negatives :
       {sparse::Negatives::kInBatch, sparse::Negatives::kUniform, sparse::Negatives::kFrequency}) {
    TrainConfig config = tiny_config();
    config.train.steps = 50;
    config.train.precision = kernels::Element::kF32;
    config.train.negatives = negatives;
    config.train.sampled = negatives == sparse::Negatives::kInBatch ? 0 : 20;
    for (const int workers : {1, 3}) {
      const auto train = [&](std::size_t shards) {
        auto disk = fresh_disk();
        TestRun run(workers, config, 300, 203);
        run.shards = shards;
        return weights_of(run.train_to_end(*disk));
      };
      const std::vector<float> one = train(1);
      for (const std::size_t shards : {2U, 5U, 26U}) {
        const double distance = relative_distance(train(shards), one);
        EXPECT_LE(distance, workers == 1 ? 0 : 1e-4) << shards << " shards, " << workers << " workers";
      }
    }
  }
}

// Checkpoints hold rows in the order of shards. A run that is stopped and resumed ends with the same bits,
// also after its last step. Another number of shards is refused.
TEST(Trainer, StopAndResumeInShards) {
  const auto run_of = [](std::size_t shards) {
    auto run = std::make_unique<TestRun>(2, tiny_config(), 100, 40);
    run->shards = shards;
    return run;
  };
  auto whole = fresh_disk();
  const std::vector<float> expected = weights_of(run_of(3)->train_to_end(*whole));
  EXPECT_EQ(weights_of(run_of(3)->train_to_end(*whole)), expected) << "from the last checkpoint";
  for (std::uint64_t stop = 1; stop < 12; stop += 2) {
    auto disk = fresh_disk();
    ASSERT_TRUE(run_of(3)->train(*disk, [&](std::uint64_t done) { return done == stop; }).ok());
    const auto refused = run_of(1)->train_to_end(*disk);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(weights_of(run_of(3)->train_to_end(*disk)), expected) << stop;
  }
}

// A machine that dies (power, kill -9) after any step leaves a disk that resumes to the same bits.
TEST(Trainer, DiesAfterEveryStepAndResumes) {
  const std::vector<float> expected = reference_weights();
  for (std::uint64_t death = 1; death <= 12; ++death) {
    auto disk = fresh_disk();
    std::unique_ptr<SimDisk> left;
    const auto outcome = TestRun().train(*disk, [&](std::uint64_t done) {
      if (done == death) left = disk->after_crash();
      return false;
    });
    ASSERT_TRUE(outcome.ok());
    TestRun resumed;
    EXPECT_EQ(weights_of(resumed.train_to_end(*left)), expected) << death;
    // No more work is repeated than since the last checkpoint.
    EXPECT_LE(resumed.losses.size(), 12 - (death - 1) / 4 * 4) << death;
  }
}

// A machine may die at any disk operation of a whole run, under several outcomes: the resumed run ends with
// the same bits.
TEST(Trainer, DiesAtEveryDiskOperationAndResumes) {
  const std::vector<float> expected = reference_weights();
  auto rehearsal = fresh_disk();
  rehearsal->restart_count({});
  ASSERT_TRUE(TestRun().train_to_end(*rehearsal).ok());
  const std::uint64_t operations = rehearsal->operations();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    for (std::uint64_t k = 0; k <= operations; ++k) {
      auto disk = fresh_disk();
      disk->restart_count({.seed = seed, .crash_at_operation = k});
      static_cast<void>(TestRun().train_to_end(*disk).ok());
      auto left = disk->after_crash();
      ASSERT_EQ(weights_of(TestRun().train_to_end(*left)), expected) << "seed " << seed << " operation " << k;
    }
  }
}

// A full disk costs the checkpoint, not the run. But a stop that cannot be saved is an error.
TEST(Trainer, FullDisk) {
  auto disk = fresh_disk();
  disk->restart_count({.capacity_bytes = 1000});
  TestRun run;
  EXPECT_EQ(weights_of(run.train_to_end(*disk)), reference_weights());
  EXPECT_THAT(run.events, Contains("checkpoint_failed").Times(3));
  const auto stopped = TestRun().train(*disk, [](std::uint64_t done) { return done == 5; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().message(), HasSubstr("step-000000000005.ckpt"));
}

// A changed key that shapes the result, or other data, is refused at a resume. The directory of checkpoints
// may change.
TEST(Trainer, ResumeRefusesAnotherRecipe) {
  auto disk = fresh_disk();
  ASSERT_TRUE(TestRun().train(*disk, [](std::uint64_t done) { return done == 5; }).ok());
  TrainConfig faster = tiny_config();
  faster.train.lr = 0.02;
  const auto refused = TestRun(2, faster).train_to_end(*disk);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(TestRun(2, tiny_config(), 101).train_to_end(*disk).ok());
  TrainConfig rarely = tiny_config();
  rarely.checkpoint.every_steps = 0;
  rarely.data.train = "moved";
  EXPECT_EQ(weights_of(TestRun(2, rarely).train_to_end(*disk)), reference_weights());
}

// Checkpoints by time: one as soon as the interval has passed, one after the last step, and no other.
TEST(Trainer, SavesByTime) {
  TrainConfig config = tiny_config();
  config.checkpoint.every_steps = 0;
  config.checkpoint.every_minutes = 1;
  auto disk = fresh_disk();
  TestRun run(2, config);
  ASSERT_TRUE(run.train(*disk,
                        [&](std::uint64_t) {
                          run.clock.advance(from_seconds(13));
                          return false;
                        })
                  .ok());
  EXPECT_EQ(run.saved, (std::vector<std::uint64_t>{5, 10, 12}));
}

// Claim: as many checkpoints stay as the key says, the newest ones.
TEST(Trainer, KeepsTheNewestCheckpoints) {
  for (const std::uint32_t keep : {1U, 3U}) {
    TrainConfig config = tiny_config();
    config.checkpoint.every_steps = 2;
    config.checkpoint.keep = keep;
    auto disk = fresh_disk();
    ASSERT_TRUE(TestRun(2, config).train_to_end(*disk).ok());
    std::vector<std::string> newest;
    for (std::uint64_t step = 14 - 2 * keep; step <= 12; step += 2)
      newest.push_back(tensors::checkpoint_name(StepNumber{step}));
    EXPECT_THAT(*disk->list(kDirectory), ::testing::UnorderedElementsAreArray(newest));
  }
}

// Claim: checkpoints have the size that was told before the run, to a few kB of headers. Further hidden
// layers and hash tables count.
TEST(Trainer, CheckpointsHaveTheSizeThatWasTold) {
  constexpr std::uint64_t kHeaders = std::uint64_t{16} << 10;
  for (const bool tables : {false, true}) {
    TrainConfig config = tiny_config();
    config.model.hidden = 64;
    config.model.dense = {96, 64};
    if (tables) {
      config.train.hard_negatives = 8;
      config.train.hard_after = 0.2;
      config.lsh.queries = 4;
    }
    TestRun run(2, config, 100, 600);
    auto disk = fresh_disk();
    ASSERT_TRUE(run.train_to_end(*disk).ok());
    const DiskNeeded needed = disk_needed(config, run.recipe, *run.dataset);
    for (const auto& [step, told] :
         {std::pair(StepNumber{8}, needed.checkpoint), {StepNumber{12}, needed.last_checkpoint}}) {
      const auto size = disk->file_size(std::string(kDirectory) + "/" + tensors::checkpoint_name(step));
      ASSERT_TRUE(size.ok());
      EXPECT_LE(*size, told) << step.value << " " << tables;
      EXPECT_GE(*size + kHeaders, told) << step.value << " " << tables;
    }
  }
}

// Claim: progress tells after each step how far the run is, and the learning rate of the step. A resumed run
// goes on counting.
TEST(Trainer, TellsItsProgress) {
  auto disk = fresh_disk();
  TestRun first;
  ASSERT_TRUE(first.train(*disk, [](std::uint64_t done) { return done == 5; }).ok());
  TestRun second;
  ASSERT_TRUE(second.train_to_end(*disk).ok());
  std::vector<engine::TrainProgress> told = first.told;
  told.insert(told.end(), second.told.begin(), second.told.end());
  ASSERT_EQ(told.size(), 12U);
  const sparse::Schedule schedule = schedule_of(tiny_config(), first.recipe);
  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(told[i].steps_done, i + 1);
    EXPECT_EQ(told[i].steps_total, 12U);
    EXPECT_EQ(told[i].samples_done, 16 * (i + 1));
    EXPECT_DOUBLE_EQ(told[i].epoch, static_cast<double>(16 * (i + 1)) / 100);
    EXPECT_EQ(told[i].learning_rate, static_cast<double>(schedule.learning_rate(StepNumber{i})));
    EXPECT_TRUE(told[i].active_rows >= 1U && told[i].active_rows <= 8U) << i;
  }
}

// Work after the last step may be repeated without a step: the network and the loss are the run's.
TEST(Trainer, SavesAfterTheLastStep) {
  auto disk = fresh_disk();
  const auto first = TestRun().train_to_end(*disk);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(first->resumed_at.has_value());
  const auto left = disk->after_crash();
  TestRun again;
  const auto second = again.train_to_end(*left);
  EXPECT_EQ(weights_of(second), weights_of(first));
  EXPECT_TRUE(again.losses.empty());
  EXPECT_EQ(second->resumed_at, StepNumber{12});
  EXPECT_EQ(second->steps, 12U);
  EXPECT_EQ(second->final_loss, first->final_loss);

  TrainConfig never = tiny_config();
  never.checkpoint.every_steps = 0;
  auto other = fresh_disk();
  TestRun run(2, never);
  ASSERT_TRUE(run.train_to_end(*other).ok());
  EXPECT_TRUE(other->list(kDirectory)->empty()) << "both keys are 0";
}

// The loss of a resumed run equals, to the last bit, the loss of one that never stopped, wherever it stopped.
// Its cost is the sum over all parts.
TEST(Trainer, ResumedLossAndCostAreTheWholeRuns) {
  TrainConfig config = tiny_config();
  config.train.steps = 130;
  auto whole_disk = fresh_disk();
  const auto whole = TestRun(2, config).train_to_end(*whole_disk);
  ASSERT_TRUE(whole.ok());
  for (const std::uint64_t stop : {1U, 40U, 101U, 129U}) {
    SCOPED_TRACE(stop);
    auto disk = fresh_disk();
    for (const std::uint64_t at : {stop, std::uint64_t{130}}) {
      TestRun run(2, config);
      run.load_seconds = 7;
      const auto outcome = run.train(*disk, [&](std::uint64_t done) {
        run.clock.advance(from_seconds(2));
        run.clock.use_cpu(from_seconds(3));
        return done == at;
      });
      ASSERT_TRUE(outcome.ok());
      if (at == stop) continue;
      EXPECT_EQ(outcome->final_loss, whole->final_loss);
      EXPECT_EQ(outcome->resumed_at, StepNumber{stop});
      const auto steps = static_cast<double>(stop);
      EXPECT_DOUBLE_EQ(outcome->cost_before.train_seconds, 2 * steps);
      EXPECT_DOUBLE_EQ(outcome->cost_before.cpu_seconds, 3 * steps);
      EXPECT_DOUBLE_EQ(outcome->cost_before.load_seconds, 7);
    }
    const auto left = disk->after_crash();
    const auto all = TestRun(2, config).train_to_end(*left);
    ASSERT_TRUE(all.ok());
    EXPECT_DOUBLE_EQ(all->cost_before.train_seconds, 2 * 130);
    EXPECT_DOUBLE_EQ(all->cost_before.load_seconds, 14);
  }
}

// Resuming with another number of workers is allowed and says so. The same number says nothing.
TEST(Trainer, ResumeWithOtherWorkersSaysSo) {
  for (const int workers : {2, 3}) {
    auto disk = fresh_disk();
    ASSERT_TRUE(TestRun(2).train(*disk, [](std::uint64_t done) { return done == 5; }).ok());
    TestRun resumed(workers);
    ASSERT_TRUE(resumed.train_to_end(*disk).ok());
    EXPECT_THAT(resumed.events, Contains("resumed"));
    EXPECT_THAT(resumed.events, Contains("workers_changed").Times(workers == 2 ? 0U : 1U));
  }
}

// Claim: a run ends with the first weight or loss that is no number. Such weights reach neither a checkpoint
// nor a model. The weights are infinite after the first step here, whose loss does not tell.
TEST(Trainer, EndsWhereItDiverges) {
  struct Case {
    std::uint64_t steps, every;
    const char *where, *got;
  };
  for (const Case& one : {Case{12, 0, "step 2", "a loss"}, Case{1, 0, "step 1", "a weight"},
                          Case{1, 1, "step 1", "a weight"}, Case{5, 1, "step 1", "a weight"}}) {
    TrainConfig config = tiny_config();
    config.train.lr = 1e39;
    config.train.warmup_steps = 1;
    config.train.steps = one.steps;
    config.checkpoint.every_steps = one.every;
    auto disk = fresh_disk();
    TestRun run(2, config);
    const auto done = run.train_to_end(*disk);
    ASSERT_FALSE(done.ok()) << one.steps << " " << one.every;
    EXPECT_EQ(done.error().where, one.where);
    EXPECT_THAT(done.error().got, HasSubstr(one.got));
    EXPECT_EQ(run.losses.size(), 1U);
    EXPECT_THAT(run.events, Not(Contains("checkpoint_written")));
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
