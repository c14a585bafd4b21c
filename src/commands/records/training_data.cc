// SPDX-License-Identifier: Apache-2.0
#include "commands/records/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/printable.h"
#include "commands/records/conversion.h"
#include "commands/records/json_shapes.h"
#include "commands/records/other_formats.h"
#include "commands/records/record_formats.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/jsonl_reader.h"

namespace gossamer::commands {
namespace {

using data::RecordFormat;

struct Look {
  std::string text;
  data::Packing packing = data::Packing::kPlain;

  [[nodiscard]] bool whole() const { return text.size() < kLookBytes; }
  [[nodiscard]] SeenFile of(const std::string& path) const {
    return {.begin = text, .path = path, .packing = packing, .whole = whole()};
  }
};

// The beginning of the file, unpacked.
Result<Look> beginning(host::Disk& disk, const std::string& path) {
  auto source = data::open_bytes(disk, path);
  if (!source.ok()) return source.error();
  Look look{.text = std::string(kLookBytes, '\0'), .packing = (*source)->packing()};
  auto got = (*source)->read(std::as_writable_bytes(std::span(look.text)));
  if (!got.ok()) return got.error();
  look.text.resize(*got);
  return look;
}

// The first line that is not blank, without blanks in front.
std::string_view first_line(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Whether the file has JSON lines: the first line that begins like a record decides. XMLC text begins with a
// label, or with a blank before the features. A line that begins in neither way is a bad one of either.
bool is_jsonl(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::size_t end = 0; !text.empty(); text.remove_prefix(std::min(text.size(), end + 1))) {
    end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) continue;
    if (line[begin] == '{') return true;
    if (line[begin] >= '0' && line[begin] <= '9') return false;
  }
  return false;
}

bool is_blank(const Look& look) { return first_line(look.text).empty() && look.whole(); }

Error no_records(const std::string& path) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "there is no record in the file",
          .got = "an empty file, or blank lines",
          .expected = "records of XMLC text or JSON lines",
          .fix = "check that this is the right file"};
}

// The error for a file in which no line is a record. The first line tells what is wrong with the file.
Error no_record(host::Disk& disk, const std::string& path, const Error& otherwise) {
  auto source = data::open_bytes(disk, path);
  if (!source.ok()) return source.error();
  const auto read = data::read_jsonl(**source, {}, [](const data::JsonlRecord&) { return Result<void>(); });
  if (read.ok()) return otherwise;
  Error error = read.error();
  error.fix = "check that this is the right file: none of its lines is a record";
  const auto look = beginning(disk, path);
  if (!look.ok()) return error;
  if (const auto command = rename_keys(first_line(look->text), look->of(path)))
    error.fix = "name the keys as in a record; " + *command;
  else if (const auto array = unwrap_records(look->of(path)))
    error.fix = "the records may stand in an array; " + *array;
  return error;
}

Error no_records_in(const std::string& directory) {
  return {.kind = ErrorKind::kFailed,
          .where = directory,
          .what = "there are no imported records in this directory",
          .got = "none of records.cache, records.jsonl, records.sessions and records.text",
          .expected = "a file of records, or a directory of 'gossamer data import'",
          .fix = "give the file, or import first: gossamer data import xmc FILE --out DIR"};
}

Error other_data(const std::string& path, std::string_view got, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = path,
          .what = "the data is not what data.format wants",
          .got = std::string(got),
          .expected = std::move(expected),
          .fix = "use the preset for such data, or leave data.format out"};
}

// Refuses a data.format that may not overrule the content, because the file would be read as
// something else without an error.
Result<void> check_wanted(const Source& source, std::optional<RecordFormat> wanted) {
  if (!wanted.has_value() || *wanted == source.format) return {};
  const char* const lines = row_of(*wanted).lines;
  if (lines == nullptr && row_of(source.format).lines == nullptr) return {};
  return other_data(source.path, name(source.format),
                    lines != nullptr ? lines : "records of XMLC text or JSON lines");
}

// Tells JSON lines of text, of names and of numbers apart. The first record with a feature decides for the
// file. A line of another kind is a bad line later on.
Result<Source> jsonl_source(host::Disk& disk, const std::string& path, data::Packing packing) {
  auto source = data::open_bytes(disk, path);
  if (!source.ok()) return source.error();
  RecordFormat format = RecordFormat::kJsonlText;
  bool enough = false;
  const auto read = data::read_jsonl(
      **source, {.skip_bad = UINT64_MAX}, [&](const data::JsonlRecord& record) -> Result<void> {
        using Kind = data::JsonlRecord::Kind;
        const bool text = record.kind == Kind::kText;
        if (!text)
          format = record.kind == Kind::kFeatures ? RecordFormat::kJsonlNumbers : RecordFormat::kJsonlNames;
        enough = text || !record.value.empty();
        if (!enough) return {};
        return Error{.kind = ErrorKind::kFailed, .where = "seen", .what = "enough"};
      });
  if (enough || read.ok()) return Source{.path = path, .format = format, .packing = packing};
  return no_record(disk, path, read.error());
}

// The error for a beginning that is of another format than the source's.
std::optional<Error> seen_format(const SeenFile& file, const Source& source) {
  const char* const lines = row_of(source.format).lines;
  if (lines == nullptr) return other_format(file);
  return no_lines(file, {.lines = lines, .as_is = source.as_is});
}

Error unknown_format(const std::string& path) {
  return {.kind = ErrorKind::kUsage,
          .where = "data.format",
          .what = "the format of standard input, or of a pipe, is not known: it is read once",
          .got = path,
          .expected = "xmc, jsonl, sessions or text",
          .fix =
              "say data.format=xmc, sessions or text; JSON lines are imported first: COMMAND | gossamer data "
              "import jsonl - --out DIR, then data.train=DIR"};
}

}  // namespace

bool is_read_once(host::Disk& disk, const std::string& path) {
  if (path == "-") return true;
  const auto there = disk.exists(path);
  return there.ok() && *there && !disk.file_size(path).ok() && !disk.list(path).ok();
}

Result<FeatureKind> feature_kind(const run::NodeHost& host, const Source& source) {
  const auto features = row_of(source.format).features;
  if (features.has_value()) return *features;
  const auto dataset = data::CachedDataset::open(host.disk, source.path, host.compute);
  if (!dataset.ok()) return dataset.error();
  return feature_kind(**dataset);
}

Result<Source> find_source(host::Disk& disk, const std::string& path, std::optional<RecordFormat> wanted,
                           bool as_is) {
  const bool once = is_read_once(disk, path);
  if (once && !wanted.has_value()) return unknown_format(path);
  if (once) return Source{.path = path, .format = *wanted, .as_is = as_is};
  for (const RecordFormat imported : kImportedFormats) {
    const RecordRow& row = row_of(imported);
    Source source{.path = fmt::format("{}/{}", path, row.imported), .format = imported};
    auto there = disk.exists(source.path);
    if (!there.ok() || !*there) continue;
    if (auto done = check_wanted(source, wanted); !done.ok()) return done.error();
    return row.jsonl ? jsonl_source(disk, source.path, source.packing) : Result<Source>(std::move(source));
  }
  if (disk.list(path).ok()) return no_records_in(path);
  const auto look = beginning(disk, path);
  if (!look.ok()) return look.error();
  if (!wanted && is_blank(*look)) return no_records(path);
  const RecordFormat format =
      wanted.value_or(is_jsonl(look->text) ? RecordFormat::kJsonlText : RecordFormat::kXmc);
  Source source{.path = path, .format = format, .as_is = as_is, .packing = look->packing};
  if (const auto other = seen_format(look->of(path), source)) return *other;
  return row_of(format).jsonl ? jsonl_source(disk, path, look->packing) : Result<Source>(std::move(source));
}

Result<std::unique_ptr<data::ByteSource>> open_source(host::Disk& disk, const Source& source) {
  auto bytes = data::open_bytes(disk, source.path);
  if (!bytes.ok() || !is_read_once(disk, source.path)) return bytes;
  SeenFile file{.path = (*bytes)->name(), .packing = (*bytes)->packing()};
  return data::look_first(*std::move(bytes), [&](std::string_view begin) -> Result<void> {
    file.begin = begin;
    file.whole = begin.size() < kLookBytes;
    if (auto other = seen_format(file, source)) return *std::move(other);
    return {};
  });
}

bool lacks_labels(const Source& source, const data::ReadReport& report) {
  return row_of(source.format).lines == nullptr && report.records > 0 && report.labelled == 0;
}

std::string describe_unlabelled(const Source& source, const data::ReadReport& report) {
  const RecordRow& row = row_of(source.format);
  if (row.lines != nullptr || report.labelled == 0 || report.labelled >= report.records) return {};
  std::string text =
      fmt::format("{} of {} records have no label, and teach nothing",
                  run::human_count(report.records - report.labelled), run::human_count(report.records));
  if (!report.other_keys.empty())
    text += fmt::format("; beside 'labels' there are the keys {}", data::quoted_list(report.other_keys));
  return text;
}

Error no_labels(const Source& source, const data::ReadReport* report) {
  Error error{.kind = ErrorKind::kBadData,
              .where = source.path,
              .what = "no record has a label",
              .got = "records that were imported without labels",
              .expected = "records with labels",
              .fix = "import them anew with labels: see gossamer data import --help"};
  if (report == nullptr) return error;
  const bool json = row_of(source.format).jsonl;
  error.got = run::counted(report->records, "record") + " of features alone";
  error.expected = "LABEL,LABEL INDEX:VALUE ..., without a blank in front";
  error.fix = "write the labels in front of the features";
  if (!json) return error;
  error.got = report->labels_keys == 0
                  ? run::counted(report->records, "record") + " without the key 'labels'"
                  : fmt::format("{}, {} of them with empty 'labels'", run::counted(report->records, "record"),
                                run::human_count(report->labels_keys));
  if (!report->other_keys.empty())
    error.got += fmt::format(", and with the keys {}", data::quoted_list(report->other_keys));
  error.expected = R"({"text": ..., "labels": [...]} or {"features": ..., "labels": [...]})";
  const SeenFile file{.path = source.path, .packing = source.packing};
  if (const auto command = name_labels(report->other_keys, file)) {
    error.fix = "the key with the labels has to be 'labels'; " + *command;
  } else {
    error.fix =
        report->labels_keys == 0 ? "name the key with the labels 'labels'" : "give the records labels";
  }
  return error;
}

Result<void> check_records(const run::NodeHost& host, const Source& source, std::uint64_t skip_bad) {
  const auto read = row_of(source.format).read;
  if (read == nullptr) return {};
  auto bytes = data::open_bytes(host.disk, source.path);
  if (!bytes.ok()) return bytes.error();
  const auto report = read(**bytes, {.skip_bad = skip_bad, .compute = &host.compute});
  if (!report.ok()) return report.error();
  return lacks_labels(source, *report) ? Result<void>(no_labels(source, &*report)) : Result<void>();
}

}  // namespace gossamer::commands
