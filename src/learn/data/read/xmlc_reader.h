// SPDX-License-Identifier: Apache-2.0
//
// Reads libsvm/XMLC text (the Extreme Classification Repository's format): one record a line,
//
//   LABEL,LABEL,... INDEX:VALUE INDEX:VALUE ...
//
// with 0-based numbers, after an optional first line "RECORDS FEATURES LABELS" (three integers). In detail:
// - A line that starts with a space or a tab has no label. Blanks separate; LF and CRLF end a line; a UTF-8
//   byte order mark at the start of the file is dropped.
// - Feature indices may stand in any order; they are sorted. The same index twice is an error: only the user
//   knows whether the sum or the last one is meant. A label twice is one label.
// - Values are decimal numbers, finite as float; too small ones become zero. Zeros stay: dropping them would
//   change what the user wrote, and the learner loses nothing but a multiplication.
// - An empty line is a record without labels and features when the header counts it. It is ignored after the
//   last record, or without a header at the end of the file. Elsewhere it is an error, since without a header
//   it cannot be told from an accident.
// - With a header every index is below its FEATURES and every label below its LABELS. The file then has
//   exactly RECORDS records (skipped bad lines count).
// - A file without any record is an error.
//
// Thread rule: the calling thread; parsing on the workers of options.compute (reading.h).
#pragma once

#include "base/result.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"

namespace gossamer::data {

[[nodiscard]] Result<ReadReport> read_xmlc(ByteSource& source, const ReadOptions& options, RecordSink sink);

}  // namespace gossamer::data
