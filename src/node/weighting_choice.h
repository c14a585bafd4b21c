// SPDX-License-Identifier: Apache-2.0
//
// Which weighting the key data.weighting means for a data set. Thread rule: pure function.
#pragma once

#include <optional>

#include "engines/sparse/config.h"
#include "learn/data/dataset.h"
#include "learn/text/featurizer.h"
#include "learn/text/weighting.h"

namespace gossamer::node {

// auto: for text that of its featurizer, else by the values; the reason says which. tfidf: log counts, idf of
// this data set and unit length.
[[nodiscard]] text::FittedWeighting choose_weighting(std::optional<engine::Weighting> wanted,
                                                     const data::Dataset& dataset,
                                                     const std::optional<text::FeaturizerState>& featurizer);

}  // namespace gossamer::node
