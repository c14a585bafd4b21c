// SPDX-License-Identifier: Apache-2.0
//
// What nearly every user of a Disk does: read a whole small file, or replace a file. A crash at any moment of
// a replacement leaves the old content or the new one. Thread rule: as for Disk.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::host {

// The whole file as text; refuses (kBadData) one of more than `limit_bytes`.
[[nodiscard]] Result<std::string> read_text(Disk& disk, const std::string& path,
                                            std::size_t limit_bytes = std::size_t{1} << 30);

// Writes `path`.tmp, syncs it, renames it over `path`, syncs the directory. On an error `path` is as before,
// and the temporary file is removed where the disk still allows it. If only the last step failed, `path` is
// new, but a crash may bring the old content back.
[[nodiscard]] Result<void> replace_file(Disk& disk, const std::string& path,
                                        std::span<const std::byte> content);
[[nodiscard]] Result<void> replace_file(Disk& disk, const std::string& path, std::string_view content);

// The same for a secret: only the owner of the file may read it (WriteMode::kPrivate).
[[nodiscard]] Result<void> replace_private_file(Disk& disk, const std::string& path,
                                                std::string_view content);

// "a/b/c" -> "a/b"; "c" -> ".".
[[nodiscard]] std::string parent(const std::string& path);

}  // namespace gossamer::host
