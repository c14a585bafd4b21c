// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/text_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "learn/data/read/bad_lines.h"
#include "learn/data/read/line_chunks.h"
#include "learn/tokens/document_line.h"
#include "learn/tokens/source_files.h"
#include "learn/tokens/text_pieces.h"

namespace gossamer::tokens {
namespace {

using data::LineKind;

// Hands documents to a sink and counts them.
class DocumentOutput {
 public:
  DocumentOutput(DocumentSink& sink, TextReport& report) : sink_(sink), report_(report) {}

  [[nodiscard]] Result<void> piece(std::string_view text) {
    if (!begun_) {
      if (auto done = sink_.begin(); !done.ok()) return done;
      begun_ = true;
    }
    report_.bytes += text.size();
    return sink_.piece(text);
  }
  [[nodiscard]] Result<void> end() {
    ++(begun_ ? report_.documents : report_.empty);
    return std::exchange(begun_, false) ? sink_.end() : Result<void>();
  }
  // A whole document that is in memory.
  [[nodiscard]] Result<void> document(std::string_view text, std::size_t piece_bytes) {
    while (!text.empty()) {
      const std::size_t size = text.size() > piece_bytes ? first_piece(text, piece_bytes) : text.size();
      if (auto done = piece(text.substr(0, size)); !done.ok()) return done;
      text.remove_prefix(size);
    }
    return end();
  }

 private:
  DocumentSink& sink_;
  TextReport& report_;
  bool begun_ = false;
};

// The lines of one chunk: one kind a line, one text a document, one note a bad line.
struct DocumentLines {
  std::vector<LineKind> kinds;
  std::string texts;               // of all documents, one behind the other
  std::vector<std::size_t> ends;   // of each document in `texts`
  std::vector<data::BadLine> bad;  // of each bad line
};

class LineParser {
 public:
  explicit LineParser(const data::ReadOptions& options)
      : line_bytes_(options.limits.line_bytes), most_bad_(data::notes_per_chunk(options)) {}

  void parse(const data::Chunk& chunk, DocumentLines& lines) const {
    lines.kinds.clear();
    lines.texts.clear();
    lines.ends.clear();
    lines.bad.clear();
    if (chunk.oversized) note(data::line_too_long(line_bytes_), lines);
    for (std::string_view text = chunk.text; !text.empty() && lines.bad.size() < most_bad_;) {
      const std::size_t end = text.find('\n');
      parse_line(text.substr(0, end), lines);
      text.remove_prefix(end + 1);
    }
  }

 private:
  void parse_line(std::string_view line, DocumentLines& lines) const {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      lines.kinds.push_back(LineKind::kBlank);
    } else if (line.size() > line_bytes_) {
      note(data::line_too_long(line_bytes_), lines);
    } else if (auto bad = read_document(line, lines.texts)) {
      note(*std::move(bad), lines);
    } else {
      lines.kinds.push_back(LineKind::kRecord);
      lines.ends.push_back(lines.texts.size());
    }
  }
  static void note(data::BadLine bad, DocumentLines& lines) {
    lines.kinds.push_back(LineKind::kBad);
    lines.bad.push_back(std::move(bad));
  }

  std::size_t line_bytes_;
  std::uint64_t most_bad_;
};

// Takes the lines of a file in their order.
class LineDrain {
 public:
  LineDrain(data::BadLineLedger& ledger, DocumentOutput& output, std::size_t piece_bytes)
      : ledger_(ledger), output_(output), piece_bytes_(piece_bytes) {}

  [[nodiscard]] Result<void> drain(const DocumentLines& lines) {
    std::size_t bad = 0;
    std::size_t document = 0;
    std::size_t begin = 0;
    for (const LineKind kind : lines.kinds) {
      ++lines_;
      Result<void> done;
      if (kind == LineKind::kBad) {
        done = ledger_.add(lines_, lines.bad[bad++]);
      } else if (kind == LineKind::kRecord) {
        const std::size_t end = lines.ends[document++];
        done = output_.document(std::string_view(lines.texts).substr(begin, end - begin), piece_bytes_);
        begin = end;
      }
      if (!done.ok()) return done;
    }
    return {};
  }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }

 private:
  data::BadLineLedger& ledger_;
  DocumentOutput& output_;
  std::size_t piece_bytes_;
  std::uint64_t lines_ = 0;
};

// What a ledger counted about bad lines and files.
void add_skipped(const data::ReadReport& skipped, TextReport& report) {
  report.skipped += skipped.skipped;
  for (const Error& example : skipped.examples) {
    if (report.examples.size() < data::ReadReport::kMaxExamples) report.examples.push_back(example);
  }
}

void add_file(const TextReport& file, TextReport& sum) {
  sum.files += file.files;
  sum.documents += file.documents;
  sum.empty += file.empty;
  sum.bytes += file.bytes;
  sum.lines += file.lines;
  add_skipped({.skipped = file.skipped, .examples = file.examples}, sum);
}

// Whether one more bad line or file may be left out.
bool may_skip(const data::ReadOptions& options) { return options.skipped_before < options.skip_bad; }

constexpr std::string_view kFixFile =
    "mend the file, or use --skip-bad N to leave out up to N bad files and lines";
constexpr std::string_view kFixOnce = "mend the text; what can be read only once cannot be left out";

// The error of a plain file that is not left out.
Error bad_file(const std::string& name, const data::ReadOptions& options, PlainText::Fault fault) {
  // A file that may be left out and can be read twice does not come here.
  const bool once = name == "stdin" || may_skip(options);
  fault.bad.error.fix = once ? kFixOnce : kFixFile;
  // A ledger that may skip nothing completes the error. It says so where skip_bad is used up.
  const data::ReadOptions none{.skip_bad = once ? 0 : options.skip_bad,
                               .skipped_before = options.skipped_before};
  data::ReadReport counted;
  return data::BadLineLedger(name, none, counted).add(fault.line, fault.bad).error();
}

// "1 file", "2 files".
std::string count_of(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

// What a source without a document has.
std::string what_is_there(const SourceFiles& files, const TextReport& read) {
  std::string got;
  const auto add = [&got](std::uint64_t number, std::string_view noun) {
    if (number > 0) got += (got.empty() ? "" : " and ") + count_of(number, noun);
  };
  if (files.is_folder) got = count_of(files.paths.size(), "file");
  add(files.hidden, "hidden name");
  if (files.is_folder || read.lines > 0) add(read.empty, "empty document");
  add(read.skipped, "bad one");
  if (!got.empty()) return got;
  return read.lines == 0 ? "an empty file" : "blank lines";
}

// Reads all files of a list of sources.
class SourceReader {
 public:
  SourceReader(host::Disk& disk, const TextOptions& options, DocumentSink& sink)
      : disk_(disk), options_(options), sink_(sink) {}

  [[nodiscard]] Result<void> read(const std::string& source) {
    auto files = files_of(disk_, source);
    if (!files.ok()) return files.error();
    const TextReport before = report_;
    report_.hidden += files->hidden;
    for (const std::string& path : files->paths) {
      if (auto done = read_file(path); !done.ok()) return done;
    }
    if (report_.documents > before.documents) return {};
    const TextReport now{.empty = report_.empty - before.empty,
                         .skipped = report_.skipped - before.skipped,
                         .lines = report_.lines - before.lines};
    return Error{.kind = ErrorKind::kBadData,
                 .where = is_standard_input(source) ? "stdin" : source,
                 .what = fmt::format("the {} holds no text", files->is_folder ? "folder" : "file"),
                 .got = what_is_there(*files, now),
                 .expected = "at least one document that is not empty",
                 .fix = "check that this is the right one"};
  }
  [[nodiscard]] TextReport report() { return std::move(report_); }

 private:
  [[nodiscard]] Result<void> read_file(const std::string& path) {
    const bool plain = is_standard_input(path) || !names_json_lines(path);
    TextOptions options = options_;
    options.read.skipped_before += report_.skipped;
    if (options_.read.progress) {
      options.read.progress = [&](const data::ReadProgress& now) {
        return options_.read.progress(
            {.bytes = report_.bytes + now.bytes, .records = report_.documents + now.records});
      };
    }
    // What has no size is a pipe or the like, and can be read only once.
    const bool twice = plain && may_skip(options.read) && !is_standard_input(path);
    if (twice && disk_.file_size(path).ok()) {
      const auto left_out = leave_out(path, options);
      if (!left_out.ok()) return left_out.error();
      if (*left_out) return {};
    }
    auto source = data::open_bytes(disk_, path);
    if (!source.ok()) return source.error();
    auto file =
        plain ? read_plain_document(**source, options, sink_) : read_document_lines(**source, options, sink_);
    if (!file.ok()) return file.error();
    add_file(*file, report_);
    return {};
  }

  // Reads a plain file without a sink. Counts it and returns true if it is bad.
  [[nodiscard]] Result<bool> leave_out(const std::string& path, const TextOptions& options) {
    auto source = data::open_bytes(disk_, path);
    if (!source.ok()) return source.error();
    PlainText text(**source, options.piece_bytes);
    for (;;) {
      const auto piece = text.next();
      if (!piece.ok()) return piece.error();
      if (piece->empty()) break;
    }
    if (!text.fault()) return false;
    data::ReadReport counted;
    data::BadLine bad = text.fault()->bad;
    bad.error.fix = kFixFile;
    auto done = data::BadLineLedger((*source)->name(), options.read, counted).add(text.fault()->line, bad);
    if (!done.ok()) return done.error();
    add_skipped(counted, report_);
    return true;
  }

  host::Disk& disk_;
  const TextOptions& options_;
  DocumentSink& sink_;
  TextReport report_;
};

}  // namespace

Result<TextReport> read_plain_document(data::ByteSource& source, const TextOptions& options,
                                       DocumentSink& sink) {
  TextReport report{.files = 1};
  DocumentOutput output(sink, report);
  PlainText text(source, options.piece_bytes);
  for (;;) {
    const auto piece = text.next();
    if (!piece.ok()) return piece.error();
    if (piece->empty()) break;
    if (auto done = output.piece(*piece); !done.ok()) return done.error();
    if (!options.read.progress) continue;
    if (auto done = options.read.progress({.bytes = report.bytes}); !done.ok()) return done.error();
  }
  if (text.fault()) return bad_file(source.name(), options.read, *text.fault());
  report.lines = text.lines();
  if (auto done = output.end(); !done.ok()) return done.error();
  return report;
}

Result<TextReport> read_document_lines(data::ByteSource& source, const TextOptions& options,
                                       DocumentSink& sink) {
  CHECK(options.piece_bytes >= kCharacterBytes, options.piece_bytes);
  TextReport report{.files = 1};
  data::ReadReport counted;
  data::BadLineLedger ledger(source.name(), options.read, counted);
  DocumentOutput output(sink, report);
  LineDrain drain(ledger, output, options.piece_bytes);
  data::LineChunks chunks(source, options.read.limits);
  const LineParser parser(options.read);
  std::vector<DocumentLines> slots(data::round_slots(options.read.compute));
  const auto parse = [&](const data::Chunk& chunk, std::size_t slot) { parser.parse(chunk, slots[slot]); };
  const auto drain_slot = [&](std::size_t slot) { return drain.drain(slots[slot]); };
  const auto after_round = [&]() -> Result<void> {
    if (!options.read.progress) return {};
    return options.read.progress({.bytes = report.bytes, .records = report.documents});
  };
  const Result<void> read = data::parse_in_rounds(
      chunks, options.read.compute,
      {.parse = parse, .drain = drain_slot, .after_round = after_round, .sink = options.read.sink});
  if (!read.ok()) return read.error();
  report.lines = drain.lines();
  add_skipped(counted, report);
  return report;
}

Result<TextReport> read_documents(host::Disk& disk, std::span<const std::string> sources,
                                  const TextOptions& options, DocumentSink& sink) {
  CHECK(!sources.empty());
  SourceReader reader(disk, options, sink);
  for (const std::string& source : sources) {
    if (auto done = reader.read(source); !done.ok()) return done.error();
  }
  return reader.report();
}

}  // namespace gossamer::tokens
