// SPDX-License-Identifier: Apache-2.0
//
// BatchReader: turns step numbers into batches. Step t's samples are the ids [t*B, (t+1)*B) of the sampling
// plan. Each is read from the dataset, weighted (learn/text/weighting.h) and laid out back to back. Any node
// can make any batch: nothing here depends on earlier reads.
//
// Owner: the training loop's thread, which also owns the Compute that shares the work. The batch is a view
// into the reader's buffers, valid until the next read. Memory is allocated only for a batch larger than all
// before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engines/sparse/train/step_source.h"
#include "host/api/compute.h"
#include "learn/data/dataset.h"
#include "learn/data/rows.h"
#include "learn/data/sampling_plan.h"
#include "learn/text/weighting.h"

namespace gossamer::sparse_engine {

// The samples of a step, and what training hides of them. Every feature of a sample is left out with chance
// `dropout`, and the others grow by 1 / (1 - dropout). So no record can be recognised by one feature alone.
struct StepRequest {
  StepNumber step;
  std::size_t batch = 1;
  double dropout = 0;      // [0, 1)
  std::uint64_t seed = 1;  // draws the dropout
};

class BatchReader {
 public:
  // Borrows all three for its life.
  BatchReader(const data::Dataset& dataset, const text::FeatureWeighting& weighting, host::Compute& compute);

  // Reads the samples of a step of `plan`. Requires a plan over this dataset's size.
  [[nodiscard]] data::Batch read_step(const data::SamplingPlan& plan, const StepRequest& request);
  // Reads records as they lie in the dataset. Requires a range within it.
  [[nodiscard]] data::Batch read_records(host::Range records);

 private:
  [[nodiscard]] data::Batch gather(const StepRequest* dropout);

  const data::Dataset& dataset_;
  const text::FeatureWeighting& weighting_;
  host::Compute& compute_;
  std::vector<data::Record> records_;
  std::vector<std::uint32_t> feature_begin_;
  std::vector<std::uint32_t> feature_;
  std::vector<float> value_;
  std::vector<std::uint32_t> label_begin_;
  std::vector<std::uint32_t> label_;
};

// The steps of a run over a dataset. Step t has the samples [t*B, (t+1)*B) of the plan of `seed`.
class RecordSteps final : public StepSource {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::size_t batch = 1;
    double dropout = 0;  // chance that a feature is left out, [0, 1)
  };
  // Borrows dataset, weighting and compute for its life. Requires records.
  RecordSteps(const BatchReader& reader, std::uint64_t records, const Options& options)
      : reader_(reader), plan_(options.seed, records), options_(options) {}

  [[nodiscard]] data::Batch read(StepNumber step) override {
    return reader_.read_step(
        plan_, {.step = step, .batch = options_.batch, .dropout = options_.dropout, .seed = options_.seed});
  }

 private:
  BatchReader reader_;
  data::SamplingPlan plan_;
  Options options_;
};

}  // namespace gossamer::sparse_engine
