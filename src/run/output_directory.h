// SPDX-License-Identifier: Apache-2.0
//
// OutputDirectory is a directory that a command fills. It is missing or empty at first. Half-written records
// that a killed import left in it count for nothing and are removed. Unless keep() is called, the directory
// is as before when the object dies, so a failed command leaves nothing half-written.
//
// Owner and thread: one. The disk must outlive it.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::run {

class OutputDirectory {
 public:
  // kUsage for a directory that holds something.
  [[nodiscard]] static Result<OutputDirectory> open(host::Disk& disk, const std::string& path);
  OutputDirectory(OutputDirectory&& other) noexcept
      : disk_(std::exchange(other.disk_, nullptr)), path_(std::move(other.path_)), existed_(other.existed_) {}
  OutputDirectory& operator=(OutputDirectory&&) = delete;
  ~OutputDirectory();

  void keep() { disk_ = nullptr; }

 private:
  OutputDirectory(host::Disk& disk, std::string path, bool existed)
      : disk_(&disk), path_(std::move(path)), existed_(existed) {}

  host::Disk* disk_;  // null: kept, or moved away
  std::string path_;
  bool existed_;
};

}  // namespace gossamer::run
