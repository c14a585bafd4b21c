// SPDX-License-Identifier: Apache-2.0
//
// OutputDirectory is a directory that a command fills. It is missing or empty at first. Half-written records
// that a killed import left in it count for nothing and are removed. Unless keep() has succeeded, the
// directory is as before when the object dies, so a failed command leaves nothing half-written. Until then
// the directory is locked: of two commands that name it, the second one is refused.
//
// Owner and thread: one. The disk must outlive it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::run {

class OutputDirectory {
 public:
  // kUsage for a directory that holds something. kRefused for one that another command fills.
  [[nodiscard]] static Result<OutputDirectory> open(host::Disk& disk, const std::string& path);
  OutputDirectory(OutputDirectory&& other) noexcept
      : disk_(std::exchange(other.disk_, nullptr)),
        path_(std::move(other.path_)),
        existed_(other.existed_),
        lock_(std::move(other.lock_)) {}
  OutputDirectory& operator=(OutputDirectory&&) = delete;
  ~OutputDirectory();

  // What is in the directory lasts when this returns. To be called once, when all of it is written.
  [[nodiscard]] Result<void> keep();

 private:
  OutputDirectory(host::Disk& disk, std::string path, bool existed)
      : disk_(&disk), path_(std::move(path)), existed_(existed) {}
  void remove_contents();

  host::Disk* disk_;  // null: kept, or moved away
  std::string path_;
  bool existed_;
  std::unique_ptr<host::DirectoryLock> lock_;  // null: what is in the directory is not this object's
};

}  // namespace gossamer::run
