// SPDX-License-Identifier: Apache-2.0
#include "run/output_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "host/api/durable_directories.h"

namespace gossamer::run {
namespace {

// Records are written under another name and renamed when whole. A killed import
// leaves files with these names, and its lock.
bool left_by_import(const std::string& name) {
  return name == ".lock" || name == "records.cache.tmp" || name == "records.jsonl.tmp" ||
         name == "records.sessions.tmp" || name == "records.text.tmp" || name == "test.jsonl.tmp" ||
         name == "train.tokens.tmp";
}

// A tokenizer is whole before the tokens are. A user may have a file of that name in a directory of its own,
// without the lock of an import.
bool left_with_lock(const std::string& name) {
  return name == "tokenizer.model" || name == "tokenizer.model.tmp" || left_by_import(name);
}

bool has_lock(const std::vector<std::string>& names) {
  return std::ranges::find(names, ".lock") != names.end();
}

// What a killed import has left in the directory. kUsage where there is anything else. `locked`: its lock was
// there.
Result<std::vector<std::string>> leftovers(host::Disk& disk, const std::string& path, bool locked) {
  auto names = disk.list(path);
  if (!names.ok()) return names;
  const auto foreign = std::ranges::find_if_not(*names, locked ? left_with_lock : left_by_import);
  if (foreign == (*names).end()) return names;
  return Error{.kind = ErrorKind::kUsage,
               .where = path,
               .what = "the directory for the records is not empty",
               .got = fmt::format("'{}'{}", *foreign, (*names).size() > 1 ? " and more" : ""),
               .expected = "a directory that is missing or empty",
               .fix = "give another --out"};
}

}  // namespace

Result<OutputDirectory> OutputDirectory::open(host::Disk& disk, const std::string& path) {
  auto existed = disk.exists(path);
  if (!existed.ok()) return existed.error();
  // A directory of something else gets no lock.
  if (*existed) {
    const auto names = disk.list(path);
    if (!names.ok()) return names.error();
    if (auto mine = leftovers(disk, path, has_lock(*names)); !mine.ok()) return mine.error();
  }
  OutputDirectory out(disk, path, *existed);
  if (auto done = host::make_durable_directories(disk, path); !done.ok()) return done.error();
  auto lock = disk.lock(path);
  if (!lock.ok()) return lock.error();
  // Since the first look another import may have ended, or have been killed behind its tokenizer.
  auto names = leftovers(disk, path, true);
  if (!names.ok()) {
    static_cast<void>(disk.remove_all(path + "/.lock").ok());
    return names.error();
  }
  out.lock_ = *std::move(lock);
  std::erase(*names, ".lock");
  for (const std::string& name : *names) {
    if (auto done = disk.remove_all(path + "/" + name); !done.ok()) return done.error();
  }
  return out;
}

Result<void> OutputDirectory::keep() {
  if (auto synced = disk_->sync_directory(path_); !synced.ok()) return synced;
  static_cast<void>(disk_->remove_all(path_ + "/.lock").ok());
  lock_.reset();
  disk_ = nullptr;
  return {};
}

// The command's own error is the one to report. A failing clean-up adds nothing to it.
OutputDirectory::~OutputDirectory() {
  if (disk_ == nullptr) return;
  if (lock_ != nullptr) remove_contents();
  lock_.reset();
  if (existed_) return;
  const auto left = disk_->list(path_);
  if (left.ok() && (*left).empty()) static_cast<void>(disk_->remove_all(path_).ok());
}

// The lock goes last, because another import may then begin.
void OutputDirectory::remove_contents() {
  const auto names = disk_->list(path_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name != ".lock") static_cast<void>(disk_->remove_all(path_ + "/" + name).ok());
  }
  static_cast<void>(disk_->remove_all(path_ + "/.lock").ok());
}

}  // namespace gossamer::run
