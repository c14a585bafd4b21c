// SPDX-License-Identifier: Apache-2.0
//
// LineFile is a text file written line by line. It appears under its name only when it is whole, and then
// lasts.
//
//   LineFile file(disk, path);  file.open();  file.line("...");  file.publish();
//
// Errors: those of the disk. PATH.tmp may then stay, and the owner of the directory
// removes it. Thread rule: one owner.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "host/api/disk.h"
#include "host/api/files.h"

namespace gossamer::run {

class LineFile {
 public:
  LineFile(host::Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  [[nodiscard]] Result<void> open() {
    auto file = disk_.open_writable(path_ + ".tmp", host::WriteMode::kTruncate);
    if (!file.ok()) return file.error();
    file_ = std::move(*file);
    return {};
  }
  [[nodiscard]] Result<void> line(std::string_view text) {
    buffer_.append(text).push_back('\n');
    return buffer_.size() < kBufferBytes ? Result<void>() : flush();
  }
  [[nodiscard]] Result<void> publish() {
    if (auto done = flush(); !done.ok()) return done;
    if (auto done = file_->sync(); !done.ok()) return done;
    if (auto done = file_->close(); !done.ok()) return done;
    if (auto done = disk_.rename(path_ + ".tmp", path_); !done.ok()) return done;
    return disk_.sync_directory(host::parent(path_));
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
  Result<void> flush() {
    auto done = file_->append(std::as_bytes(std::span(buffer_)));
    buffer_.clear();
    return done;
  }

  host::Disk& disk_;
  std::string path_;
  std::unique_ptr<host::WritableFile> file_;
  std::string buffer_;
};

}  // namespace gossamer::run
