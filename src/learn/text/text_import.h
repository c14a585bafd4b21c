// SPDX-License-Identifier: Apache-2.0
//
// Records of text into a dataset cache, in two passes over the same sources. The first counts the vocabulary,
// the second makes records of known features. JSON lines with "text" are read
// (learn/data/read/jsonl_reader.h), with what learn/data/read/import.h promises of caches and sources.
//
//   auto state = count_vocabulary(disk, options, {});
//   const Featurizer featurizer(*std::move(state));
//   auto report = import_text(disk, options, {.featurizer = featurizer});
//
// Both share the work among all workers of options.read.compute, which they require. A line without text is
// kBadData. Thread rule: the thread that owns the Compute.
#pragma once

#include "base/result.h"
#include "host/api/disk.h"
#include "learn/data/read/import.h"
#include "learn/data/read/reading.h"
#include "learn/text/featurizer.h"
#include "learn/text/text_batch.h"

namespace gossamer::text {

// Leaves bad lines for the second pass to report.
[[nodiscard]] Result<FeaturizerState> count_vocabulary(host::Disk& disk, const data::ImportOptions& options,
                                                       const FeaturizerOptions& features);

struct TextImport {
  const Featurizer& featurizer;
  float context_weight = 1;               // of a record's "context"; its text has 1
  ContextWords* context_words = nullptr;  // gets those of all records, unless it is null
};
[[nodiscard]] Result<data::ReadReport> import_text(host::Disk& disk, const data::ImportOptions& options,
                                                   const TextImport& import);

}  // namespace gossamer::text
