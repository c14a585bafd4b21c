// SPDX-License-Identifier: Apache-2.0
//
// ScratchDirectory is a directory for files that a command needs while it runs: BASE/NUMBER, with the number
// of its process. It goes with the object. A command that was killed leaves its own behind: the next one that
// makes a directory in the same BASE removes it. Names that are no numbers stay. The lock on a directory says
// whether its command lives: the kernel frees it, and numbers of processes come again.
//
// Owner and thread: one. The disk must outlive it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::run {

class ScratchDirectory {
 public:
  // `path`: BASE/NUMBER (checked). kRefused where a command that lives has it; errors of the disk.
  [[nodiscard]] static Result<ScratchDirectory> make(host::Disk& disk, const std::string& path);
  ScratchDirectory(ScratchDirectory&& other) noexcept
      : disk_(std::exchange(other.disk_, nullptr)),
        path_(std::move(other.path_)),
        lock_(std::move(other.lock_)) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  // An error of removing is of no use any more.
  ~ScratchDirectory();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  ScratchDirectory(host::Disk& disk, std::string path, std::unique_ptr<host::DirectoryLock> lock)
      : disk_(&disk), path_(std::move(path)), lock_(std::move(lock)) {}

  host::Disk* disk_;  // null: moved away
  std::string path_;
  std::unique_ptr<host::DirectoryLock> lock_;
};

}  // namespace gossamer::run
