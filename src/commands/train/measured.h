// SPDX-License-Identifier: Apache-2.0
//
// What is learnt of a trained network by asking it. That is its figures on the test records of its run, and
// how likely its answers are right.
//
// Thread rule: any thread, if the predictor takes it.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "commands/predict/prediction.h"
#include "engines/sparse/model/fusion_options.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/predictor.h"
#include "run/node_host.h"

namespace gossamer::commands {

struct Measured {
  std::string metrics_json;  // as metrics_json() in prediction.h; empty: the run has no test records
  std::string text;          // the same for people
  double seconds = 0;        // that measuring took
  double cpu_seconds = 0;    // of this process, if it measured alone
  bool before = false;       // an earlier process has measured it
  // The net alone, as the members of a fleet answered for it. Nothing: not learnt there, or nothing was held
  // out.
  std::optional<sparse_engine::Calibration> calibration = {};
};

// Measures the model, by that predictor if there is one. Errors are those of evaluate_model().
[[nodiscard]] Result<Measured> measure_trained(const run::NodeHost& host, const sparse_engine::Model& model,
                                               const EvaluateRequest& request,
                                               sparse_engine::Predictor* predictor = nullptr);

}  // namespace gossamer::commands
