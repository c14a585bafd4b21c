// SPDX-License-Identifier: Apache-2.0
//
// Chooses the weighting that the key data.weighting means for a data set. Thread rule: pure function.
#pragma once

#include <optional>

#include "engines/sparse/config/config.h"
#include "learn/data/dataset.h"
#include "learn/text/featurizer.h"
#include "learn/text/weighting.h"

namespace gossamer::commands {

// auto (nothing) takes the weighting of the featurizer for text, and otherwise looks at the values. The
// reason says which. tfidf is the weighting of the featurizer for text, and otherwise log counts, idf of
// this data set and unit length.
[[nodiscard]] text::FittedWeighting choose_weighting(std::optional<sparse_engine::Weighting> wanted,
                                                     const data::Dataset& dataset,
                                                     const std::optional<text::FeaturizerState>& featurizer);

}  // namespace gossamer::commands
