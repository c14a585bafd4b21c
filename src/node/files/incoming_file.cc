// SPDX-License-Identifier: Apache-2.0
#include "node/files/incoming_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/human_bytes.h"
#include "host/api/files.h"

namespace gossamer::node {

std::string IncomingFile::chunk_path(std::uint64_t chunk) const {
  return fmt::format("{}/{}", directory(), chunk);
}

Result<std::shared_ptr<IncomingFile>> IncomingFile::open(host::Disk& disk, const std::string& path,
                                                         const Sha256& id) {
  std::shared_ptr<IncomingFile> file(new IncomingFile(disk, path));
  if (auto made = disk.make_directories(file->directory()); !made.ok()) return made.error();
  const auto begun =
      host::read_text(disk, file->directory() + "/manifest", cluster::Manifest::kMaxEncodedBytes);
  if (begun.ok()) {
    auto manifest = cluster::Manifest::decode({Slice::of(*begun)});
    if (manifest.ok() && manifest->id() == id) {
      file->manifest_ = *std::move(manifest);
      if (auto taken = file->take_up(); !taken.ok()) return taken.error();
      return file;
    }
  }
  if (auto removed = disk.remove_all(file->directory()); !removed.ok()) return removed.error();
  if (auto made = disk.make_directories(file->directory()); !made.ok()) return made.error();
  return file;
}

Result<void> IncomingFile::take_up() {
  here_.assign(manifest_->chunks(), false);
  for (std::uint64_t chunk = 0; chunk < here_.size(); ++chunk) {
    const auto there = disk_.exists(chunk_path(chunk));
    if (!there.ok() || !*there) continue;
    auto content = host::read_text(disk_, chunk_path(chunk), cluster::Manifest::kMaxChunkBytes);
    here_[chunk] = content.ok() && manifest_->matches(chunk, {Slice::of(*std::move(content))});
  }
  return check_room();
}

Result<void> IncomingFile::check_room() const {
  std::uint64_t missing = 0;
  for (std::uint64_t chunk = 0; chunk < here_.size(); ++chunk)
    missing += here_[chunk] ? 0 : manifest_->size_of(chunk);
  const std::uint64_t needed = missing + manifest_->bytes();
  const auto free = disk_.free_bytes(path_);
  if (!free.ok() || *free >= needed) return {};
  return Error{.where = path_,
               .what = "the disk has too little room for the run's data",
               .got = human_bytes(*free) + " free",
               .expected = fmt::format("{}: all of it, twice while it is put together", human_bytes(needed)),
               .fix = "make room, or give --dir a directory on another disk"};
}

Result<void> IncomingFile::know(cluster::Manifest manifest) {
  manifest_ = std::move(manifest);
  here_.assign(manifest_->chunks(), false);
  if (auto room = check_room(); !room.ok()) return room;
  return host::replace_file(disk_, directory() + "/manifest", manifest_->encoded().bytes());
}

// A chunk is neither synced nor renamed. A process that takes it up looks at the hash.
Result<void> IncomingFile::write(std::uint64_t chunk, const Slices& content) {
  auto file = disk_.open_writable(chunk_path(chunk), host::WriteMode::kTruncate);
  if (!file.ok()) return file.error();
  for (const Slice& slice : content) {
    if (auto written = (*file)->append(slice.bytes()); !written.ok()) return written;
  }
  if (auto closed = (*file)->close(); !closed.ok()) return closed;
  here_[chunk] = true;
  return {};
}

Result<void> IncomingFile::put_together(host::WritableFile& file) const {
  for (std::uint64_t chunk = 0; chunk < here_.size(); ++chunk) {
    const auto content = disk_.map(chunk_path(chunk));
    if (!content.ok()) return content.error();
    if (!here_[chunk] || (*content)->bytes().size() != manifest_->size_of(chunk)) {
      return Error{.where = chunk_path(chunk),
                   .what = "a chunk was not written wholly",
                   .got = fmt::format("{} bytes", (*content)->bytes().size()),
                   .expected = fmt::format("{}", manifest_->size_of(chunk)),
                   .fix = "see what was said of the disk before"};
    }
    if (auto written = file.append((*content)->bytes()); !written.ok()) return written;
  }
  if (auto synced = file.sync(); !synced.ok()) return synced;
  return file.close();
}

Result<StoredFile> IncomingFile::finish() {
  const std::string unfinished = path_ + ".tmp";
  auto file = disk_.open_writable(unfinished, host::WriteMode::kTruncate);
  if (!file.ok()) return file.error();
  if (auto whole = put_together(**file); !whole.ok()) {
    static_cast<void>(disk_.remove_all(unfinished));
    return whole.error();
  }
  const StoredFile stored{.manifest = *manifest_, .path = path_};
  if (auto renamed = disk_.rename(unfinished, path_); !renamed.ok()) return renamed.error();
  // The file counts as whole only with the manifest beside it.
  if (auto kept = keep_manifest(disk_, *manifest_, manifest_path(path_)); !kept.ok()) return kept.error();
  if (auto removed = disk_.remove_all(directory()); !removed.ok()) return removed.error();
  return stored;
}

}  // namespace gossamer::node
