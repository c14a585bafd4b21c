// SPDX-License-Identifier: Apache-2.0
//
// Reads the documents of a user's sources, and hands them to a sink in pieces. A source is
//
// - a plain file, which is one document. "-" is standard input, and a plain file too.
// - a file of JSON lines, by its name: .jsonl or .ndjson, with or without .gz or .zst behind. Each line is a
//   JSON object, and its string "text" is a document. Other keys and blank lines are ignored.
// - a folder, which stands for all files below it in the order of the bytes of their paths. Hidden files and
//   folders, whose name begins with a dot, are left out with all that they hold.
//
// Files may be packed with gzip or zstd (learn/data/read/byte_source.h). All text is UTF-8. A plain file
// holds no zero byte: that would be a picture or a program. A "text" may have one, as \u0000. A byte order
// mark at the start of a file is left out. Every other byte of a plain file reaches the sink, also the "\r"
// of "\r\n".
//
// Pieces: a piece has at most piece_bytes bytes and ends behind a "\n", or at the end of its document. Only a
// line that is longer than a piece, its end included, is cut inside, but never inside a character. There a
// tokenizer may make other tokens than of the whole line (tokenizer.h). Cuts depend on the text and
// piece_bytes alone. So packing, chunks and workers do not change them.
//
// Empty documents are left out and counted: an empty "text", and an empty file below a folder. A source
// without any document that is not empty is an error.
//
// Bad lines of JSON lines and bad plain files are kBadData with FILE:LINE:COLUMN (learn/data/read/reading.h).
// Up to skip_bad of both together are left out and reported. A plain file that is left out must not have
// reached the sink, so where skip_bad allows one more, plain files are read twice. Standard input and pipes
// can be read only once: a bad one always ends the read. So does a damaged archive.
//
// Memory: one piece, and for JSON lines the chunks of learn/data/read/line_chunks.h. Thread rule: the calling
// thread; JSON lines are parsed on the workers of options.read.compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"

namespace gossamer::tokens {

struct TextOptions {
  std::size_t piece_bytes = std::size_t{1} << 20;  // at least 4
  // The limits of lines and chunks are those of JSON lines. `progress` counts documents as records. With
  // SinkRuns::kBesideParsing the sink must not use the Compute.
  data::ReadOptions read = {};
};

struct TextReport {
  std::uint64_t files = 0;      // that were read, packed or not; without bad plain files
  std::uint64_t documents = 0;  // that the sink got
  std::uint64_t empty = 0;      // documents without a byte, left out
  std::uint64_t hidden = 0;     // files and folders, left out
  std::uint64_t skipped = 0;    // bad lines and bad plain files, left out
  std::uint64_t bytes = 0;      // of the documents that the sink got
  std::uint64_t lines = 0;      // of all files that were read, blank and bad ones included
  // The first data::ReadReport::kMaxExamples that were skipped, in their order.
  std::vector<Error> examples = {};
};

// Takes documents one after another. begin() comes before the first piece of each, end() behind the last. A
// document has at least one piece, and no piece is empty. An error ends the read and is returned as it is.
class DocumentSink {
 public:
  DocumentSink() = default;
  DocumentSink(const DocumentSink&) = delete;
  DocumentSink& operator=(const DocumentSink&) = delete;
  virtual ~DocumentSink() = default;

  [[nodiscard]] virtual Result<void> begin() = 0;
  // `text` is valid UTF-8, valid only during the call.
  [[nodiscard]] virtual Result<void> piece(std::string_view text) = 0;
  [[nodiscard]] virtual Result<void> end() = 0;
};

// Reads all sources, at least one, in their order.
[[nodiscard]] Result<TextReport> read_documents(host::Disk& disk, std::span<const std::string> sources,
                                                const TextOptions& options, DocumentSink& sink);

// The two kinds of one file, as read_documents() reads them; an empty one is no error here. A bad plain file
// is never skipped: the sink may have some of it.
[[nodiscard]] Result<TextReport> read_plain_document(data::ByteSource& source, const TextOptions& options,
                                                     DocumentSink& sink);
[[nodiscard]] Result<TextReport> read_document_lines(data::ByteSource& source, const TextOptions& options,
                                                     DocumentSink& sink);

}  // namespace gossamer::tokens
