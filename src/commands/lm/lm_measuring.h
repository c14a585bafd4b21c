// SPDX-License-Identifier: Apache-2.0
//
// gossamer eval of a language model. Thread rule: the thread that owns the Compute.
#pragma once

#include "base/result.h"
#include "commands/engine/model_requests.h"
#include "commands/lm/lm_modules.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Measures the model on a text: what data.test takes. The text becomes tokens in wanted.scratch, which is
// gone before they are measured. A token file is measured where it lies. JSON:
//   {"metrics":{"loss","perplexity","bits_per_byte","tokens"},"tokens","bytes","documents","skipped",
//    "tokens_per_second","load_seconds","eval_seconds","cpu_seconds","peak_rss_bytes"}
// Errors: those of load_lm() and import_text().
[[nodiscard]] Result<Report> measure_lm(const run::NodeHost& host, const LmModules& modules,
                                        const MeasureModel& wanted);

}  // namespace gossamer::commands
