// SPDX-License-Identifier: Apache-2.0
#include "node/output_directory.h"

#include <fmt/format.h>

namespace gossamer::node {

Result<OutputDirectory> OutputDirectory::open(host::Disk& disk, const std::string& path) {
  auto existed = disk.exists(path);
  if (!existed.ok()) return existed.error();
  if (*existed) {
    auto names = disk.list(path);
    if (!names.ok()) return names.error();
    if (!(*names).empty()) {
      return Error{.kind = ErrorKind::kUsage,
                   .where = path,
                   .what = "the directory for the records is not empty",
                   .got = fmt::format("'{}'{}", (*names).front(), (*names).size() > 1 ? " and more" : ""),
                   .expected = "a directory that is missing or empty",
                   .fix = "give another --out"};
    }
  }
  if (auto done = disk.make_directories(path); !done.ok()) return done.error();
  return OutputDirectory(disk, path, *existed);
}

OutputDirectory::~OutputDirectory() {
  if (disk_ == nullptr) return;
  // The command's own error is the one to report; a failing clean-up says nothing new.
  if (!existed_) {
    static_cast<void>(disk_->remove_all(path_).ok());
    return;
  }
  const auto names = disk_->list(path_);
  if (!names.ok()) return;
  for (const std::string& name : *names) static_cast<void>(disk_->remove_all(path_ + "/" + name).ok());
}

}  // namespace gossamer::node
