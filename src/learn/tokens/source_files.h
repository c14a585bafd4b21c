// SPDX-License-Identifier: Apache-2.0
//
// The files that a source of text stands for. Internal to learn/tokens. Thread rule: as for Disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::tokens {

// Folders within folders. More are a link that leads back to a folder around it, as a rule.
inline constexpr std::size_t kMostFolders = 64;

struct SourceFiles {
  bool is_folder = false;
  std::vector<std::string> paths;  // the source itself, or all files below a folder, in order of their bytes
  std::uint64_t hidden = 0;        // files and folders that were left out; their name begins with a dot
};

// Whether a source is standard input, which can be read only once.
[[nodiscard]] bool is_standard_input(std::string_view source);
// Whether a name says that each line is a JSON object: .jsonl or .ndjson, with or without .gz or .zst.
[[nodiscard]] bool names_json_lines(std::string_view path);

// The files of one source: a file, a folder, or "-". A hidden folder counts once, whatever is in it. A source
// that is missing is taken for a file. Errors: those of the disk, also for what is below a folder and neither
// a regular file nor a folder that can be listed, such as a socket or a link that leads nowhere. kBadData for
// more than kMostFolders folders within each other.
[[nodiscard]] Result<SourceFiles> files_of(host::Disk& disk, const std::string& source);

}  // namespace gossamer::tokens
