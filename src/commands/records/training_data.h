// SPDX-License-Identifier: Apache-2.0
//
// The files that a user calls data.train or data.test: what format they have, and whether all of their lines
// are records. The content tells the format, but for lines of names, where data.format does.
//
//   FILE      XMLC text or JSON lines, plain or packed (learn/data/read/xmlc_reader.h, jsonl_reader.h)
//   FILE      sessions of items or plain text, where data.format says so (learn/data/read/session_reader.h,
//             word_reader.h)
//   DIR       what `data import` made: DIR/records.cache, .jsonl, .sessions or .text
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "commands/records/feature_kind.h"
#include "host/api/disk.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/reading.h"
#include "learn/data/record_format.h"
#include "run/node_host.h"

namespace gossamer::commands {

// What `data import` writes, in the order in which a directory is searched for it.
inline constexpr std::array kImportedFormats = {data::RecordFormat::kCache, data::RecordFormat::kJsonlText,
                                                data::RecordFormat::kSessions, data::RecordFormat::kText};

struct Source {
  std::string path;  // path of a file, or DIR/records.* of an imported directory
  data::RecordFormat format = data::RecordFormat::kXmc;
  bool as_is = false;                             // see find_source()
  data::Packing packing = data::Packing::kPlain;  // for messages; not known of what is read once
};

// The form in which the source writes its features. Imported records are opened and checked for that.
[[nodiscard]] Result<FeatureKind> feature_kind(const run::NodeHost& host, const Source& source);

// Whether a path can be read only once: standard input ("-"), or a pipe.
[[nodiscard]] bool is_read_once(host::Disk& disk, const std::string& path);

// Finds out what lies at `path`. `wanted` overrules the content of a file. What is read once cannot be looked
// at beforehand and needs it (kUsage). kBadData names a format that is not read (other_formats.h). kUsage
// when sessions or plain text are wanted and something else is seen, or the other way round. kFailed names a
// missing path. `as_is`: the user says that lines of names are such, whatever else they look like.
[[nodiscard]] Result<Source> find_source(host::Disk& disk, const std::string& path,
                                         std::optional<data::RecordFormat> wanted, bool as_is = false);

// Opens a source. One that is read once is looked at now: kBadData as of find_source().
[[nodiscard]] Result<std::unique_ptr<data::ByteSource>> open_source(host::Disk& disk, const Source& source);

// The error for a source in which no record has a label: it names the keys that are there instead. `report`
// is that of the read; null for imported records.
[[nodiscard]] Error no_labels(const Source& source, const data::ReadReport* report);
// The warning that some records, but not all, have no label; empty where all have one. It names the keys that
// are there beside.
[[nodiscard]] std::string describe_unlabelled(const Source& source, const data::ReadReport& report);
// Whether a record of the source can be without a label, but none has one.
[[nodiscard]] bool lacks_labels(const Source& source, const data::ReadReport& report);

// Reads a whole test file and keeps nothing. Its mistakes are better known before training than after:
// kBadData for a bad line, and where no record has a label.
[[nodiscard]] Result<void> check_records(const run::NodeHost& host, const Source& source,
                                         std::uint64_t skip_bad);

}  // namespace gossamer::commands
