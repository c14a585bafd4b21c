// SPDX-License-Identifier: Apache-2.0
#include "host/api/durable_directories.h"

#include <string>
#include <vector>

#include "host/api/files.h"

namespace gossamer::host {

Result<void> make_durable_directories(Disk& disk, const std::string& path) {
  std::vector<std::string> parents;  // the parents of what is missing, the nearest first
  for (std::string missing = path;; missing = parent(missing)) {
    const auto there = disk.exists(missing);
    if (!there.ok()) return there.error();
    if (*there) break;
    parents.push_back(parent(missing));
  }
  if (auto made = disk.make_directories(path); !made.ok()) return made;
  for (const std::string& directory : parents) {
    if (auto synced = disk.sync_directory(directory); !synced.ok()) return synced;
  }
  return {};
}

}  // namespace gossamer::host
