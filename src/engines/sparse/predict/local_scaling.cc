// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/local_scaling.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/aligned_array.h"
#include "engines/sparse/model/instance_index.h"
#include "engines/sparse/predict/neighbours.h"
#include "engines/sparse/predict/row_search.h"

namespace gossamer::sparse_engine {
namespace {

// The sample as instances without labels, with features of length 1.
struct Sample {
  std::vector<std::uint32_t> row;  // which row of all, rising
  Instances rows;
};

Sample sample_of(const Instances& all, std::size_t width) {
  Sample sample;
  const std::size_t count = std::min(all.rows(), kLocalSample);
  sample.rows.feature_begin.push_back(0);
  sample.rows.hidden = AlignedArray<kernels::Bf16>(count * width);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t r = i * all.rows() / count;
    sample.row.push_back(static_cast<std::uint32_t>(r));
    const data::SparseRow row = all.features().row(r);
    sample.rows.feature.insert(sample.rows.feature.end(), row.index.begin(), row.index.end());
    const std::size_t begin = sample.rows.value.size();
    sample.rows.value.resize(begin + row.value.size());
    to_unit_length(row.value, sample.rows.value.data() + begin);
    sample.rows.feature_begin.push_back(static_cast<std::uint32_t>(sample.rows.feature.size()));
    std::copy_n(all.hidden.data() + r * width, width, sample.rows.hidden.data() + i * width);
  }
  sample.rows.label_begin.assign(sample.rows.feature_begin.size(), 0);
  return sample;
}

// The kLocalNearest-th score in `found`, the best kLocalNearest + 1 of the sample, when row `self` is left
// out.
float radius_of(std::span<const Scored> found, const Sample& sample, std::size_t self) {
  std::size_t rank = 0;
  for (const Scored& near : found) {
    if (sample.row[near.id] == self) continue;
    if (++rank == kLocalNearest) return std::max(near.score, 0.0F);
  }
  return 0;
}

std::vector<float> input_radii(const Instances& all, const Sample& sample, std::size_t features,
                               const kernels::Kernels& kernels, host::Compute& compute) {
  const InstanceIndex index(sample.rows, {.features = features, .labels = 0}, kernels, compute);
  std::vector<float> radii(all.rows());
  compute.run([&](int worker) {
    InstanceIndex::Scratch scratch;
    AlignedArray<float> cosines(kIndexQueries * index.padded_rows());
    std::vector<data::SparseRow> queries;
    std::vector<Scored> found;
    const host::Range mine = host::worker_range(all.rows(), worker, compute.workers());
    for (std::size_t first = mine.begin; first < mine.end; first += kIndexQueries) {
      const std::size_t last = std::min(first + kIndexQueries, mine.end);
      queries.clear();
      for (std::size_t r = first; r < last; ++r) queries.push_back(all.features().row(r));
      index.cosines(queries, scratch, cosines.span().first(queries.size() * index.padded_rows()));
      for (std::size_t r = first; r < last; ++r) {
        index.nearest(cosines.span().subspan((r - first) * index.padded_rows(), index.padded_rows()),
                      kLocalNearest + 1, found);
        radii[r] = radius_of(found, sample, r);
      }
    }
  });
  return radii;
}

std::vector<float> hidden_radii(const Instances& all, const Sample& sample, std::size_t width,
                                const kernels::Kernels& kernels, host::Compute& compute) {
  RowSearch search({.rows = sample.rows.rows(), .width = width, .compact = sample.rows.hidden.data()},
                   kernels, compute);
  AlignedArray<float> queries(kQueryBlock * width);
  std::vector<float> radii(all.rows());
  for (std::size_t first = 0; first < all.rows(); first += kQueryBlock) {
    const std::size_t count = std::min(kQueryBlock, all.rows() - first);
    kernels.from_bf16(all.hidden.data() + first * width, queries.data(), count * width);
    search.search({.values = queries.data(), .stride = width, .count = count}, kLocalNearest + 1);
    for (std::size_t q = 0; q < count; ++q) radii[first + q] = radius_of(search.found(q), sample, first + q);
  }
  return radii;
}

}  // namespace

LocalRadii local_radii(const Instances& rows, std::size_t features, const kernels::Kernels& kernels,
                       host::Compute& compute) {
  if (rows.rows() == 0) return {};
  const std::size_t width = rows.hidden.size() / rows.rows();
  const Sample sample = sample_of(rows, width);
  return {.input = input_radii(rows, sample, features, kernels, compute),
          .hidden = hidden_radii(rows, sample, width, kernels, compute)};
}

std::vector<float> local_scales(const std::vector<float>& radii, float power) {
  constexpr double kLeastShare = 0.2;
  double mean = 0;
  for (const float r : radii) mean += static_cast<double>(r) / static_cast<double>(radii.size());
  std::vector<float> scales(radii.size(), 1);
  if (!(mean > 0)) return scales;
  for (std::size_t i = 0; i < radii.size(); ++i) {
    const double share = std::max(static_cast<double>(radii[i]) / mean, kLeastShare);
    scales[i] = static_cast<float>(std::pow(share, -static_cast<double>(power)));
  }
  return scales;
}

void scale_locally(Instances& rows, std::size_t features, float power, const kernels::Kernels& kernels,
                   host::Compute& compute) {
  if (power == 0 || rows.rows() == 0) return;
  const LocalRadii radii = local_radii(rows, features, kernels, compute);
  const std::vector<float> input = local_scales(radii.input, power);
  const std::vector<float> hidden = local_scales(radii.hidden, power);
  const std::size_t width = rows.hidden.size() / rows.rows();
  compute.run([&](int worker) {
    AlignedArray<float> vector(width);
    const host::Range mine = host::worker_range(rows.rows(), worker, compute.workers());
    for (std::size_t r = mine.begin; r < mine.end; ++r) {
      for (std::size_t i = rows.feature_begin[r]; i < rows.feature_begin[r + 1]; ++i)
        rows.value[i] *= input[r];
      kernels::Bf16* const row = rows.hidden.data() + r * width;
      kernels.from_bf16(row, vector.data(), width);
      for (float& v : vector.span()) v *= hidden[r];
      kernels.to_bf16(vector.data(), row, width);
    }
  });
}

}  // namespace gossamer::sparse_engine
