// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/output_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/fleet/step/value_bounds.h"
#include "kernels/kernels.h"

namespace gossamer::sparse_engine {
namespace {

using sparse::PartitionShare;
using sparse::RowScores;

constexpr std::uint64_t kCount = sizeof(std::uint32_t);
constexpr std::uint64_t kScore = sizeof(std::uint32_t) + sizeof(float);

Error no_score(std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = "a step",
          .what = "a member says that its output rows have scored what they cannot have",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether all nodes run the same version"};
}

// Makes loss shares of the scores of one sample after the other.
class Summing {
 public:
  explicit Summing(const kernels::Kernels& kernels) : kernels_(kernels) {}

  // Room for the scores of a sample.
  [[nodiscard]] std::span<float> room(std::size_t count) {
    count_ = count;
    padded_ = (count + kernels::kLanes - 1) / kernels::kLanes * kernels::kLanes;
    if (padded_ > scores_.size()) {
      for (std::vector<float>* row : {&scores_, &zeros_, &sums_}) row->resize(padded_);
    }
    return {scores_.data(), count};
  }
  // The loss share of the scores in the room. The scores are lost.
  [[nodiscard]] PartitionShare share() {
    const std::span<float> scores(scores_.data(), count_);
    if (scores.empty()) return {};
    const float largest = *std::ranges::max_element(scores);
    kernels::exp_row(kernels_,
                     {.scores = scores_.data(),
                      .bias = -largest,
                      .shift = zeros_.data(),
                      .sums = sums_.data(),
                      .n = padded_},
                     scores_.data());
    return {.shift = largest, .sum = static_cast<float>(std::accumulate(scores.begin(), scores.end(), 0.0))};
  }

 private:
  const kernels::Kernels& kernels_;
  std::size_t count_ = 0;
  std::size_t padded_ = 0;
  std::vector<float> scores_;  // [padded]
  std::vector<float> zeros_;
  std::vector<float> sums_;  // what exp_row adds up over rows; here there is one row
};

}  // namespace

std::uint64_t output_bytes(const FleetJob& job, std::uint64_t scores) {
  return job.learner.batch_max * kCount + scores * kScore;
}

std::uint64_t most_scores(const FleetJob& job, const sparse::NetworkPart& part) {
  std::uint64_t rows = 0;
  for (const std::size_t shard : shards_of(part)) {
    const host::Range range = part.rows.rows_of(shard);
    rows += range.end - range.begin;
  }
  return rows * job.learner.batch_max;
}

Result<std::uint64_t> read_score_count(const FleetJob& job, const Slices& bytes,
                                       const sparse::NetworkPart& part) {
  std::uint64_t count = 0;
  copy_front(bytes, std::as_writable_bytes(std::span(&count, 1)));
  const std::uint64_t most = most_scores(job, part);
  if (count > most) return no_score(fmt::format("{} scores", count), fmt::format("at most {}", most));
  return count;
}

Slices write_outputs(const FleetJob& job, std::span<const RowScores> by_worker, std::size_t samples,
                     std::uint64_t most) {
  CHECK(samples <= job.learner.batch_max, samples, job.learner.batch_max);
  std::vector<std::byte> bytes(output_bytes(job, most));
  auto at = bytes.begin();
  const auto put = [&at](const auto& values) {
    at = std::ranges::copy(std::as_bytes(std::span(values)), at).out;
  };
  std::vector<std::uint32_t> rows;
  std::vector<float> scores;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    rows.clear();
    scores.clear();
    for (const RowScores& one : by_worker) {
      for (std::size_t slot = 0; slot < one.rows.size(); ++slot) {
        const float score = one.scores[slot * samples + sample];
        if (!RowScores::scored(score)) continue;
        rows.push_back(one.rows[slot]);
        scores.push_back(score);
      }
    }
    const std::uint64_t after = (job.learner.batch_max - sample - 1) * kCount;
    CHECK(kCount + rows.size() * kScore + after <= static_cast<std::uint64_t>(bytes.end() - at), rows.size(),
          most);
    put(std::array{static_cast<std::uint32_t>(rows.size())});
    put(rows);
    put(scores);
  }
  return {Slice::of(std::move(bytes))};
}

Result<void> add_outputs(const FleetJob& job, const Slices& bytes, const sparse::NetworkPart& part,
                         std::span<PartitionShare> sums) {
  CHECK(sums.size() == job.learner.batch_max, sums.size(), job.learner.batch_max);
  std::vector<std::uint32_t> numbers(total_bytes(bytes) / sizeof(std::uint32_t));
  copy_front(bytes, std::as_writable_bytes(std::span(numbers)));
  Summing summing(job.kernels);
  std::span<const std::uint32_t> rest = numbers;
  for (PartitionShare& sum : sums) {
    if (rest.empty()) return no_score("fewer samples", fmt::format("{} samples", sums.size()));
    const std::uint64_t count = rest.front();
    rest = rest.subspan(1);
    if (2 * count > rest.size())
      return no_score(fmt::format("{} scores of a sample", count),
                      fmt::format("at most {}, as it has said", rest.size() / 2));
    for (const std::uint32_t row : rest.first(count)) {
      if (row >= job.shape.network.labels || !part.rows.contains(row))
        return no_score(fmt::format("a score of row {}", row), "scores of rows that it holds");
    }
    const std::span<float> scores = summing.room(count);
    std::ranges::copy(std::as_bytes(rest.subspan(count, count)), std::as_writable_bytes(scores).begin());
    if (!within(scores, taken(kMostScore))) return beyond_bounds("a score", taken(kMostScore));
    rest = rest.subspan(2 * count);
    sparse::add_share(sum, summing.share());
  }
  return {};
}

}  // namespace gossamer::sparse_engine
