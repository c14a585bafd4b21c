// SPDX-License-Identifier: Apache-2.0
//
// copy_lines() checks the records of the user's files and writes them into one plain text file. It serves
// kinds of data of which a run keeps the text itself. Thread rule: the calling thread.
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "commands/records/data_import.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"
#include "run/line_file.h"
#include "run/node_host.h"

namespace gossamer::commands {

struct LineCopy {
  const DataImportRequest& request;  // sources and skip_bad
  std::string path;                  // of the new file; it appears whole or not at all
  std::string_view unit;             // what progress counts, such as "sessions"
};

// Reads one source and gives the lines of its records to the file.
using CopySource = FunctionRef<Result<data::ReadReport>(
    data::ByteSource& source, const data::ReadOptions& options, run::LineFile& file)>;

// Errors: those of the reader and of the disk.
[[nodiscard]] Result<data::ReadReport> copy_lines(const run::NodeHost& host, const LineCopy& copy,
                                                  CopySource copy_source);

}  // namespace gossamer::commands
