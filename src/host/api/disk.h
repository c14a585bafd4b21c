// SPDX-License-Identifier: Apache-2.0
//
// Disk: files and directories. One of the seams: host/posix is the real file system. host/sim keeps files in
// memory and can lose unsynced writes, tear them, run full, or crash between any two operations.
//
// Durability contract, the same for both: bytes of a file survive a crash only after sync(). Names (create,
// rename, remove) survive only after sync_directory() of their parent. Anything not synced may be lost wholly
// or in part. A rename is atomic: after a crash the name leads to the old file or to the new one, never to a
// mixture.
//
// Paths are UTF-8, '/'-separated. Errors are kFailed with `where` = the path, and name the cause.
// Thread rule: a Disk may be used by any thread; each file object by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace gossamer::host {

// Reads from the start to the end, once. Pipes and standard input ("/dev/stdin") work.
class SequentialFile {
 public:
  SequentialFile() = default;
  SequentialFile(const SequentialFile&) = delete;
  SequentialFile& operator=(const SequentialFile&) = delete;
  virtual ~SequentialFile() = default;

  // Fills `out` from the front; returns the bytes read, fewer than asked only at the end, 0 when past it.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<std::byte> out) = 0;
};

// Appends. A file that is destroyed without close() keeps what reached the disk; errors then go unseen.
class WritableFile {
 public:
  WritableFile() = default;
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;
  virtual ~WritableFile() = default;

  [[nodiscard]] virtual Result<void> append(std::span<const std::byte> bytes) = 0;
  // Makes everything appended so far survive a crash.
  [[nodiscard]] virtual Result<void> sync() = 0;
  [[nodiscard]] virtual Result<void> close() = 0;
};

// A whole file as read-only memory, valid while the object lives.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  virtual ~MappedFile() = default;

  [[nodiscard]] virtual std::span<const std::byte> bytes() const = 0;
};

// A lock on a directory. It is held while the object lives, by one process at a time.
class DirectoryLock {
 public:
  DirectoryLock() = default;
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  virtual ~DirectoryLock() = default;
};

enum class WriteMode {
  kTruncate,  // an existing file is emptied
  kPrivate,   // likewise; only the file's owner may read or write it, where the disk knows owners
  kAppend,    // an existing file is continued
};

class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  virtual ~Disk() = default;

  [[nodiscard]] virtual Result<std::unique_ptr<SequentialFile>> open_sequential(const std::string& path) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<WritableFile>> open_writable(const std::string& path,
                                                                            WriteMode mode) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<MappedFile>> map(const std::string& path) = 0;

  // False for a missing path, and for a file's with a slash behind it. An error only when the disk cannot
  // tell.
  [[nodiscard]] virtual Result<bool> exists(const std::string& path) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> file_size(const std::string& path) = 0;
  // Names (not paths) in a directory, sorted, without "." and "..".
  [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
  // Makes the directory and its missing parents; fine if it is there already.
  [[nodiscard]] virtual Result<void> make_directories(const std::string& directory) = 0;
  // Replaces `to` if it is a file.
  [[nodiscard]] virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  // Removes a file, or a directory with all that is in it; fine if it is missing.
  [[nodiscard]] virtual Result<void> remove_all(const std::string& path) = 0;
  [[nodiscard]] virtual Result<void> sync_directory(const std::string& directory) = 0;
  // Bytes that an ordinary user can still write beside `path`; an error where the file system does not count.
  [[nodiscard]] virtual Result<std::uint64_t> free_bytes(const std::string& path) = 0;
  // Refuses (kRefused) while another process holds the same directory.
  [[nodiscard]] virtual Result<std::unique_ptr<DirectoryLock>> lock(const std::string& directory) = 0;
};

}  // namespace gossamer::host
