// SPDX-License-Identifier: Apache-2.0
#include "commands/records/weighting_choice.h"

#include <cmath>
#include <vector>

namespace gossamer::commands {
namespace {

std::vector<float> inverse_document_frequency(const data::Dataset& dataset) {
  std::vector<std::uint64_t> df(dataset.features());
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    const data::SparseRow row = dataset.record(RecordIndex(i)).features;
    for (std::size_t k = 0; k < row.index.size(); ++k) df[row.index[k]] += row.value[k] != 0 ? 1 : 0;
  }
  std::vector<float> idf(df.size());
  const auto records = static_cast<double>(dataset.size());
  for (std::size_t f = 0; f < df.size(); ++f) {
    if (df[f] > 0) idf[f] = static_cast<float>(std::log(records / static_cast<double>(df[f])));
  }
  return idf;
}

}  // namespace

text::FittedWeighting choose_weighting(std::optional<sparse_engine::Weighting> wanted,
                                       const data::Dataset& dataset,
                                       const std::optional<text::FeaturizerState>& featurizer) {
  if (!wanted.has_value()) {
    if (!featurizer.has_value()) return text::fit_weighting(dataset);
    return {.weighting = text::featurizer_weighting(*featurizer),
            .reason = "the records are text, so log counts, idf, less for parts of words, unit length"};
  }
  switch (*wanted) {
    case sparse_engine::Weighting::kNone:
      return {.weighting = {.l2 = false}, .reason = "none: values as they are"};
    case sparse_engine::Weighting::kL2: return {.weighting = {.l2 = true}, .reason = "l2: unit length"};
    case sparse_engine::Weighting::kTfIdf: break;
  }
  if (featurizer.has_value()) {
    return {.weighting = text::featurizer_weighting(*featurizer),
            .reason = "tfidf: log counts, idf, less for parts of words, unit length"};
  }
  return {
      .weighting = {.counts = text::CountScale::kLog, .l2 = true, .idf = inverse_document_frequency(dataset)},
      .reason = "tfidf: log counts, idf, unit length"};
}

}  // namespace gossamer::commands
