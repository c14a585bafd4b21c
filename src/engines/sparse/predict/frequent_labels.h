// SPDX-License-Identifier: Apache-2.0
//
// FrequentLabels: a baseline that ignores the query and answers with the labels seen most often in training.
//
// Owner: one thread. The model must outlive it.
#pragma once

#include <memory>

#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/predictor.h"

namespace gossamer::sparse_engine {

// The scores are the training counts. Labels never seen in training are not named.
[[nodiscard]] std::unique_ptr<Predictor> frequent_labels(const Model& model);

}  // namespace gossamer::sparse_engine
