// SPDX-License-Identifier: Apache-2.0
#include "learn/text/weighting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/check.h"
#include "learn/data/unit_length.h"

namespace gossamer::text {
namespace {

// What one pass over the training values tells.
struct Survey {
  std::uint64_t records = 0;
  std::uint64_t nonzero = 0;
  std::uint64_t weighted = 0;   // negative, or not an integer
  std::uint64_t unit_rows = 0;  // rows of norm 1 within rounding
  float largest = 0;
  std::vector<std::uint32_t> document_frequency;
};

void add(const data::SparseRow& row, Survey& survey) {
  double squares = 0;
  for (std::size_t i = 0; i < row.index.size(); ++i) {
    const float v = row.value[i];
    if (v == 0) continue;
    ++survey.nonzero;
    ++survey.document_frequency[row.index[i]];
    survey.largest = std::max(survey.largest, v);
    survey.weighted += v < 0 || v != std::trunc(v) ? 1 : 0;
    squares += static_cast<double>(v) * v;
  }
  survey.unit_rows += std::abs(squares - 1) < 1e-3 ? 1 : 0;
}

Survey survey_of(const data::Dataset& dataset) {
  Survey survey;
  survey.records = dataset.size();
  survey.document_frequency.resize(dataset.features());
  for (std::uint64_t i = 0; i < survey.records; ++i) add(dataset.record(RecordIndex{i}).features, survey);
  return survey;
}

float scaled(float v, CountScale scale) {
  if (v <= 1 || scale == CountScale::kLinear) return v;
  const float log = 1 + std::log(v);
  return scale == CountScale::kLog ? log : 1 + std::log(log);
}

// Stays finite: of a product beyond the floats nothing but its sign would be left.
float weighed(float v, float idf) {
  constexpr float kMost = std::numeric_limits<float>::max();
  return std::clamp(v * idf, -kMost, kMost);
}

// Adds up in four parts: a single sum would wait for each addition.
double sum_of_squares(std::span<const float> values) {
  std::array<double, 4> parts{};
  const std::size_t whole = values.size() - values.size() % parts.size();
  for (std::size_t i = 0; i < whole; i += parts.size()) {
    for (std::size_t j = 0; j < parts.size(); ++j) {
      const double v = values[i + j];
      parts[j] += v * v;
    }
  }
  for (std::size_t i = whole; i < values.size(); ++i) parts[0] += static_cast<double>(values[i]) * values[i];
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

std::vector<float> idf_of(const Survey& survey) {
  std::vector<float> idf(survey.document_frequency.size());
  const auto records = static_cast<double>(survey.records);
  std::transform(survey.document_frequency.begin(), survey.document_frequency.end(), idf.begin(),
                 [records](std::uint32_t df) {
                   return df == 0 ? 0.0F : static_cast<float>(std::log(records / static_cast<double>(df)));
                 });
  return idf;
}

}  // namespace

NeighbourWeighting neighbour_weighting(const FeatureWeighting& learnt) {
  if (learnt.idf.empty()) return {.counts = learnt.counts};
  const bool counts = learnt.counts != CountScale::kLinear;
  return {.counts = counts ? CountScale::kDoubleLog : CountScale::kLinear, .idf_power = 0.6F, .pivot = 0.7F};
}

FeatureWeighting comparison_weighting(const FeatureWeighting& learnt, const NeighbourWeighting& neighbours) {
  FeatureWeighting weighting{.counts = neighbours.counts, .l2 = true, .idf = learnt.idf};
  for (float& idf : weighting.idf) idf = std::pow(idf, neighbours.idf_power);
  return weighting;
}

void FeatureWeighting::apply(data::SparseRow row, std::span<float> out) const {
  CHECK(out.size() == row.value.size(), out.size(), row.value.size());
  std::transform(row.value.begin(), row.value.end(), out.begin(),
                 [this](float v) { return scaled(v, counts); });
  if (!idf.empty()) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = row.index[i] < idf.size() ? weighed(out[i], idf[row.index[i]]) : 0.0F;
    }
  }
  if (!l2) return;
  data::to_unit_length(out, sum_of_squares(out), out.data());
}

FittedWeighting fit_weighting(const data::Dataset& dataset) {
  const Survey survey = survey_of(dataset);
  if (survey.nonzero == 0)
    return {{}, "no feature has a value other than 0: rows are only scaled to length 1"};
  if (survey.weighted > 0) {
    const char* shape = 2 * survey.unit_rows > survey.records ? "rows of length 1" : "real numbers";
    return {{},
            fmt::format("{} of {} values are no counts ({}): they are kept, rows are scaled to length 1",
                        survey.weighted, survey.nonzero, shape)};
  }
  if (survey.largest <= 1) {
    return {{.idf = idf_of(survey)}, "all values are 0 or 1: idf, rows scaled to length 1"};
  }
  return {
      {.counts = CountScale::kLog, .idf = idf_of(survey)},
      fmt::format("all values are whole numbers up to {}, so counts: (1 + ln count) x idf, rows scaled to "
                  "length 1",
                  survey.largest)};
}

}  // namespace gossamer::text
