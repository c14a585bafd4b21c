// SPDX-License-Identifier: Apache-2.0
//
// copy_lines: what the user's files hold, checked and written down again as one plain text file, for kinds of
// data of which a run keeps the text itself. Thread rule: the calling thread.
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "learn/data/byte_source.h"
#include "learn/data/reading.h"
#include "node/data_import.h"
#include "node/line_file.h"
#include "node/node_host.h"

namespace gossamer::node {

struct LineCopy {
  const DataImportRequest& request;  // sources and skip_bad
  std::string path;                  // of the new file; it appears whole or not at all
  std::string_view unit;             // what progress counts, such as "sessions"
};

// Reads one source and gives the lines of its records to the file.
using CopySource = FunctionRef<Result<data::ReadReport>(data::ByteSource& source,
                                                        const data::ReadOptions& options, LineFile& file)>;

// Errors: those of the reader and of the disk.
[[nodiscard]] Result<data::ReadReport> copy_lines(const NodeHost& host, const LineCopy& copy,
                                                  CopySource copy_source);

}  // namespace gossamer::node
