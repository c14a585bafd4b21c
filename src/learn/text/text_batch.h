// SPDX-License-Identifier: Apache-2.0
//
// TextBatch gathers text records until all workers have something to do, since a sink gets them one at a
// time. What a record becomes depends neither on its batch nor on the number of workers.
//
// Owner: the thread that owns the Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "host/api/compute.h"
#include "learn/data/rows.h"
#include "learn/text/featurizer.h"

namespace gossamer::text {

// Words of contexts, each counted where it stands, and those among them that have no known feature.
struct ContextWords {
  std::uint64_t words = 0;
  std::uint64_t unknown = 0;
};

class TextBatch {
 public:
  explicit TextBatch(host::Compute& compute) : compute_(compute), workers_(workers(compute)) {}

  // Copies a record. kBadData without `where` for text that is no UTF-8.
  [[nodiscard]] Result<void> add(std::string_view text, std::string_view context,
                                 std::span<const std::uint32_t> labels);
  // Whether there is enough for all workers. Then it is time to call one of the two functions below.
  [[nodiscard]] bool full() const;

  // Counts each text with one of the counters, of which there is one per worker. The batch is then empty.
  void count(std::span<FeatureCounter> counters);
  // Hands the records to `sink` in the order in which they came. The batch is then empty.
  [[nodiscard]] Result<void> featurize(const Featurizer& featurizer, float context_weight,
                                       FunctionRef<Result<void>(const data::Record& record)> sink);
  // Those of all records that featurize() has handed over, if their contexts have a weight.
  [[nodiscard]] ContextWords context_words() const;

 private:
  // The rows of one worker, back to back.
  struct Worker {
    FeaturizerScratch scratch;
    std::vector<std::size_t> begin;
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    ContextWords context_words;
  };
  [[nodiscard]] static std::size_t workers(const host::Compute& compute) {
    return static_cast<std::size_t>(compute.workers());
  }
  [[nodiscard]] std::size_t size() const { return label_end_.size(); }
  [[nodiscard]] std::string_view text(std::size_t i) const;
  [[nodiscard]] std::string_view context(std::size_t i) const;
  [[nodiscard]] std::span<const std::uint32_t> labels(std::size_t i) const;
  void clear();

  host::Compute& compute_;
  std::vector<Worker> workers_;
  std::string bytes_;                  // text, context, text, context, ...
  std::vector<std::size_t> text_end_;  // in bytes_
  std::vector<std::size_t> context_end_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::size_t> label_end_;
};

}  // namespace gossamer::text
