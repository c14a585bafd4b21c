// SPDX-License-Identifier: Apache-2.0
//
// The figures of a trained network on the test records of its run.
//
// Thread rule: any thread, if the predictor takes it.
#pragma once

#include <string>

#include "base/result.h"
#include "commands/predict/prediction.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/predictor.h"
#include "run/node_host.h"

namespace gossamer::commands {

struct Measured {
  std::string metrics_json;  // as metrics_json() in prediction.h
  std::string text;          // the same for people
  double seconds = 0;        // that measuring took
  double cpu_seconds = 0;    // of this process, if it measured alone
  bool before = false;       // an earlier process has measured it
};

// Measures the model, by that predictor if there is one. Errors are those of evaluate_model().
[[nodiscard]] Result<Measured> measure_trained(const run::NodeHost& host, const sparse_engine::Model& model,
                                               const EvaluateRequest& request,
                                               sparse_engine::Predictor* predictor = nullptr);

}  // namespace gossamer::commands
