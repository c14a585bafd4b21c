// SPDX-License-Identifier: Apache-2.0
#include "host/api/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::host {
namespace {

Result<void> write_new(Disk& disk, const std::string& path, std::span<const std::byte> content,
                       WriteMode mode) {
  auto file = disk.open_writable(path, mode);
  if (!file.ok()) return file.error();
  if (auto done = (*file)->append(content); !done.ok()) return done;
  if (auto done = (*file)->sync(); !done.ok()) return done;
  return (*file)->close();
}

Result<void> replace(Disk& disk, const std::string& path, std::span<const std::byte> content,
                     WriteMode mode) {
  const std::string temporary = path + ".tmp";
  Result<void> done = write_new(disk, temporary, content, mode);
  if (done.ok()) done = disk.rename(temporary, path);
  if (!done.ok()) {
    // The first error is the one to report; a failing clean-up says nothing new.
    static_cast<void>(disk.remove_all(temporary).ok());
    return done;
  }
  return disk.sync_directory(parent(path));
}

}  // namespace

Result<std::string> read_text(Disk& disk, const std::string& path, std::size_t limit_bytes) {
  auto file = disk.open_sequential(path);
  if (!file.ok()) return file.error();
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    if (before > limit_bytes) {
      return Error{.kind = ErrorKind::kBadData,
                   .where = path,
                   .what = "file is too large to be read whole",
                   .got = fmt::format("more than {} bytes", limit_bytes)};
    }
    text.resize(before + std::clamp<std::size_t>(before, 1 << 16, 1 << 24));
    const std::span<char> room(text.data() + before, text.size() - before);
    auto got = (*file)->read(std::as_writable_bytes(room));
    if (!got.ok()) return got.error();
    text.resize(before + *got);
    if (*got == 0) return text;
  }
}

Result<void> replace_file(Disk& disk, const std::string& path, std::span<const std::byte> content) {
  return replace(disk, path, content, WriteMode::kTruncate);
}

Result<void> replace_file(Disk& disk, const std::string& path, std::string_view content) {
  return replace_file(disk, path, std::as_bytes(std::span(content.data(), content.size())));
}

Result<void> replace_private_file(Disk& disk, const std::string& path, std::string_view content) {
  return replace(disk, path, std::as_bytes(std::span(content.data(), content.size())), WriteMode::kPrivate);
}

std::string parent(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace gossamer::host
