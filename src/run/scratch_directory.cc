// SPDX-License-Identifier: Apache-2.0
#include "run/scratch_directory.h"

#include <string_view>

#include "base/check.h"

namespace gossamer::run {
namespace {

bool is_process_number(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

// A command that lives has locked its directory. What cannot be read or removed stays.
void remove_abandoned(host::Disk& disk, const std::string& base, const std::string& but) {
  const auto names = disk.list(base);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = base + "/" + name;
    if (path == but || !is_process_number(name)) continue;
    const auto lock = disk.lock(path);
    if (lock.ok()) static_cast<void>(disk.remove_all(path).ok());
  }
}

}  // namespace

Result<ScratchDirectory> ScratchDirectory::make(host::Disk& disk, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  CHECK(slash != std::string::npos && is_process_number(std::string_view(path).substr(slash + 1)), path);
  // Another command may take the directory for abandoned between the first two calls, and remove it. It looks
  // once, so that the second turn is enough but for one more such command.
  constexpr int kTurns = 20;
  for (int turn = 1;; ++turn) {
    if (auto made = disk.make_directories(path); !made.ok()) return made.error();
    auto lock = disk.lock(path);
    const auto there = lock.ok() ? disk.exists(path + "/.lock") : Result<bool>(false);
    if (there.ok() && *there) {
      ScratchDirectory directory(disk, path, *std::move(lock));
      remove_abandoned(disk, path.substr(0, slash), path);
      return directory;
    }
    if (!there.ok()) return there.error();
    if (turn < kTurns) continue;
    if (!lock.ok()) return lock.error();
    return Error{.where = path, .what = "the directory was removed while it was made"};
  }
}

ScratchDirectory::~ScratchDirectory() {
  if (disk_ != nullptr) static_cast<void>(disk_->remove_all(path_).ok());
}

}  // namespace gossamer::run
