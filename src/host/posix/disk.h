// SPDX-License-Identifier: Apache-2.0
//
// PosixDisk: the real file system, with the promises of host/api/disk.h. Interrupted system calls and short
// reads and writes are carried on with. What goes beyond the interface:
//
// - open_sequential() announces sequential reading to the kernel. "/dev/stdin" is the standard input of this
//   process whatever it is (file, pipe, socket).
// - append() hands the bytes to the kernel at once (no buffer of its own): write in large pieces. Other
//   processes see them immediately.
// - map() and file_size() take regular files only. If another process cuts a mapped file short, touching the
//   lost part kills this process (SIGBUS); replace files by rename, never in place.
// - remove_all() removes symbolic links, not what they lead to.
// - make_directories() makes directories for their owner alone (0700). A user opens to others what they
//   shall see.
// - open_writable() makes a file anew where its name ends in ".tmp", or where it is private. What has that
//   name is removed first, a symbolic link too. Otherwise another user of the machine could lead the bytes
//   elsewhere.
// - lock() locks the file ".lock" in the directory (flock), which only its owner can open (0600). The kernel
//   frees it when the process ends for whatever reason; the file stays.
//
// Thread rule: any thread, no state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/api/disk.h"

namespace gossamer::host {

class PosixDisk final : public Disk {
 public:
  [[nodiscard]] Result<std::unique_ptr<SequentialFile>> open_sequential(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> open_writable(const std::string& path,
                                                                    WriteMode mode) override;
  [[nodiscard]] Result<std::unique_ptr<MappedFile>> map(const std::string& path) override;
  [[nodiscard]] Result<bool> exists(const std::string& path) override;
  [[nodiscard]] Result<std::uint64_t> file_size(const std::string& path) override;
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& directory) override;
  [[nodiscard]] Result<void> make_directories(const std::string& directory) override;
  [[nodiscard]] Result<void> rename(const std::string& from, const std::string& to) override;
  [[nodiscard]] Result<void> remove_all(const std::string& path) override;
  [[nodiscard]] Result<void> sync_directory(const std::string& directory) override;
  [[nodiscard]] Result<std::uint64_t> free_bytes(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<DirectoryLock>> lock(const std::string& directory) override;
};

}  // namespace gossamer::host
