// SPDX-License-Identifier: Apache-2.0
#include "commands/train/measured.h"

namespace gossamer::commands {

Result<Measured> measure_trained(const run::NodeHost& host, const sparse_engine::Model& model,
                                 const EvaluateRequest& request, sparse_engine::Predictor* predictor) {
  const Instant begin = host.clock.now();
  const Duration cpu = host.clock.process_cpu();
  const auto metrics = predictor == nullptr ? evaluate_model(host, model, request)
                                            : evaluate_model(host, model, *predictor, request);
  if (!metrics.ok()) return metrics.error();
  Measured measured{.metrics_json = metrics_json(*metrics), .text = metrics_text(*metrics)};
  measured.seconds = (host.clock.now() - begin).seconds();
  if (predictor == nullptr) measured.cpu_seconds = (host.clock.process_cpu() - cpu).seconds();
  return measured;
}

}  // namespace gossamer::commands
