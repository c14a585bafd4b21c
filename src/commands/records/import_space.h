// SPDX-License-Identifier: Apache-2.0
//
// Is the disk large enough for an import, asked before the work and not in the middle of it. What the import
// writes is estimated from a sample. A disk that cannot tell its free space is never too small.
//
// Thread rule: one thread; reads the disk, changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "commands/records/training_data.h"
#include "host/api/disk.h"
#include "run/node_host.h"

namespace gossamer::commands {

// What an import will write, from the first megabytes of each source.
struct ImportEstimate {
  std::uint64_t bytes = 0;  // 0: nothing is known, as for standard input
  bool exact = true;        // every source was looked at as a whole
};
// `sources` are of one format. For text and sessions it is the size of the records copied as text.
[[nodiscard]] ImportEstimate estimate_import(host::Disk& disk, const std::vector<Source>& sources);
// The estimates of the formats (record_formats.h).
[[nodiscard]] std::uint64_t estimate_xmlc(std::string_view sample);
[[nodiscard]] std::uint64_t estimate_jsonl(std::string_view sample);
[[nodiscard]] std::uint64_t estimate_text(std::string_view sample);
[[nodiscard]] std::uint64_t estimate_copy(std::string_view sample);

// kFailed when the estimate is more than what is free beside `path`. For an estimate from a sample its half
// must be more. Between half and whole it is told on the console.
[[nodiscard]] Result<void> check_import_space(const run::NodeHost& host, const ImportEstimate& estimate,
                                              const std::string& path);

}  // namespace gossamer::commands
