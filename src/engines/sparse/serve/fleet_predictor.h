// SPDX-License-Identifier: Apache-2.0
//
// A predictor whose model lies with the members of a fleet. Its answers are those of a predictor of one
// process. It asks for a block of queries at a time, and waits for the answer.
//
// Thread rule: as of a Predictor; `ask` is called on its thread.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/predict/predictor.h"
#include "engines/sparse/serve/fleet_queries.h"

namespace gossamer::sparse_engine {

// Asks members as FleetQueries::ask() does, and waits.
using AskFleet = std::function<Result<FleetQueries::Answer>(const FleetQueries::Block& block)>;

// kShare: members have the training rows, and all parts of the fusion take part. kNone: the net alone ranks
// (PredictOptions::parts = kNetAlone). Names, weighting and options are those of `model`, which outlives the
// predictor. Its network is not looked at, except for the shape.
[[nodiscard]] std::unique_ptr<Predictor> fleet_predictor(const Model& model, PartInstances instances,
                                                         AskFleet ask);

}  // namespace gossamer::sparse_engine
