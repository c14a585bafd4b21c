// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/source_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::tokens {
namespace {

// A folder whose names are known, and how many folders are around it.
struct OpenFolder {
  std::string path;
  std::vector<std::string> names;
  std::size_t depth = 0;
};

std::string below(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

Error too_deep(const std::string& path) {
  return Error{.kind = ErrorKind::kBadData,
               .where = path,
               .what = "the folder lies too deep",
               .got = fmt::format("more than {} folders within each other", kMostFolders),
               .expected = fmt::format("at most {}", kMostFolders),
               .fix = "remove the link that leads back to a folder around it"};
}

// Adds the files of one folder, and notes the folders in it.
Result<void> take(host::Disk& disk, const OpenFolder& folder, SourceFiles& found,
                  std::vector<OpenFolder>& open) {
  for (const std::string& name : folder.names) {
    if (name.starts_with('.')) {
      ++found.hidden;
      continue;
    }
    std::string path = below(folder.path, name);
    // The size comes first: it tells files from all else without opening them, which could wait for ever.
    if (disk.file_size(path).ok()) {
      found.paths.push_back(std::move(path));
      continue;
    }
    auto names = disk.list(path);
    if (!names.ok()) return names.error();
    if (folder.depth + 1 > kMostFolders) return too_deep(path);
    open.push_back({.path = std::move(path), .names = *std::move(names), .depth = folder.depth + 1});
  }
  return {};
}

}  // namespace

bool is_standard_input(std::string_view source) { return source == "-" || source == "/dev/stdin"; }

bool names_json_lines(std::string_view path) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (!path.ends_with(packed)) continue;
    path.remove_suffix(packed.size());
    break;
  }
  return path.ends_with(".jsonl") || path.ends_with(".ndjson");
}

Result<SourceFiles> files_of(host::Disk& disk, const std::string& source) {
  SourceFiles found;
  auto names = is_standard_input(source) ? Result<std::vector<std::string>>(Error{}) : disk.list(source);
  if (!names.ok()) {
    found.paths.push_back(source);
    return found;
  }
  found.is_folder = true;
  std::vector<OpenFolder> open;
  open.push_back({.path = source, .names = *std::move(names), .depth = 1});
  while (!open.empty()) {
    const OpenFolder folder = std::move(open.back());
    open.pop_back();
    if (auto done = take(disk, folder, found, open); !done.ok()) return done.error();
  }
  std::sort(found.paths.begin(), found.paths.end());
  return found;
}

}  // namespace gossamer::tokens
