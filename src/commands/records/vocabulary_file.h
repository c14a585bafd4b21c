// SPDX-License-Identifier: Apache-2.0
//
// cache/vocabulary.json is the featurizer of a run of text. It is kept beside the imported records, so that a
// resumed run and `data.train=DIR` need not count words again. The model has a copy of its own.
//
// Thread rule: one thread.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "host/api/disk.h"
#include "learn/text/featurizer.h"

namespace gossamer::commands {

[[nodiscard]] Result<void> write_vocabulary(host::Disk& disk, const std::string& path,
                                            const text::FeaturizerState& state);
// Nothing when there is no such file (the records are not text). kBadData for a damaged one.
[[nodiscard]] Result<std::optional<text::FeaturizerState>> read_vocabulary(host::Disk& disk,
                                                                           const std::string& path);

}  // namespace gossamer::commands
