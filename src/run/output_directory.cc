// SPDX-License-Identifier: Apache-2.0
#include "run/output_directory.h"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::run {
namespace {

// Records are written under another name and renamed when whole. A killed import
// leaves files with these names.
bool left_by_import(const std::string& name) {
  return name == "records.cache.tmp" || name == "records.jsonl.tmp" || name == "records.sessions.tmp" ||
         name == "records.text.tmp" || name == "test.jsonl.tmp";
}

}  // namespace

Result<OutputDirectory> OutputDirectory::open(host::Disk& disk, const std::string& path) {
  auto existed = disk.exists(path);
  if (!existed.ok()) return existed.error();
  if (*existed) {
    auto names = disk.list(path);
    if (!names.ok()) return names.error();
    const auto foreign = std::ranges::find_if_not(*names, left_by_import);
    if (foreign != (*names).end()) {
      return Error{.kind = ErrorKind::kUsage,
                   .where = path,
                   .what = "the directory for the records is not empty",
                   .got = fmt::format("'{}'{}", *foreign, (*names).size() > 1 ? " and more" : ""),
                   .expected = "a directory that is missing or empty",
                   .fix = "give another --out"};
    }
    for (const std::string& name : *names) {
      if (auto done = disk.remove_all(path + "/" + name); !done.ok()) return done.error();
    }
  }
  if (auto done = disk.make_directories(path); !done.ok()) return done.error();
  return OutputDirectory(disk, path, *existed);
}

OutputDirectory::~OutputDirectory() {
  if (disk_ == nullptr) return;
  // The command's own error is the one to report. A failing clean-up adds nothing to it.
  if (!existed_) {
    static_cast<void>(disk_->remove_all(path_).ok());
    return;
  }
  const auto names = disk_->list(path_);
  if (!names.ok()) return;
  for (const std::string& name : *names) static_cast<void>(disk_->remove_all(path_ + "/" + name).ok());
}

}  // namespace gossamer::run
